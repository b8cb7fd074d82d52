/** The official Python client, with only the address changed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import test, { type ExecutionContext } from 'ava';

import { startAccessServer } from '../access/harness.js';
import { has, run, skip } from '../clients/tools.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { columns, rows } from '../line/harness.js';
import { CertificateFolder } from '../tls/certificates.js';

let server: TestServer;
let isThere = false;

test.before(async () => {
  server = await startTestServer();
  isThere = await has('python3', '-c', 'import questdb, numpy, pandas, polars, pyarrow');
});
test.after.always(() => server.stop());

function address(target = server): string {
  return target.url.replace(/^https?:\/\//, '');
}

/** Returns the output of a Python program; null if the client is not installed. */
async function python(
  t: ExecutionContext,
  program: string,
  ...args: readonly string[]
): Promise<string | null> {
  if (!isThere) {
    skip(t, 'the client is not installed');
    return null;
  }
  const { stdout } = await run('python3', ['-W', 'ignore', '-c', program, ...args]);
  return stdout.trim();
}

const ROWS = `
import sys, datetime, decimal, ipaddress, uuid, numpy, questdb
with questdb.connect(sys.argv[1]) as db, db.sender() as sender:
    for row in range(2500):
        sender.row('typed', symbols={'s': 'x y,=%d' % row}, columns={
            'f': row + 0.5, 'i': row, 'b': row > 0, 'v': 'a "quoted"\\nline %d' % row,
            'm': questdb.TimestampMicros(row + 1), 'n': questdb.TimestampNanos(row + 1),
            'a': numpy.array([[row, 1.5], [2.5, 3.5]]), 'd': decimal.Decimal('-123.45'),
            'u': uuid.UUID('11111111-2222-3333-4444-555555555555'),
            'ip': ipaddress.ip_address('1.2.3.4'), 'c': questdb.Char('x'),
            'dm': questdb.DateMillis(5), 'l': questdb.Long256(0x12ab),
            'g': questdb.Geohash(197121, 20), 'y': b'bytes'},
            at=questdb.TimestampNanos(1700000000000000000 + row))
    sender.row('typed', columns={'i': 2500}, at=questdb.ServerTimestamp)
    sender.row('other', columns={'x': 1}, at=questdb.ServerTimestamp)
    sender.flush(wait=True)
print('sent')
`;

test('the client writes every type into a column of that type', async (t) => {
  const printed = await python(t, ROWS, `ws::addr=${address()};`);
  if (printed === null) {
    return;
  }
  t.is(printed, 'sent');
  t.deepEqual(await columns(server, 'typed'), [
    's SYMBOL',
    'f DOUBLE',
    'i LONG',
    'b BOOLEAN',
    'v VARCHAR',
    'm TIMESTAMP',
    'n TIMESTAMP_NS',
    'a DOUBLE[][]',
    'd DECIMAL(18,3)',
    'u UUID',
    'ip IPv4',
    'c CHAR',
    'dm DATE',
    'l LONG256',
    'g GEOHASH(4c)',
    'y BINARY',
    'timestamp TIMESTAMP_NS',
  ]);
  const first = 's, f, i, b, v, m, n, d, u, ip, c, dm, l, g, length(y)';
  t.deepEqual(await rows(server, `select ${first} from typed where i = 7`), [
    [
      'x y,=7',
      7.5,
      7,
      true,
      'a "quoted"\nline 7',
      '1970-01-01T00:00:00.000008Z',
      '1970-01-01T00:00:00.000000008Z',
      '-123.450',
      '11111111-2222-3333-4444-555555555555',
      '1.2.3.4',
      'x',
      '1970-01-01T00:00:00.005Z',
      '0x12ab',
      '60h1',
      5,
    ],
  ]);
  const sums = 'count(), count(s), sum(i), count_distinct(s)';
  t.deepEqual(await rows(server, `select ${sums} from typed`), [[2501, 2500, 3_126_250, 2500]]);
  t.deepEqual(await rows(server, 'select count() from other'), [[1]]);
});

const FRAMES = `
import sys, datetime, decimal, questdb, numpy as np, pandas as pd, polars as pl, pyarrow as pa
count = 50000
times = pd.to_datetime(1700000000000000 + np.arange(count) * 1000, unit='us')
numbers = np.arange(count)
optional = [None if at % 3 == 0 else at + 0.5 for at in range(count)]
names = ['a', 'b', 'c']
with questdb.connect(sys.argv[1]) as db:
    db.dataframe(pd.DataFrame({
        's': pd.Categorical.from_codes(numbers % 3, names), 'x': optional, 'i': numbers,
        'i8': numbers.astype('int8'), 'i32': numbers.astype('int32'),
        't': ['é%d' % n for n in numbers],
        'b': numbers % 2 == 0, 'f32': numbers.astype('float32'), 'ts': times}),
        table_name='pandas', at='ts')
    db.dataframe(pl.DataFrame({
        's': pl.Series([names[n % 3] for n in numbers], dtype=pl.Categorical), 'x': optional,
        'i': numbers, 't': ['é%d' % n for n in numbers],
        'ts': pl.Series(times).cast(pl.Datetime('us'))}), table_name='polars', at='ts')
    db.dataframe(pa.table({
        's': pa.array([names[n % 3] for n in numbers]).dictionary_encode(),
        'x': pa.array(optional), 'i': pa.array(numbers), 'f32': pa.array(numbers, pa.float32()),
        'd': pa.array([decimal.Decimal('%d.1234' % n) for n in numbers], pa.decimal128(12, 4)),
        'y': pa.array([None if n % 2 else b'xy' for n in numbers]),
        'ts': pa.array(numbers, pa.timestamp('ns'))}), table_name='arrow', at='ts')
print('sent')
`;

