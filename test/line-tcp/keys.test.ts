/** Senders that authenticate with a key, and the permissions of the key's user. */
import {
  createPrivateKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  sign,
} from 'node:crypto';
import { once } from 'node:events';
import { connect as connectSecure } from 'node:tls';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';

import { rows as rowsAs, run } from '../access/harness.js';
import { runCli, exitCode, startTestServer, type TestServer } from '../golden/server.js';
import { rows } from '../line/harness.js';
import { readKeys } from '../../ts/line-tcp/key-store.js';
import { CertificateFolder } from '../tls/certificates.js';
import { until } from '../until.js';
import { events, open, portOf, Sender, shows } from './harness.js';

interface Key {
  readonly privateKey: KeyObject;
  /** The line for this key in the file. */
  readonly line: string;
}

function makeKey(name: string): Key {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  return { privateKey, line: `${name} ec-p-256-sha256 ${x} ${y}` };
}

const ANN = makeKey('ann');
const BOB = makeKey('bob');

let folder = '';
let keys = '';

test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tidemark-keys-'));
  keys = join(folder, 'keys.txt');
  await writeFile(keys, `# senders\n\n${ANN.line}\n${BOB.line} # both\n`);
});
test.after.always(() => rm(folder, { recursive: true, force: true }));

async function start(t: ExecutionContext, ...set: readonly string[]): Promise<TestServer> {
  const server = await startTestServer({
    set: [`line.tcp.auth.db.path=${keys}`, 'line.tcp.commit.interval.default=50ms', ...set],
  });
  t.teardown(() => server.stop());
  return server;
}

type Encoding = 'der' | 'ieee-p1363';

/** Signs the server's challenge; resolves when the signature has been sent. */
async function prove(
  { socket }: Sender,
  name: string,
  key: KeyObject,
  encoding: Encoding = 'der',
): Promise<string> {
  const challenge = readLine(new Sender(socket));
  // The Python client also sends the line feed separately.
  socket.write(name);
  socket.write('\n');
  const text = await challenge;
  const signature = sign('sha256', Buffer.from(text), { key, dsaEncoding: encoding });
  socket.write(`${signature.toString('base64')}\n`);
  return text;
}

async function readLine({ socket }: Sender): Promise<string> {
  let text = '';
  while (!text.endsWith('\n')) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    text += chunk.toString('latin1');
  }
  return text.slice(0, -1);
}

test('signatures in DER and IEEE P1363 encoding are accepted', async (t) => {
  const server = await start(t);
  const challenges: string[] = [];
  for (const [name, key, encoding] of [
    ['ann', ANN, 'der'],
    ['bob', BOB, 'ieee-p1363'],
  ] as const) {
    const sender = await open(server, t);
    challenges.push(await prove(sender, name, key.privateKey, encoding));
    await sender.send(`signed,by=${name} x=1i\n`);
    await sender.end();
  }
  t.deepEqual(await rows(server, 'select by from signed order by by'), [['ann'], ['bob']]);
  for (const challenge of challenges) {
    t.regex(challenge, /^[\x21-\x7e]{512}$/);
  }
  t.not(challenges[0], challenges[1]);
});

test('senders without a valid signature are refused, and names cannot be probed', async (t) => {
  const server = await start(t);
  const attempts: readonly ((sender: Sender) => Promise<unknown>)[] = [
    (sender) => prove(sender, 'ann', BOB.privateKey),
    (sender) => prove(sender, 'eve', ANN.privateKey),
    (sender) => sender.send('open x=1i\nopen x=2i\n'),
    (sender) => sender.send('y'.repeat(1_000)),
    async (sender) => {
      await sender.send('ann\n');
      await readLine(sender);
      await sender.send('not base64!\n');
    },
    async (sender) => {
      await sender.send('ann\n');
      await readLine(sender);
      await sender.send('z'.repeat(10_000));
    },
  ];
  for (const attempt of attempts) {
    const sender = await open(server, t);
    await attempt(sender);
    await sender.closed;
  }
  t.deepEqual(await rows(server, "select count() from tables() where table_name = 'open'"), [[0]]);
  const reasons = events(server, 'login_failed').map(({ user, reason }) => [user, reason]);
  const unfit = 'wrong signature or unknown key';
  t.deepEqual(reasons.slice(0, 2), [
    ['ann', unfit],
    ['eve', unfit],
  ]);
  t.is(reasons.length, attempts.length);
});

