/** Queries give the same answers whether or not their literals are replaced by parameters. */
import test from 'ava';

import { liftLiterals } from '../../ts/engine/literals.js';
import { StatementCache } from '../../ts/session/statement-cache.js';
import { readStatement } from '../../ts/sql/index.js';
import { startTestServer, type TestServer } from '../golden/server.js';

/** Returns the query with parameters, followed by its values with their types, if known. */
function lifted(text: string): string | null {
  const found = liftLiterals(text);
  const values = (found?.values ?? []).map((value, at) => `${value}:${found?.types[at] ?? '?'}`);
  return found === null ? null : [found.text, ...values].join(' | ');
}

test('literals in WHERE comparisons are extracted as parameters', (t) => {
  t.is(lifted("SELECT 1 FROM t WHERE s = 'it''s'"), "SELECT 1 FROM t WHERE s = $1 | it's:?");
  t.is(
    lifted("SELECT * FROM t WHERE (a > 1.5 AND b<>3000000000) OR ts IN '2024-05';"),
    'SELECT * FROM t WHERE (a > $1 AND b<>$2) OR ts IN $3; | ' +
      '1.5:DOUBLE | 3000000000:LONG | 2024-05:?',
  );
  t.is(
    lifted('select x from t where x between 1 and 2 and y in (3, 4) limit 5'),
    'select x from t where x between $1 and $2 and y in ($3, $4) limit 5 | ' +
      '1:INT | 2:INT | 3:INT | 4:INT',
  );
  t.is(
    lifted("SELECT a, 'x' FROM t WHERE a = 'y' SAMPLE BY 1h FILL(0) ORDER BY 1"),
    "SELECT a, 'x' FROM t WHERE a = $1 SAMPLE BY 1h FILL(0) ORDER BY 1 | y:?",
  );
});

test('other literals are not extracted', (t) => {
  for (const stays of [
    "UPDATE t SET a = 1 WHERE b = 'x'",
    "EXPLAIN SELECT * FROM t WHERE b = 'x'",
    "WITH q AS (SELECT 1) SELECT * FROM q WHERE b = 'x'",
    "SELECT * FROM t WHERE a IN (SELECT b FROM u WHERE c = 'x')",
    "SELECT 1 FROM t WHERE a = 'x' UNION SELECT 1 FROM t WHERE a = 'y'",
    "SELECT * FROM t WHERE a = 'x' AND b = $1",
    "SELECT * FROM t WHERE a = 'x' AND b = @b",
    "SELECT sum(a) FILTER (WHERE b = 'x') FROM t",
    "SELECT * FROM t WHERE a = timestamp '2024-01-01'",
    "SELECT * FROM t WHERE a = E'x'",
    "SELECT * FROM t WHERE a = 'x'::symbol",
    "SELECT * FROM t WHERE a > '2024' AT TIME ZONE 'UTC'",
    "SELECT * FROM t WHERE a > dateadd('d', -1, now())",
    "SELECT * FROM t WHERE a LIKE 'x%'",
    'SELECT * FROM t WHERE (a, b) = (1, 2)',
    'SELECT * FROM t WHERE a = 1 + 2',
    'SELECT * FROM t WHERE a[1] = b[2]',
    'SELECT * FROM t WHERE a > 1L AND b = 1.5f AND c = 12.5m AND d = 1_000',
    "SELECT * FROM t WHERE a = '1704153600000000' OR a = '-1'",
    "SELECT * FROM t WHERE a = 'x",
    `SELECT * FROM t WHERE a = 'x'${' '.repeat(4_096)}`,
    `SELECT * FROM t WHERE a IN (${Array.from({ length: 17 }, (_, at) => at).join(',')})`,
    'SELECT * FROM t',
    '',
  ]) {
    t.is(lifted(stays), null, stays);
  }
});

