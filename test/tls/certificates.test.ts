/** Certificate tests that need no server: channel binding for logins, and refused sessions. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';

import test from 'ava';
import fc from 'fast-check';

import { ConfigError, loadConfig } from '../../ts/config/index.js';
import { endPointBinding } from '../../ts/tls/end-point-binding.js';
import { certificateFiles, CredentialStore, TlsError } from '../../ts/tls/index.js';
import { start } from '../pgwire/harness.js';
import { CertificateFolder } from './certificates.js';
import { suiteSeed } from '../seed.js';
import { pgClient } from '../pg-client.js';

const seed = suiteSeed();
const folder = new CertificateFolder();

test.before(() => {
  folder.make('server');
});

test.after.always(() => {
  folder.remove();
});

function store(): CredentialStore {
  return new CredentialStore({
    certificate: folder.file('server.crt'),
    key: folder.file('server.key'),
  });
}

test('channel binding uses the hash of the certificate signature algorithm', (t) => {
  const rsa = ['-newkey', 'rsa:2048'];
  for (const [name, options, hash] of [
    ['ec-256', { digest: 'sha256' }, 'sha256'],
    ['ec-384', { digest: 'sha384' }, 'sha384'],
    ['ec-512', { digest: 'sha512' }, 'sha512'],
    ['ec-1', { digest: 'sha1' }, 'sha256'],
    ['rsa-256', { key: rsa, digest: 'sha256' }, 'sha256'],
    ['rsa-384', { key: rsa, digest: 'sha384' }, 'sha384'],
    ['rsa-512', { key: rsa, digest: 'sha512' }, 'sha512'],
    ['ed', { key: ['-newkey', 'ed25519'] }, null],
    ['pss', { key: [...rsa, '-sigopt', 'rsa_padding_mode:pss'] }, null],
  ] as const) {
    folder.make(name, options);
    const file = folder.file(`${name}.crt`);
    const der = execFileSync('openssl', ['x509', '-in', file, '-outform', 'der']);
    const expected = hash === null ? null : createHash(hash).update(der).digest();
    t.deepEqual(endPointBinding(readFileSync(file)), expected, name);
  }
});

test('TLS settings of an endpoint override the general TLS settings', (t) => {
  const files = (endpoint: 'http' | 'http.min' | 'pg', ...set: string[]): unknown =>
    certificateFiles(loadConfig({ set }), endpoint);
  const shared = ['tls.enabled=true', 'tls.cert.path=c', 'tls.private.key.path=k'];
  t.is(files('http'), null);
  t.deepEqual(files('pg', ...shared), { certificate: 'c', key: 'k' });
  t.is(files('http', ...shared, 'http.tls.enabled=false'), null);
  t.deepEqual(files('http.min', ...shared, 'http.min.tls.cert.path=own'), {
    certificate: 'own',
    key: 'k',
  });
  t.throws(() => files('pg', 'pg.tls.enabled=true'), {
    instanceOf: ConfigError,
    message: 'pg.tls.enabled=true requires a PEM file in pg.tls.cert.path or tls.cert.path',
  });
});

test('the certificate store keeps its certificate if a new one is invalid', (t) => {
  const credentials = store();
  const seen: unknown[] = [];
  credentials.onChange((next) => seen.push(next));
  const before = credentials.current;
  t.false(credentials.reload());
  const files = { certificate: folder.file('server.crt'), key: folder.file('server.crt') };
  t.throws(() => credentials.reload(files), { instanceOf: TlsError });
  t.is(credentials.current, before);
  folder.make('other');
  t.true(
    credentials.reload({ certificate: folder.file('other.crt'), key: folder.file('other.key') }),
  );
  t.deepEqual(seen, [credentials.current]);
});

test('a closed encrypted connection no longer counts towards the limit', async (t) => {
  const { port, server } = await start({ method: 'scram', connectionsMax: 1 }, store());
  for (let round = 0; round < 3; round += 1) {
    const client = pgClient(`127.0.0.1:${port}`, { ssl: { rejectUnauthorized: false } });
    await client.connect();
    t.is((await client.query('rows 3000')).rowCount, 3_000);
    await client.end();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await server.close();
});

/**
 * Sends bytes and reads the response. Resolves when the server closes the connection or stays
 * silent.
 */
function sendBytes(port: number, chunks: readonly Uint8Array[], cut: boolean): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      for (const chunk of chunks) {
        socket.write(chunk);
      }
      if (cut) {
        socket.resetAndDestroy();
      } else {
        socket.end();
      }
    });
    socket.setTimeout(1_000, () => socket.destroy());
    socket.on('data', () => undefined);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      resolve();
    });
  });
}

test('malformed handshakes close only their connection', async (t) => {
  const { port, server } = await start({ connectionsMax: 4 }, store());
  const request = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
  const property = fc.asyncProperty(
    fc.boolean(),
    fc.boolean(),
    fc.uint8Array({ maxLength: 600 }),
    fc.uint8Array({ maxLength: 600 }),
    async (asks, cut, first, second) => {
      const begin = asks ? request : Buffer.from([0x16, 3, 1]);
      await sendBytes(port, [begin, first, second], cut);
    },
  );
  await fc.assert(property, { seed, numRuns: 150 });
  const client = pgClient(`127.0.0.1:${port}`, { ssl: { rejectUnauthorized: false } });
  await client.connect();
  t.is((await client.query('rows 10')).rowCount, 10);
  await client.end();
  await server.close();
});

test('required encryption applies only to remote clients', async (t) => {
  const outside = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')?.address;
  if (outside === undefined) {
    t.log('this machine has only a loopback address');
    t.pass();
    return;
  }
  const required = { host: '0.0.0.0', requireEncryption: true };
  const { port, server } = await start(required, store());
  const connect = async (host: string, encrypted: boolean): Promise<void> => {
    const ssl = encrypted ? { rejectUnauthorized: false } : false;
    const client = pgClient(`${host}:${port}`, { ssl });
    await client.connect();
    await client.end();
  };
  await t.notThrowsAsync(connect('127.0.0.1', false));
  await t.notThrowsAsync(connect(outside, true));
  await t.throwsAsync(connect(outside, false), { message: /only encrypted connections/ });
  await server.close();
});