test("a key has its user's rights only as long as the user has them", async (t) => {
  const server = await start(t, 'acl.enabled=true', 'acl.password.hash.iteration.count=4096');
  await run(
    server,
    'CREATE TABLE feed (x LONG, ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY',
    'CREATE SERVICE ACCOUNT ann',
    'GRANT ILP TO ann',
    'GRANT INSERT ON feed TO ann',
    'CREATE SERVICE ACCOUNT bob',
    'GRANT HTTP TO bob',
    'GRANT INSERT ON feed TO bob',
  );
  const admin = (query: string): ReturnType<typeof rowsAs> => rowsAs(server, 'admin:quest', query);
  const bob = await open(server, t);
  await prove(bob, 'bob', BOB.privateKey);
  await bob.closed;
  const ann = await open(server, t);
  await prove(ann, 'ann', ANN.privateKey);
  await ann.send('feed x=1i 1\n');
  await until(
    async () => JSON.stringify(await admin('select x from feed')) === '[[1]]',
    "ann's row is visible",
  );
  const other = await open(server, t);
  await prove(other, 'ann', ANN.privateKey);
  await other.send('feed x=2i,y=3i 2\n');
  await other.closed;
  await run(server, 'ALTER SERVICE ACCOUNT ann DISABLE');
  await ann.send('feed x=3i 3\n');
  await ann.closed;
  t.deepEqual(await admin('select x from feed'), [[1]]);
  const messages = events(server, 'lines_refused').map(({ message }) => String(message));
  t.deepEqual(messages, ['Access denied [ADD COLUMN on feed]', 'Access denied [ILP]']);
});

/** Returns the private key, which is shown only once. */
async function shownKey(server: TestServer, account: string): Promise<KeyObject> {
  const statement = `ALTER SERVICE ACCOUNT ${account} CREATE TOKEN TYPE JWK`;
  const [[name, x, y, d] = []] = await rowsAs(server, 'admin:quest', statement);
  if (name !== account) {
    throw new Error(`a key of ${String(name)}`);
  }
  const jwk = { kty: 'EC', crv: 'P-256', x, y, d } as JsonWebKey;
  return createPrivateKey({ key: jwk, format: 'jwk' });
}

test('a key created by SQL is accepted until it is dropped or replaced', async (t) => {
  const set = ['acl.enabled=true', 'acl.password.hash.iteration.count=4096'];
  const server = await startTestServer({ set: [...set, 'line.tcp.commit.interval.default=50ms'] });
  t.teardown(() => server.stop());
  await run(
    server,
    'CREATE TABLE feed (x LONG, ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY',
    'CREATE SERVICE ACCOUNT ann',
    'GRANT ILP TO ann',
    'GRANT INSERT ON feed TO ann',
  );
  const written = async (x: number): Promise<void> => {
    const query = `select count() from feed where x = ${x}`;
    await until(
      async () => Number((await rowsAs(server, 'admin:quest', query))[0]?.[0]) === 1,
      `row ${x} is visible`,
    );
  };
  const changes = [
    'ALTER SERVICE ACCOUNT ann DROP TOKEN TYPE JWK',
    'ALTER SERVICE ACCOUNT ann CREATE TOKEN TYPE JWK',
  ];
  for (const [at, change] of changes.entries()) {
    const key = await shownKey(server, 'ann');
    const sender = await open(server, t);
    await prove(sender, 'ann', key);
    await sender.send(`feed x=${at}i\n`);
    await written(at);
    await run(server, change);
    await sender.send('feed x=-1i\n');
    await sender.closed;
    const late = await open(server, t);
    await prove(late, 'ann', key);
    await late.closed;
  }
  const messages = events(server, 'lines_refused').map(({ message }) => String(message));
  t.deepEqual(messages, Array(2).fill('the key is no longer valid'));
  t.is(events(server, 'login_failed').length, 2);
  t.deepEqual(await rowsAs(server, 'admin:quest', 'select count() from feed where x < 0'), [[0]]);
});

