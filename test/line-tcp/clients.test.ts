/** ILP clients over TCP and HTTP, as published in their package registries. */
import { generateKeyPairSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import test, { type ExecutionContext } from 'ava';

import {
  ADMIN,
  credentials,
  rows as rowsAs,
  run as runAs,
  startAccessServer,
} from '../access/harness.js';
import { has, run, skip, SOURCES, TOOLS } from '../clients/tools.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { columns, rows } from '../line/harness.js';
import { CertificateFolder } from '../tls/certificates.js';
import { portOf, shows } from './harness.js';

let server: TestServer;
/** Servers with keys from a file, and servers with users' keys. */
const guarded: { server: TestServer; key: string }[] = [];
let folder = '';

test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tidemark-clients-'));
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { d = '', x = '', y = '' } = privateKey.export({ format: 'jwk' });
  const key = settingOf('feed', x, y, d);
  await writeFile(join(folder, 'keys'), `feed ec-p-256-sha256 ${x} ${y}\n`);
  const interval = 'line.tcp.commit.interval.default=50ms';
  server = await startTestServer({ set: [interval] });
  const fromFile = await startTestServer({
    set: [interval, `line.tcp.auth.db.path=${join(folder, 'keys')}`],
  });
  guarded.push({ server: fromFile, key });
  const fromUsers = await startAccessServer(undefined, interval);
  await runAs(fromUsers, 'CREATE SERVICE ACCOUNT sensors', 'GRANT ILP, CREATE TABLE TO sensors');
  const statement = 'ALTER SERVICE ACCOUNT sensors CREATE TOKEN TYPE JWK';
  const [created = []] = await rowsAs(fromUsers, ADMIN, statement);
  const [name = '', ...parts] = created.map(String);
  guarded.push({ server: fromUsers, key: settingOf(name, ...parts) });
});
test.after.always(async () => {
  await server.stop();
  await Promise.all(guarded.map(({ server: one }) => one.stop()));
  await rm(folder, { recursive: true, force: true });
});

/** Returns the key settings in a sender's configuration. */
function settingOf(name: string, ...[x = '', y = '', d = '']: readonly string[]): string {
  return `username=${name};token=${d};token_x=${x};token_y=${y};`;
}

interface Client {
  readonly name: string;
  /** Protocol versions to try. */
  readonly versions: readonly number[];
  readonly transports: readonly ('http' | 'tcp')[];
  /** Returns the reason why the client cannot run; null if it can. */
  readonly lacks: () => Promise<string | null>;
  readonly command: (conf: string, table: string, version: string) => readonly string[];
}

const PYTHON = `
import sys, decimal, numpy
from questdb.ingress import Sender, TimestampNanos, TimestampMicros
conf, table, version = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Sender.from_conf(conf) as sender:
    for row in range(3):
        columns = {'f': row + 0.5, 'i': row, 'b': row > 0, 'v': 'a "quoted"\\nline \\\\ %d' % row,
                   'm': TimestampMicros(row + 1)}
        if version >= 2:
            columns['a'] = numpy.array([[row, 1.5], [2.5, 3.5]], dtype=numpy.float64)
        if version >= 3:
            columns['d'] = decimal.Decimal('-123.45')
        sender.row(table, symbols={'s': 'x y,=%d' % row}, columns=columns,
                   at=TimestampNanos(1700000000000000000 + row))
    sender.flush()
print('sent')
`;

const NODE = `
const { Sender } = await import(process.argv[1]);
const [, , conf, table, version] = process.argv;
const sender = await Sender.fromConfig(conf + 'auto_flush=off;');
if (conf.startsWith('tcp')) await sender.connect();
for (let row = 0; row < 3; row += 1) {
  sender.table(table).symbol('s', 'x y,=' + row).floatColumn('f', row + 0.5).intColumn('i', row)
    .booleanColumn('b', row > 0).stringColumn('v', 'a "quoted"\\nline \\\\ ' + row);
  sender.timestampColumn('m', BigInt(row + 1), 'us');
  if (Number(version) >= 2) sender.arrayColumn('a', [[row, 1.5], [2.5, 3.5]]);
  if (Number(version) >= 3) sender.decimalColumnText('d', '-123.45');
  await sender.at(1700000000000000000n + BigInt(row), 'ns');
}
await sender.flush();
await sender.close();
console.log('sent');
`;

const NODE_CLIENT = join(TOOLS, 'node', 'node_modules', '@questdb', 'nodejs-client');
const JARS = ['questdb-client.jar', 'slf4j-api.jar'].map((name) => join(TOOLS, 'jars', name));
const RUST_CLIENT = join(TOOLS, 'bin', 'questdb-rs-client');

function unless(isThere: boolean): Promise<string | null> {
  const missing = 'the client is not installed: node scripts/setup-tests.mjs';
  return Promise.resolve(isThere ? null : missing);
}

