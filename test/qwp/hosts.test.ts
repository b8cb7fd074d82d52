/** The official Python client with several addresses, and with encryption in both directions. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';

import { ADMIN, run as runAs, startAccessServer } from '../access/harness.js';
import { has, run, skip } from '../clients/tools.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { rows } from '../line/harness.js';
import { CertificateFolder } from '../tls/certificates.js';
import { until } from '../until.js';

async function isMissing(t: ExecutionContext): Promise<boolean> {
  const isThere = await has('python3', '-c', 'import questdb, pyarrow; questdb.connect');
  if (!isThere) {
    skip(t, 'the client is not installed');
  }
  return !isThere;
}

function address({ url }: TestServer): string {
  return url.replace(/^https?:\/\//, '');
}

/** Returns the JSON output of a program. */
async function python(program: string, ...args: readonly string[]): Promise<unknown> {
  const { stdout } = await run('python3', ['-W', 'ignore', '-c', program, ...args]);
  return JSON.parse(stdout);
}

async function start(t: ExecutionContext, ...set: readonly string[]): Promise<TestServer> {
  const server = await startTestServer({ set });
  t.teardown(() => server.stop());
  return server;
}

/** Returns an address that nothing listens on. */
async function deadAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `127.0.0.1:${port}`;
}

const INGRESS_AND_EGRESS = `
import sys, json, questdb
out = []
for conf in sys.argv[1:]:
    try:
        with questdb.connect(conf) as db:
            with db.sender() as sender:
                sender.row('both', columns={'x': 7}, at=questdb.TimestampMicros(1))
                sender.flush(wait=True)
            out.append([[int(cell) for cell in row]
                        for row in db.query('SELECT x FROM both').iter_rows()])
    except questdb.QuestDBError as error:
        out.append(error.code.name)
print(json.dumps(out))
`;

test('writes and queries work over TLS if the client trusts the CA', async (t) => {
  if (await isMissing(t)) {
    return;
  }
  const folder = new CertificateFolder();
  t.teardown(() => {
    folder.remove();
  });
  // This client rejects a self-signed root as a server certificate.
  folder.make('server', { isServer: true });
  folder.make('other', { isServer: true });
  const server = await startAccessServer(undefined, ...folder.settings('server'));
  t.teardown(() => server.stop());
  const [, port = ''] = address(server).split(':');
  const conf = (roots: string, password: string): string =>
    `wss::addr=localhost:${port};tls_roots=${folder.file(roots)};` +
    `username=admin;password=${password};`;
  const [, password = ''] = ADMIN.split(':');
  const answers = await python(
    INGRESS_AND_EGRESS,
    conf('server.crt', password),
    conf('server.crt', 'wrong'),
    conf('other.crt', password),
  );
  t.deepEqual(answers, [[[7]], 'AuthError', 'SocketError']);
});

const ONE_WAY = `
import sys, json, questdb
out = []
try:
    with questdb.Sender.from_conf(sys.argv[1]) as sender:
        sender.row('oneway', columns={'x': 1}, at=questdb.ServerTimestamp)
        sender.flush()
    out.append('sent')
except questdb.QuestDBError as error:
    out.append(error.code.name)
try:
    with questdb.connect(sys.argv[1], lazy_connect=True) as db:
        out.append([[int(cell) for cell in row] for row in db.query('SELECT 1').iter_rows()])
except questdb.QuestDBError as error:
    out.append(error.code.name)
print(json.dumps(out))
`;

test('a wrong password is refused for writes and queries', async (t) => {
  if (await isMissing(t)) {
    return;
  }
  const server = await startAccessServer();
  t.teardown(() => server.stop());
  await runAs(
    server,
    "CREATE USER ann WITH PASSWORD 'right-1234'",
    'GRANT HTTP, CREATE TABLE TO ann',
  );
  const conf = `ws::addr=${address(server)};username=ann;password=`;
  t.deepEqual(await python(ONE_WAY, `${conf}right-1234;`), ['sent', [[1]]]);
  t.deepEqual(await python(ONE_WAY, `${conf}wrong;`), ['AuthError', 'AuthError']);
});

test('if the first address is down or refuses rows, the next address is used', async (t) => {
  if (await isMissing(t)) {
    return;
  }
  const server = await start(t);
  const conf = `ws::addr=${await deadAddress()},${address(server)};`;
  t.deepEqual(await python(INGRESS_AND_EGRESS, conf), [[[7]]]);
  const store = mkdtempSync(join(tmpdir(), 'tidemark-qwp-store-'));
  t.teardown(() => {
    rmSync(store, { recursive: true, force: true });
  });
  await rows(server, 'drop table both');
  t.deepEqual(await python(INGRESS_AND_EGRESS, `${conf}sf_dir=${store};`), [[[7]]]);
  const readOnly = await start(t, 'http.security.readonly=true');
  const written = `ws::addr=${address(readOnly)},${address(server)};`;
  t.deepEqual(await python(ONE_WAY, written), ['sent', [[1]]]);
  t.deepEqual(await rows(server, 'select count() from oneway'), [[1]]);
});

const STOPPING = `
import sys, json, time, questdb
with questdb.connect(sys.argv[1], sf_dir=sys.argv[2]) as db:
    with db.sender() as sender:
        for batch in range(60):
            for row in range(batch * 100, batch * 100 + 100):
                sender.row('moved', columns={'x': row}, at=questdb.TimestampMicros(1 + row))
            sender.flush()
            if batch == 20:
                sender.flush(wait=True)
                print('waits', flush=True)
                sys.stdin.readline()
            time.sleep(0.005)
        sender.flush(wait=True)
    print(json.dumps([[int(cell) for cell in row]
                      for row in db.query('SELECT count(), max(x) FROM moved').iter_rows()]))
`;

test('after a server is killed, writes and queries continue at the next address', async (t) => {
  if (await isMissing(t)) {
    return;
  }
  const root = mkdtempSync(join(tmpdir(), 'tidemark-qwp-'));
  const store = mkdtempSync(join(tmpdir(), 'tidemark-qwp-store-'));
  t.teardown(() => {
    rmSync(root, { recursive: true, force: true });
    rmSync(store, { recursive: true, force: true });
  });
  const first = await startTestServer({ root });
  const second = await start(t);
  const conf = `ws::addr=${address(first)},${address(second)};`;
  const args = ['-W', 'ignore', '-c', STOPPING, conf, store];
  const program = spawn('python3', args, { stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(() => program.kill());
  const over = once(program, 'close');
  let printed = '';
  program.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  await until(() => printed.includes('waits'), 'the client is waiting');
  const killed = once(first.process, 'close');
  first.process.kill('SIGKILL');
  await killed;
  program.stdin.end('go on\n');
  t.is((await over)[0], 0);
  const last = printed.trim().split('\n').at(-1) ?? '';
  const [[count = 0, maximum = 0] = []] = JSON.parse(last) as number[][];
  t.is(maximum, 5_999);
  const again = await startTestServer({ root });
  t.teardown(() => again.stop());
  const before = (await rows(again, 'select x from moved')).flat().map(Number);
  const after = (await rows(second, 'select x from moved')).flat().map(Number);
  t.is(after.length, count);
  // Rows that the first server acknowledged exist there; all other rows are on the second.
  t.deepEqual(
    before,
    Array.from({ length: 2_100 }, (_, x) => x),
  );
  t.deepEqual(
    after,
    Array.from({ length: 3_900 }, (_, at) => 2_100 + at),
  );
});