test('pandas, Polars and Arrow frames are written', async (t) => {
  const printed = await python(t, FRAMES, `ws::addr=${address()};`);
  if (printed === null) {
    return;
  }
  t.is(printed, 'sent');
  t.deepEqual(await columns(server, 'pandas'), [
    's SYMBOL',
    'x DOUBLE',
    'i LONG',
    'i8 INT',
    'i32 LONG',
    't VARCHAR',
    'b BOOLEAN',
    'f32 FLOAT',
    'timestamp TIMESTAMP',
  ]);
  const sums = "count(), count(x), sum(i), sum(case when s = 'b' then i else 0 end)";
  const expected = [50_000, 33_333, 1_249_975_000, 416_675_000];
  for (const table of ['pandas', 'polars', 'arrow']) {
    t.deepEqual((await rows(server, `select ${sums} from ${table}`))[0], expected, table);
  }
  for (const table of ['pandas', 'polars']) {
    const last = `select t, timestamp from ${table} where i = 49999`;
    t.deepEqual(await rows(server, last), [['é49999', '2023-11-14T22:14:09.999000Z']]);
  }
  t.deepEqual(await rows(server, 'select d, length(y), timestamp from arrow where i = 4'), [
    ['4.1234', 2, '1970-01-01T00:00:00.000000004Z'],
  ]);
  t.deepEqual(await rows(server, 'select count(y), count(d) from arrow'), [[25_000, 50_000]]);
});

test('a refused data frame raises an error with the reason', async (t) => {
  const program = `
import sys, pandas, questdb
with questdb.connect(sys.argv[1]) as db:
    times = pandas.to_datetime([1, 2], unit='us')
    db.dataframe(pandas.DataFrame({'x': [1, 2], 'ts': times}), table_name='refused', at='ts')
    try:
        wrong = pandas.DataFrame({'x': ['a', 'b'], 'ts': times})
        db.dataframe(wrong, table_name='refused', at='ts')
    except questdb.QuestDBError as error:
        print(error)
`;
  const printed = await python(t, program, `ws::addr=${address()};`);
  if (printed !== null) {
    t.regex(printed, /column 'x' of 'refused' has type LONG and does not accept VARCHAR/);
    t.deepEqual(await rows(server, 'select count() from refused'), [[2]]);
  }
});

const LOGIN = `
import sys, questdb
try:
    with questdb.Sender.from_conf(sys.argv[1]) as sender:
        sender.row('logins', columns={'x': 1}, at=questdb.ServerTimestamp)
        sender.flush()
    print('sent')
except questdb.QuestDBError as error:
    print(error.code)
`;

test('clients log in over TLS, and a wrong password is refused', async (t) => {
  const folder = new CertificateFolder();
  folder.make('server');
  const guarded = await startAccessServer(undefined, ...folder.settings('server'));
  try {
    const conf = `wss::addr=${address(guarded)};tls_verify=unsafe_off;username=admin;`;
    const wrong = await python(t, LOGIN, `${conf}password=wrong;`);
    if (wrong !== null) {
      t.regex(wrong, /AuthError/);
      t.is(await python(t, LOGIN, `${conf}password=quest;`), 'sent');
    }
  } finally {
    await guarded.stop();
    folder.remove();
  }
});

const STORED = `
import sys, time, questdb
with questdb.connect(sys.argv[1], lazy_connect=True, sf_dir=sys.argv[2]) as db:
    with db.sender() as sender:
        for batch in range(60):
            for row in range(batch * 100, batch * 100 + 100):
                at = questdb.TimestampMicros(1700000000000000 + row)
                sender.row('kept', columns={'x': row}, at=at)
            sender.flush()
            print(batch, flush=True)
            time.sleep(0.01)
        sender.flush(wait=True)
print('sent', flush=True)
`;

/** Waits until a program has printed a line. */
async function printed(program: ChildProcess, line: string): Promise<void> {
  if (program.stdout !== null) {
    for await (const text of createInterface({ input: program.stdout })) {
      if (text === line) {
        return;
      }
    }
  }
}

test('a client with a local store loses no rows when the server is killed', async (t) => {
  if (!isThere) {
    skip(t, 'the client is not installed');
    return;
  }
  const root = mkdtempSync(join(tmpdir(), 'tidemark-qwp-'));
  const store = mkdtempSync(join(tmpdir(), 'tidemark-qwp-store-'));
  const first = await startTestServer({ root });
  const create =
    'create table kept (x long, timestamp timestamp) timestamp(timestamp) partition by day wal ' +
    'dedup upsert keys(timestamp, x)';
  await rows(first, create);
  const conf = `ws::addr=${address(first)};`;
  const program = spawn('python3', ['-W', 'ignore', '-c', STORED, conf, store], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const over = once(program, 'close');
  await printed(program, '20');
  const killed = once(first.process, 'close');
  first.process.kill('SIGKILL');
  await killed;
  const second = await startTestServer({ root, set: [`http.bind.to=${address(first)}`] });
  try {
    program.stdout.resume();
    t.is((await over)[0], 0);
    const counts = await rows(second, 'select count(), count_distinct(x), sum(x) from kept');
    t.deepEqual(counts, [[6_000, 6_000, 17_997_000]]);
  } finally {
    await second.stop();
    rmSync(root, { recursive: true, force: true });
    rmSync(store, { recursive: true, force: true });
  }
});