const CLIENTS: readonly Client[] = [
  {
    name: 'Python',
    versions: [1, 2, 3],
    transports: ['tcp', 'http'],
    lacks: async () => await unless(await has('python3', '-c', 'import questdb.ingress, numpy')),
    command: (...args) => ['python3', '-W', 'ignore', '-c', PYTHON, ...args],
  },
  {
    name: 'Node.js',
    versions: [1, 2, 3],
    transports: ['tcp', 'http'],
    lacks: () => unless(existsSync(NODE_CLIENT)),
    command: (...args) => [
      ...[process.execPath, '--input-type=module', '-e', NODE],
      pathToFileURL(join(NODE_CLIENT, 'dist', 'es', 'index.mjs')).href,
      ...args,
    ],
  },
  {
    name: 'Java',
    versions: [1, 2, 3],
    transports: ['tcp', 'http'],
    lacks: async () => await unless(JARS.every(existsSync) && (await has('java', '-version'))),
    command: (...args) => [
      ...['java', '-cp', JARS.join(delimiter)],
      fileURLToPath(new URL('programs/Lines.java', SOURCES)),
      ...args,
    ],
  },
  {
    name: 'Rust',
    versions: [1, 2, 3],
    transports: ['tcp', 'http'],
    lacks: () => unless(existsSync(RUST_CLIENT)),
    command: (...args) => [RUST_CLIENT, ...args],
  },
];

const EXPECTED = [0, 1, 2].map((row) => [
  `x y,=${row}`,
  row + 0.5,
  row,
  row > 0,
  `a "quoted"\nline \\ ${row}`,
  `1970-01-01T00:00:00.00000${row + 1}Z`,
]);

async function send(client: Client, ...args: [string, string, string]): Promise<void> {
  const [command = '', ...rest] = client.command(...args);
  const { stdout } = await run(command, rest);
  if (stdout.trim().split('\n').at(-1) !== 'sent') {
    throw new Error(stdout);
  }
}

async function sees(t: ExecutionContext, target: TestServer, table: string): Promise<void> {
  const query = `select s, f, i, b, v, m from ${table} order by i`;
  await shows(target, query, EXPECTED, credentials(ADMIN));
  t.pass();
}

for (const client of CLIENTS) {
  for (const transport of client.transports) {
    for (const version of client.versions) {
      test(`${client.name} writes over ${transport} in protocol version ${version}`, async (t) => {
        const lacks = await client.lacks();
        if (lacks !== null) {
          skip(t, lacks);
          return;
        }
        const table = `${client.name.replace('.', '')}_${transport}${version}`;
        const port = transport === 'tcp' ? portOf(server) : Number(new URL(server.url).port);
        const conf = `${transport}::addr=127.0.0.1:${port};protocol_version=${version};`;
        await send(client, conf, table, String(version));
        await sees(t, server, table);
        const found = await columns(server, table);
        t.is(found.includes('a DOUBLE[][]'), version >= 2);
        t.is(found.includes('d DECIMAL(18,3)'), version >= 3);
        if (version >= 2) {
          const query = `select a from ${table} where i = 1`;
          t.is(JSON.stringify(await rows(server, query)), '[[[[1,1.5],[2.5,3.5]]]]');
        }
        if (version >= 3) {
          t.deepEqual(await rows(server, `select d from ${table} limit 1`), [['-123.450']]);
        }
      });
    }
  }

  test(`${client.name} authenticates with a key`, async (t) => {
    const lacks = await client.lacks();
    if (lacks !== null) {
      skip(t, lacks);
      return;
    }
    const table = `${client.name.replace('.', '')}_signed`;
    for (const { server: target, key } of guarded) {
      await send(client, `tcp::addr=127.0.0.1:${portOf(target)};${key}`, table, '1');
      await sees(t, target, table);
    }
  });
}

test('Python connects over TLS and authenticates with a key', async (t) => {
  const [client] = CLIENTS;
  const lacks = (await client?.lacks()) ?? null;
  if (client === undefined || lacks !== null) {
    skip(t, lacks ?? 'no client');
    return;
  }
  const certificates = new CertificateFolder();
  t.teardown(() => {
    certificates.remove();
  });
  // This client rejects a self-signed root as a server certificate.
  certificates.make('lines', { isServer: true });
  const files = certificates.settings('lines').slice(1);
  const secure = await startTestServer({
    set: ['line.tcp.tls.enabled=true', ...files, `line.tcp.auth.db.path=${join(folder, 'keys')}`],
  });
  t.teardown(() => secure.stop());
  const roots = `tls_roots=${certificates.file('lines.crt')};`;
  const conf = `tcps::addr=localhost:${portOf(secure)};${roots}${guarded[0]?.key ?? ''}`;
  await send(client, conf, 'secure', '1');
  await sees(t, secure, 'secure');
});