test('removing a key from the file closes only its own connections', async (t) => {
  const file = join(folder, 'changing.txt');
  await writeFile(file, `${ANN.line}\n${BOB.line}\n`);
  const server = await startTestServer({
    set: [`line.tcp.auth.db.path=${file}`, 'line.tcp.commit.interval.default=50ms'],
  });
  t.teardown(() => server.stop());
  const [ann, bob] = [await open(server, t), await open(server, t)];
  await prove(ann, 'ann', ANN.privateKey);
  await prove(bob, 'bob', BOB.privateKey);
  await ann.send('kept,by=ann x=1i 1\n');
  await shows(server, 'select x from kept', [[1]]);
  await writeFile(file, `${BOB.line}\n`);
  server.process.kill('SIGHUP');
  await until(() => server.log().includes('configuration_reloaded'), 'the file is reloaded');
  await ann.send('kept,by=ann x=2i 2\n');
  await ann.closed;
  await bob.send('kept,by=bob x=3i 3\n');
  await shows(server, 'select x from kept', [[1], [3]]);
  t.like(events(server, 'lines_refused'), [{ user: 'ann' }]);
});

test('the port requires keys if other protocols require a login', async (t) => {
  const server = await startTestServer({ set: ['http.user=a', 'http.password=b'] });
  t.teardown(() => server.stop());
  t.is(server.line(), 'off');
  t.regex(String(events(server, 'line_tcp_off')[0]?.['notice']), /line\.tcp\.auth\.db\.path/);
});

test('the server does not start with an invalid key file, and reports the line', async (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['ann ec-p-256-sha256 x y\n', /line 1: expected 'name ec-p-256-sha256 x y'/],
    [`${ANN.line}\n${ANN.line}\n`, /line 2: duplicate name 'ann'/],
    [`${ANN.line.replace('sha256', 'sha512')}\n`, /line 1: expected/],
    [`${ANN.line.slice(0, -5)}AAAAA\n`, /line 1: x and y are not a point on the curve/],
  ];
  for (const [text, reason] of cases) {
    t.throws(() => readKeys(text), { message: reason });
  }
  const set = ['line.tcp.auth.db.path=nowhere', 'line.tcp.net.bind.to=127.0.0.1:0'];
  const args = set.flatMap((one) => ['--set', one]);
  const more = ['http.bind.to', 'pg.net.bind.to', 'http.min.bind.to'].flatMap((key) => [
    '--set',
    `${key}=127.0.0.1:0`,
  ]);
  const child = runCli(['serve', '--root', join(folder, 'root'), ...args, ...more]);
  t.is(await exitCode(child.process), 78);
  t.regex(child.err(), /cannot use the keys in '.*root\/nowhere': ENOENT/);
});

test('senders can connect over TLS with the server certificate', async (t) => {
  const certificates = new CertificateFolder();
  t.teardown(() => {
    certificates.remove();
  });
  certificates.make('lines');
  const settings = certificates.settings('lines').filter((one) => !one.startsWith('tls.enabled'));
  const server = await start(t, 'line.tcp.tls.enabled=true', ...settings);
  const socket = connectSecure({
    port: portOf(server),
    host: '127.0.0.1',
    rejectUnauthorized: false,
  });
  await once(socket, 'secureConnect');
  const sender = new Sender(socket);
  await prove(sender, 'ann', ANN.privateKey);
  await sender.send('secret x=1i 1\n');
  await shows(server, 'select x from secret', [[1]]);
  const plain = await open(server, t);
  await plain.send('ann\n');
  await plain.closed;
  await sender.end();
  t.deepEqual(events(server, 'lines_refused'), []);
});
