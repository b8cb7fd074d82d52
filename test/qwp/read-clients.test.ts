/** The official Python client reading over QWP, with only the address changed. */
import test from 'ava';

import { ADMIN, run as runAs, startAccessServer } from '../access/harness.js';
import { has, run, skip } from '../clients/tools.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { until } from '../until.js';

let server: TestServer;

function confOf({ url }: TestServer, more = ''): string {
  return `ws::addr=${url.replace('http://', '')};${more}`;
}

async function exec(sql: string): Promise<void> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(sql)}`);
  if (!response.ok) {
    throw new Error(`${sql}: ${await response.text()}`);
  }
}

/** Returns the JSON output of a program. */
async function python(program: string, ...args: readonly string[]): Promise<unknown> {
  const { stdout } = await run('python3', ['-W', 'ignore', '-c', program, ...args]);
  return JSON.parse(stdout);
}

test.before(async () => {
  server = await startTestServer();
  await exec(`CREATE TABLE every (
    b BOOLEAN, y BYTE, s SHORT, c CHAR, i INT, l LONG, f FLOAT, d DOUBLE, sym SYMBOL, v VARCHAR,
    st STRING, t TIMESTAMP, n TIMESTAMP_NS, dt DATE, u UUID, h LONG256, ip IPV4, g GEOHASH(4c),
    bin BINARY, d9 DECIMAL(9,1), d18 DECIMAL(18,2), d38 DECIMAL(38,3), d76 DECIMAL(76,4),
    a DOUBLE[], a2 DOUBLE[][], ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY`);
  await exec(`INSERT INTO every SELECT true, 1, 2, 'x', 3, 4, 1.5, 2.5, 'sym', 'vär', 'str',
    5, '1970-01-01T00:00:00.000000006Z', 7, '00112233-4455-6677-8899-aabbccddeeff', '0x0102',
    '1.2.3.4', 'u33d'::geohash(4c), '\\x6162', '1.5'::decimal(9,1), '12.34'::decimal(18,2),
    '-1.5'::decimal(38,3), '7.0'::decimal(76,4), ARRAY[1.5, null], ARRAY[[1.0],[2.0]], 8`);
  await exec('INSERT INTO every (ts) VALUES (9)');
  await exec(`CREATE TABLE large AS (SELECT x::timestamp ts, rnd_symbol('a', 'b', null) sym, x,
    x / 2.0 d FROM long_sequence(300000)) TIMESTAMP(ts) PARTITION BY DAY`);
});
test.after.always(() => server.stop());

async function isMissing(...modules: readonly string[]): Promise<boolean> {
  return !(await has('python3', '-c', `import questdb, ${modules.join(', ')}; questdb.connect`));
}

const SYMBOLS = 'dictionary<values=string, indices=uint32, ordered=0>';
const TYPES = `
import sys, json, questdb
with questdb.connect(sys.argv[1]) as db:
    table = db.query('SELECT * FROM every ORDER BY ts').to_arrow()
    columns = db.query('SELECT * FROM every').columns()
print(json.dumps({
    'types': [str(field.type) for field in table.schema],
    'columns': [kind for _, kind in columns],
    'rows': [[str(value) for value in row.values()] for row in table.to_pylist()]}))
`;

test('every type converts to Arrow', async (t) => {
  if (await isMissing('pyarrow')) {
    skip(t, 'the client is not installed');
    return;
  }
  t.deepEqual(await python(TYPES, confOf(server)), {
    types: [
      ...['bool', 'int8', 'int16', 'uint16', 'int32', 'int64', 'float', 'double', SYMBOLS],
      ...['string', 'string', 'timestamp[us, tz=UTC]', 'timestamp[ns, tz=UTC]'],
      ...['timestamp[ms, tz=UTC]', 'extension<arrow.uuid>', 'fixed_size_binary[32]', 'uint32'],
      ...['int32', 'binary', 'decimal64(18, 1)', 'decimal64(18, 2)', 'decimal128(38, 3)'],
      ...['decimal256(76, 4)', 'list<item: double>', 'list<item: list<item: double>>'],
      'timestamp[us, tz=UTC]',
    ],
    columns: [
      ...['BOOLEAN', 'BYTE', 'SHORT', 'CHAR', 'INT', 'LONG', 'FLOAT', 'DOUBLE', 'SYMBOL'],
      ...['VARCHAR', 'VARCHAR', 'TIMESTAMP', 'TIMESTAMP_NS', 'DATE', 'UUID', 'LONG256', 'IPv4'],
      ...['GEOHASH(4c)', 'BINARY', 'DECIMAL(18,1)', 'DECIMAL(18,2)', 'DECIMAL(38,3)'],
      ...['DECIMAL(76,4)', 'DOUBLE[]', 'DOUBLE[]', 'TIMESTAMP'],
    ],
    rows: [
      [
        ...['True', '1', '2', '120', '3', '4', '1.5', '2.5', 'sym', 'vär', 'str'],
        ...['1970-01-01 00:00:00.000005+00:00', '1970-01-01 00:00:00.000000006+00:00'],
        ...['1970-01-01 00:00:00.007000+00:00', '00112233-4455-6677-8899-aabbccddeeff'],
        ...[`b'\\x02\\x01${'\\x00'.repeat(30)}'`, '16909060', '855148', "b'ab'", '1.5', '12.34'],
        ...['-1.500', '7.0000', '[1.5, nan]', '[[1.0], [2.0]]'],
        '1970-01-01 00:00:00.000008+00:00',
      ],
      [
        ...['False', '0', '0', '0', ...Array<string>(21).fill('None')],
        '1970-01-01 00:00:00.000009+00:00',
      ],
    ],
  });
});

const FRAMES = `
import sys, json, questdb
with questdb.connect(sys.argv[1]) as db:
    sql = 'SELECT sym, x, d, ts FROM large ORDER BY ts'
    def pandas_frame():
        return db.query(sql).to_pandas()
    def polars_frame():
        return db.query(sql).to_polars()
    def arrow_batches():
        return [batch.num_rows for batch in db.query(sql).iter_arrow()]
    pandas, polars, batches = pandas_frame(), polars_frame(), arrow_batches()
    empty = db.query('SELECT * FROM every WHERE i = 99')
    print(json.dumps({
        'pandas': [len(pandas), int(pandas['x'].sum()), float(pandas['d'].sum()),
                   sorted(pandas['sym'].dropna().unique().tolist())],
        'polars': [polars.height, int(polars['x'].sum()), float(polars['d'].sum()),
                   sorted(polars['sym'].drop_nulls().unique().cast(str).to_list())],
        'batches': [sum(batches), len(batches) > 1],
        'same': (pandas['sym'].astype(object).fillna('-').tolist()
                 == polars['sym'].cast(str).fill_null('-').to_list()),
        'empty': [empty.to_arrow().num_rows, len(db.query('SELECT * FROM every WHERE i = 99')
                  .to_pandas().columns)],
    }))
`;

test('results, even empty ones, are read as pandas and Polars frames', async (t) => {
  if (await isMissing('pyarrow', 'pandas', 'polars')) {
    skip(t, 'the client is not installed');
    return;
  }
  const complete = [300_000, 45_000_150_000, 22_500_075_000, ['a', 'b']];
  const expected = {
    pandas: complete,
    polars: complete,
    batches: [300_000, true],
    same: true,
    empty: [0, 26],
  };
  for (const more of ['', 'compression=zstd;compression_level=3;', 'max_batch_rows=1000;']) {
    t.deepEqual(await python(FRAMES, confOf(server, more)), expected, more);
  }
});

const STATEMENTS = `
import sys, json, datetime, uuid, questdb
with questdb.connect(sys.argv[1]) as db:
    def rows(sql, binds=None):
        return [[str(value) for value in row] for row in db.query(sql, binds).iter_rows()]
    def refused(work):
        try:
            work()
        except questdb.QuestDBError as error:
            return str(error)
    out = {}
    utc = datetime.timezone.utc
    binds = [1, 2.5, 'é', True, datetime.datetime(2020, 1, 2, tzinfo=utc),
             questdb.TimestampMicros(5), questdb.TimestampNanos(6),
             uuid.UUID('00112233-4455-6677-8899-aabbccddeeff'), None]
    out['binds'] = rows('SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9', binds)
    out['where'] = rows('SELECT l FROM every WHERE sym = $1 AND ts < $2', ['sym', binds[4]])
    out['missing'] = refused(lambda: rows('SELECT nothing FROM every'))
    out['done'] = [
        list(db.execute('CREATE TABLE made (x INT, s SYMBOL)'))[1],
        list(db.execute("INSERT INTO made VALUES ($1, 'a'), (2, 'b')", [1]))[1],
        list(db.execute('UPDATE made SET x = 7'))[1],
        db.execute('SELECT 1')]
    with db.reader() as lease:
        lease_rows = [[str(cell) for cell in row]
                      for sql in ("SELECT s FROM made", "SELECT s FROM made WHERE s = 'b'")
                      for row in lease.query(sql, reset_symbol_dict=False).iter_rows()]
    out['lease'] = lease_rows
    with db.query('SELECT x FROM long_sequence(9000000000)') as endless:
        first = next(endless.iter_rows())
        endless.cancel()
    out['cancelled'] = [first[0], rows('SELECT 1')]
    out['late'] = refused(lambda: db.query(
        "SELECT x, case when x > 200000 then 'no' else '1' end::decimal(9,2) "
        "FROM long_sequence(300000)").to_arrow())
    print(json.dumps(out))
`;

test('clients support parameters, errors, row counts, pooling and cancellation', async (t) => {
  if (await isMissing('pyarrow')) {
    skip(t, 'the client is not installed');
    return;
  }
  const nothing = '1970-01-01 00:00:00+00:00';
  t.deepEqual(await python(STATEMENTS, confOf(server)), {
    binds: [
      [
        ...['1', '2.5', 'é', 'True', '2020-01-02 00:00:00+00:00'],
        ...['1970-01-01 00:00:00.000005+00:00', nothing, '00112233-4455-6677-8899-aabbccddeeff'],
        'None',
      ],
    ],
    where: [['4']],
    missing: 'Invalid column: nothing [position=7]',
    done: [0, 2, 2, null],
    lease: [['a'], ['b'], ['b']],
    cancelled: [1, [['1']]],
    late: 'inconvertible value: `no` [STRING -> DECIMAL(9,2)]',
  });
});

const STOPS = `
import sys, json, time, questdb
ROWS = 50000000
SQL = f'SELECT x, x / 2.0 d FROM long_sequence({ROWS})'
out = {'cancelled': [], 'late': []}
def ended(work):
    began = time.monotonic()
    try:
        work()
        code = 'ended'
    except questdb.QuestDBError as error:
        code = error.code.name
    return code if time.monotonic() - began < 20 else 'only after a while: ' + code
with questdb.connect(sys.argv[1]) as db, db.reader() as lease:
    out['knows'] = db.server_info().capabilities & 0x8
    def runs():
        return [row[0] for row in lease.query('SELECT 1').iter_rows()]
    for read in (lambda result: result.iter_arrow(), lambda result: result.iter_rows()):
        for batches in (0, 1, 5):
            result = lease.query(SQL)
            rows = read(result)
            for _ in range(batches):
                next(rows)
            out['cancelled'].append([ended(result.cancel), ended(result.cancel)])
            result.close()
            out['cancelled'][-1].append(runs())
    def late(sql, **options):
        return ended(lambda: lease.query(sql, **options).to_arrow())
    slow = 'SELECT count() FROM long_sequence(900000000000) WHERE x % 7 = 3'
    for sql in (slow, SQL + ' ORDER BY md5(x::varchar)', 'CREATE TABLE late AS (' + slow + ')'):
        out['late'].append([late(sql, timeout=200), runs()])
    out['none'] = late('SELECT 1', timeout=0)
    out['all'] = late('SELECT 1', timeout=2 ** 63 - 1)
with questdb.connect(sys.argv[1] + 'query_timeout_ms=200;') as db:
    out['configured'] = ended(lambda: db.query(slow).to_arrow())
    result = db.query(SQL)
    next(result.iter_rows())
    result.close()
    out['next'] = [row[0] for row in db.query('SELECT 1').iter_rows()]
print(json.dumps(out))
`;

test('cancelled, timed-out and abandoned queries end immediately', async (t) => {
  if (await isMissing('pyarrow')) {
    skip(t, 'the client is not installed');
    return;
  }
  t.deepEqual(await python(STOPS, confOf(server)), {
    knows: 0x8,
    cancelled: Array<unknown>(6).fill(['ended', 'ended', [1]]),
    late: Array<unknown>(3).fill(['QueryTimeout', [1]]),
    none: 'ended',
    all: 'ended',
    configured: 'QueryTimeout',
    next: [1],
  });
  const activity = "SELECT count() FROM query_activity() WHERE query LIKE '%long_sequence(%'";
  await until(async () => {
    const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(activity)}`);
    return (await response.text()).includes('[[1]]');
  }, 'only the activity query is running');
});

test('clients log in, and wrong credentials are refused', async (t) => {
  if (await isMissing('pyarrow')) {
    skip(t, 'the client is not installed');
    return;
  }
  const program = `
import sys, json, questdb
out = []
for login in sys.argv[2:]:
    try:
        with questdb.connect(sys.argv[1] + login) as db:
            out.append([[int(cell) for cell in row] for row in db.query('SELECT 1').iter_rows()])
    except questdb.QuestDBError as error:
        out.append(error.code.name)
print(json.dumps(out))
`;
  const guarded = await startAccessServer();
  try {
    await runAs(guarded, "CREATE USER reader WITH PASSWORD 'pass'", 'GRANT HTTP TO reader');
    const [, password = ''] = ADMIN.split(':');
    const logins = [
      `username=admin;password=${password};`,
      'username=reader;password=pass;',
      'username=reader;password=wrong;',
      '',
    ];
    t.deepEqual(await python(program, confOf(guarded), ...logins), [
      [[1]],
      [[1]],
      'AuthError',
      'AuthError',
    ]);
  } finally {
    await guarded.stop();
  }
});