test('a repeated statement is parsed without extracting its literals', (t) => {
  const cache = new StatementCache(readStatement);
  const text = "SELECT * FROM t WHERE a = 'x'";
  t.is(cache.parsed(text).lifted?.text, 'SELECT * FROM t WHERE a = $1');
  t.is(cache.parsed(text).text, text);
  t.is(cache.parsed(text).lifted, null);
  const other = cache.parsed("SELECT * FROM t WHERE a = 'y'");
  t.is(other.text, "SELECT * FROM t WHERE a = 'y'");
  t.deepEqual(other.lifted?.values, ['y']);
  cache.refuse(other.lifted ?? { text: '' });
  t.is(cache.parsed("SELECT * FROM t WHERE a = 'z'").lifted, null);
});

const TYPES = {
  bo: ['BOOLEAN', 'true'],
  by: ['BYTE', '7'],
  sh: ['SHORT', '7'],
  ch: ['CHAR', "'a'"],
  i: ['INT', '7'],
  l: ['LONG', '7'],
  f: ['FLOAT', '7.5'],
  d: ['DOUBLE', '7.5'],
  da: ['DATE', "'2024-01-02'"],
  ts: ['TIMESTAMP', "'2024-01-02'"],
  tn: ['TIMESTAMP_NS', "'2024-01-02'"],
  sy: ['SYMBOL', "'a'"],
  st: ['STRING', "'a'"],
  v: ['VARCHAR', "'a'"],
  u: ['UUID', "'11111111-1111-1111-1111-111111111111'"],
  lo: ['LONG256', "'0x07'"],
  ip: ['IPv4', "'1.2.3.4'"],
  g: ['GEOHASH(2c)', "'u3'"],
  de: ['DECIMAL(10,2)', '7.50m'],
} as const;

const LITERALS = [
  ...['7', '0', '200', '40000', '3000000000', '999999999999999999', '7.5', '7.50', '7.0', '0.1'],
  ...["'a'", "''", "'7'", "'7.5'", "'true'", "'2024-01-02'", "'2024-01'", "'2024-01-02T00:00:00Z'"],
  ...["'1704153600000000'", "'11111111-1111-1111-1111-111111111111'", "'0x07'", "'1.2.3.4'"],
  ...["'u3'", "'NaN'", "'null'", "'2024-01-02;1d'", "'it''s'", "'é'", "'99999999999999999999'"],
];

const FORMS = [
  (column: string, a: string) => `${column} = ${a}`,
  (column: string, a: string) => `${column} != ${a}`,
  (column: string, a: string) => `${column} >= ${a} AND ${column} < ${a}`,
  (column: string, a: string, b: string) => `${column} IN (${a}, ${b})`,
  (column: string, a: string, b: string) => `(${column} BETWEEN ${a} AND ${b}) OR bo = true`,
  (column: string, a: string) => `${column} IN ${a}`,
];

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
});
test.after.always(() => server.stop());

async function answerOf(query: string): Promise<string> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  return `${response.status} ${await response.text()}`;
}

test('extracting literals changes neither results nor errors', async (t) => {
  t.timeout(300_000);
  const names = Object.keys(TYPES);
  const columns = Object.entries(TYPES).map(([name, [type]]) => `${name} ${type}`);
  const create = `CREATE TABLE kinds (at TIMESTAMP, ${columns.join(', ')}) TIMESTAMP(at)`;
  t.regex(await answerOf(create), /^200 /);
  const values = Object.values(TYPES).map(([, value]) => value);
  const rows = [
    `INSERT INTO kinds (at, ${names.join(', ')}) VALUES ('2024-01-02', ${values.join(', ')})`,
    "INSERT INTO kinds (at) VALUES ('2024-01-03')",
  ];
  for (const row of rows) {
    t.regex(await answerOf(row), /^200 /);
  }
  let answered = 0;
  for (const column of ['at', ...names]) {
    const compared = FORMS.flatMap((form, index) =>
      LITERALS.map((literal, at) => form(column, literal, LITERALS[at + index] ?? literal)),
    );
    for (const where of compared) {
      const query = `SELECT at, ${column} FROM kinds WHERE ${where} ORDER BY at LIMIT 9`;
      const first = await answerOf(query);
      t.is(first, await answerOf(query), query);
      answered += first.startsWith('200') ? 1 : 0;
    }
  }
  t.true(answered > 500, `${answered} answered`);
});
