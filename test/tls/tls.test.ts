/** Encrypted endpoints with common clients: curl, openssl, psql, psycopg. */
import { execFile, spawnSync } from 'node:child_process';
import { copyFileSync, renameSync, writeFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

import test from 'ava';
import { pgClient } from '../pg-client.js';

import { exitCode, runCli, startTestServer, type TestServer } from '../golden/server.js';
import { clientMessage, startup } from '../pgwire/raw-client.js';
import { until } from '../until.js';
import { CertificateFolder } from './certificates.js';

const run = promisify(execFile);
const folder = new CertificateFolder();

let server: TestServer;

test.before(async () => {
  folder.make('first');
  folder.make('second');
  copyPair('first', 'server');
  server = await startTestServer({ set: folder.settings('server') });
});

test.after.always(async () => {
  await server.stop();
  folder.remove();
});

/** Replaces a certificate and then its key. */
function copyPair(from: string, to: string): void {
  for (const ending of ['crt', 'key']) {
    copyFileSync(folder.file(`${from}.${ending}`), folder.file('new'));
    renameSync(folder.file('new'), folder.file(`${to}.${ending}`));
  }
}

function httpsPort(): string {
  return new URL(server.url).port;
}

function pgPort(): number {
  return Number(server.pg.split(':')[1]);
}

/** Returns the subject of the certificate that a port presents, read with openssl. */
async function subjectOf(port: string, ...args: string[]): Promise<string> {
  const child = run('openssl', ['s_client', '-connect', `127.0.0.1:${port}`, ...args]);
  child.child.stdin?.end();
  const { stdout } = await child;
  return /^subject=(.*)$/m.exec(stdout)?.[1] ?? '';
}

async function curl(...args: string[]): Promise<string> {
  const { stdout } = await run('curl', ['--silent', '--show-error', '--max-time', '10', ...args]);
  return stdout;
}

function selectOne(scheme: string): string {
  return `${scheme}://localhost:${httpsPort()}/exec?query=select%201`;
}

test.serial('curl verifies the certificate and gets its response', async (t) => {
  const trusted = ['--cacert', folder.file('first.crt')];
  t.regex(await curl(...trusted, selectOne('https')), /"dataset":\[\[1\]\]/);
  await t.throwsAsync(
    curl(selectOne('https')),
    { message: /self.signed/ },
    'the certificate is not trusted',
  );
  const file = folder.file('upload.csv');
  writeFileSync(file, 'a,b\n1,2\n3,4\n');
  const form = ['--form', `data=@${file}`, `https://localhost:${httpsPort()}/imp?fmt=json`];
  t.regex(await curl(...trusted, ...form), /"rowsImported":2/);
});

test.serial('plain text on the encrypted port and old TLS versions are refused', async (t) => {
  await t.throwsAsync(curl(selectOne('http')));
  const args = ['-tls1_1', '-cipher', 'DEFAULT@SECLEVEL=0'];
  await t.throwsAsync(subjectOf(httpsPort(), ...args));
  t.regex(
    await curl('--insecure', selectOne('https')),
    /\[\[1\]\]/,
    'newer TLS versions are accepted',
  );
});

const PYTHON = `
import sys, psycopg
with psycopg.connect(sys.argv[1]) as connection:
    one = connection.execute('select count() from long_sequence(1000)').fetchone()[0]
    print(connection.pgconn.ssl_in_use, one)
`;

function hasPsycopg(): boolean {
  return spawnSync('python3', ['-c', 'import psycopg']).status === 0;
}

test.serial('psycopg logs in over TLS with channel binding', async (t) => {
  if (!hasPsycopg()) {
    t.log('psycopg is not installed');
    t.pass();
    return;
  }
  const send = async (options: string): Promise<string> => {
    const connection = `host=localhost hostaddr=127.0.0.1 port=${pgPort()} dbname=qdb`;
    const login = 'user=admin password=quest connect_timeout=10';
    const { stdout } = await run('python3', ['-c', PYTHON, `${connection} ${login} ${options}`]);
    return stdout.trim();
  };
  const verified = `sslmode=verify-full sslrootcert=${folder.file('first.crt')}`;
  t.is(await send('sslmode=require'), 'True 1000');
  t.is(await send(`${verified} channel_binding=require`), 'True 1000');
  t.is(
    await send('sslmode=require sslnegotiation=direct'),
    'True 1000',
    'TLS starts without an SSLRequest',
  );
  t.is(await send('sslmode=disable'), 'False 1000');
  t.is(await send('sslmode=prefer'), 'True 1000', 'clients that may choose use encryption');
  await t.throwsAsync(send('sslmode=disable channel_binding=require'), {
    message: /channel binding/,
  });
  const other = `sslmode=verify-full sslrootcert=${folder.file('second.crt')}`;
  await t.throwsAsync(send(other), { message: /certificate verify failed/ });
});

test.serial('psql and node-postgres connect over TLS', async (t) => {
  const connection = `host=127.0.0.1 port=${pgPort()} user=admin password=quest dbname=qdb`;
  const args = ['-At', '-c', 'select 3 + 4', `${connection} sslmode=require`];
  t.is((await run('psql', args)).stdout.trim(), '7');
  const client = pgClient(server.pg, { ssl: { rejectUnauthorized: false } });
  await client.connect();
  const rows = await client.query('select x from long_sequence(50000)');
  t.is(rows.rowCount, 50_000);
  await client.end();
});

test.serial('a direct TLS handshake must negotiate the postgresql protocol', async (t) => {
  const answerTo = async (protocols: string[]): Promise<string> =>
    await new Promise((resolve, reject) => {
      const options = { port: pgPort(), host: '127.0.0.1', rejectUnauthorized: false };
      const socket = connectTls({ ...options, ALPNProtocols: protocols }, () => {
        socket.write(startup('admin'));
      });
      socket.once('data', (bytes: Buffer) => {
        resolve(bytes.toString('latin1'));
        socket.destroy();
      });
      socket.once('error', reject);
    });
  t.true((await answerTo(['postgresql'])).startsWith('R'), 'the server requests a password');
  t.regex(await answerTo([]), /^E.*08P01/s);
  await t.throwsAsync(answerTo(['http/1.1']), { message: /no application protocol/i });
});

test.serial('plain text sent before the handshake is not treated as encrypted', async (t) => {
  const request = clientMessage('', 80_877_103);
  const answer = await new Promise<string>((resolve) => {
    const socket = connectTcp(pgPort(), '127.0.0.1', () => {
      socket.write(Buffer.concat([request, startup('admin')]));
    });
    socket.once('data', (bytes) => {
      resolve(bytes.toString());
      socket.destroy();
    });
  });
  t.regex(answer, /^E.*received unencrypted data after encryption request/s);
});

test.serial('a new certificate is used as soon as it matches the key', async (t) => {
  const shown = async (): Promise<readonly string[]> => [
    await subjectOf(httpsPort()),
    await subjectOf(String(pgPort()), '-starttls', 'postgres'),
  ];
  t.deepEqual(await shown(), ['CN = first', 'CN = first']);
  copyFileSync(folder.file('second.crt'), folder.file('server.crt'));
  server.process.kill('SIGHUP');
  await until(() => server.log().includes('certificate_refused'), 'the refusal is logged');
  t.deepEqual(
    await shown(),
    ['CN = first', 'CN = first'],
    'the certificate does not match its key',
  );
  copyPair('second', 'server');
  await until(
    async () => (await shown()).every((subject) => subject === 'CN = second'),
    'the second certificate is presented',
  );
  t.regex(server.log(), /"event":"certificate_loaded","endpoint":"pg"/);
});

test('a client that never starts its handshake does not delay shutdown', async (t) => {
  const own = await startTestServer({ set: folder.settings('first') });
  const silent = connectTcp(Number(new URL(own.url).port), '127.0.0.1');
  silent.on('error', () => undefined);
  await new Promise((resolve) => silent.once('connect', resolve));
  await sleep(100);
  t.is(await own.stop(), 0);
  t.regex(own.log(), /"event":"closed"/, 'the database was closed cleanly');
  t.notRegex(own.log(), /forced to stop/);
  silent.destroy();
});

test('the server does not start with an invalid certificate, and reports why', async (t) => {
  folder.make('third');
  const attempt = async (settings: readonly string[]): Promise<string> => {
    const root = ['--root', folder.file('root')];
    const child = runCli(['serve', ...root, ...settings.flatMap((item) => ['--set', item])]);
    t.is(await exitCode(child.process), 78, child.err());
    return child.err();
  };
  const free = ['http.bind.to=127.0.0.1:0', 'http.min.enabled=false', 'pg.enabled=false'];
  const expected =
    'tidemark: tls.enabled=true requires a PEM file in http.tls.cert.path or tls.cert.path\n';
  t.is(await attempt([...free, 'tls.enabled=true']), expected);
  const missing = folder.settings('missing');
  t.regex(await attempt([...free, ...missing]), /cannot read '.*missing\.crt': no such file/);
  const mixed = [
    'http.tls.enabled=true',
    `tls.cert.path=${folder.file('first.crt')}`,
    `http.tls.private.key.path=${folder.file('third.key')}`,
  ];
  t.regex(await attempt([...free, ...mixed]), /third\.key': .*key values mismatch/);
  const plain = ['http.bind.to=0.0.0.0:0', 'pg.enabled=false', 'security.require.tls=true'];
  t.regex(await attempt(plain), /security\.require\.tls=true forbids: set tls\.enabled=true/);
});
