import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { parse, print } from '../../sql/index.js';
import { commonTableQuery } from '../src/sql/common-tables.js';
import { onlyReads } from '../src/sql/effects.js';
import { format } from '../src/sql/format.js';
import { bind, literal, parametersOf } from '../src/sql/parameters.js';
import { rangeQueries } from '../src/sql/ranges.js';
import { scan } from '../src/sql/scanner.js';

test('short statements stay on one line, and long ones break at their clauses', (t) => {
  t.is(format('select  1   as one ;'), 'SELECT 1 AS one;\n');
  t.is(
    format(
      'select timestamp,first(price) as open, max(price) as high from trades ' +
        "where symbol='BTC-USD' and timestamp>dateadd('d',-3,now()) sample by 1h fill(prev)",
    ),
    'SELECT timestamp, first(price) AS open, max(price) AS high\n' +
      'FROM trades\n' +
      "WHERE symbol = 'BTC-USD' AND timestamp > dateadd('d', -3, now())\n" +
      'SAMPLE BY 1h FILL(PREV)\n',
  );
});

test('long lists and conditions are wrapped, and sub-queries stay indented', (t) => {
  const names = Array.from({ length: 12 }, (_, index) => `column_number_${index}`);
  const lines = format(`SELECT ${names.join(', ')} FROM t`).split('\n');
  t.is(lines[0], 'SELECT');
  t.is(lines[1], '  column_number_0,');
  t.is(lines[13], 'FROM t');
  t.is(
    format(
      'select a from (select a, b from some_table_name where b in (1,2,3)) where a is not null',
    ),
    'SELECT a\nFROM (\n  SELECT a, b FROM some_table_name WHERE b IN (1, 2, 3)\n)\n' +
      'WHERE a IS NOT NULL\n',
  );
});

test('comments stay next to the statements that they describe', (t) => {
  const text = format('-- the first\nselect 1; -- behind\n\n/* two */ select 2 -- end\n');
  t.is(text, '-- the first\nSELECT 1; -- behind\n\n/* two */ SELECT 2 -- end\n');
});

test('formatting keeps all characters of text that cannot be parsed', (t) => {
  for (const text of ["select 'open", 'select (1, (2', ') ) select', '"x', '/* open']) {
    t.is(format(text).replace(/\s/g, '').toLowerCase(), text.replace(/\s/g, '').toLowerCase());
  }
  t.is(format('  \n'), '  \n');
});

const GOLDEN = 'test/golden/sql';

function goldenStatements(): string[] {
  const cases = readdirSync(GOLDEN)
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => readFileSync(`${GOLDEN}/${name}`, 'utf8').split('\n'))
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { sql?: string; setup?: string[] });
  const texts = cases.flatMap(({ sql, setup }) => [...(setup ?? []), ...(sql ? [sql] : [])]);
  return [...new Set(texts)].filter(reads);
}

function reads(statement: string): boolean {
  try {
    parse(statement);
    return true;
  } catch {
    return false;
  }
}

test('formatting preserves the meaning of every golden statement and is idempotent', (t) => {
  const statements = goldenStatements();
  t.true(statements.length > 500, `${statements.length} statements`);
  for (const statement of statements) {
    const once = format(statement);
    const meaning = (text: string): string => print(parse(text)).replace(/\s+/g, '');
    t.is(meaning(once), meaning(statement), statement);
    t.is(format(once), once, 'formatting twice changes nothing');
    const texts = (text: string): string[] =>
      scan(text).map(({ start, end }) => text.slice(start, end).toUpperCase());
    t.deepEqual(texts(once), texts(statement));
  }
});

test('each parameter is listed once, and declared variables are not parameters', (t) => {
  t.deepEqual(parametersOf("SELECT $1, :name, @x, $1, '$2', -- $3\n 1"), ['$1', ':name', '@x']);
  t.deepEqual(parametersOf('DECLARE @x := 1 SELECT @x + @y, a::int'), ['@y']);
});

test('parameter values become literals, and error positions are mapped back', (t) => {
  t.is(literal(' 12.5 '), '12.5');
  t.is(literal('-1e3'), '-1e3');
  t.is(literal('NULL'), 'NULL');
  t.is(literal("it's"), "'it''s'");
  t.is(literal("'quoted'"), "'quoted'");
  t.is(literal("'a' OR 'b'"), "'''a'' OR ''b'''");
  t.is(literal(''), "''");
  const text = 'SELECT $1, bad FROM t WHERE s = @sym AND worse';
  const bound = bind(text, { $1: '1000000', '@sym': 'x' });
  t.is(bound.text, "SELECT 1000000, bad FROM t WHERE s = 'x' AND worse");
  for (const word of ['SELECT', 'bad', 'WHERE', 'worse']) {
    t.is(bound.original(bound.text.indexOf(word)), text.indexOf(word), word);
  }
  t.is(bound.original(bound.text.indexOf('000000')), text.indexOf('$1'));
});

test('a common table expression becomes a separate query', (t) => {
  const text = 'WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a) SELECT  FROM b';
  t.is(
    commonTableQuery(text, 'b'),
    'WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a) SELECT * FROM b',
  );
  t.is(commonTableQuery('SELECT 1', 'b'), undefined);
  t.is(commonTableQuery('WITH a AS (SELECT 1', 'a'), undefined);
});

test('statements with side effects are distinguished from read-only statements', (t) => {
  for (const text of [
    'SELECT 1',
    'trades',
    'SHOW TABLES',
    'WITH a AS (SELECT 1) SELECT * FROM a',
  ]) {
    t.true(onlyReads(text), text);
  }
  for (const text of [
    'DROP TABLE t',
    'INSERT INTO t VALUES (1)',
    'TRUNCATE TABLE t',
    'DELETE FROM',
  ]) {
    t.false(onlyReads(text), text);
  }
});

test('zooming a query adds a finer SAMPLE BY step, and a fallback query', (t) => {
  const range = { column: 'ts', from: 0, to: 600_000 };
  const within = "ts >= '1970-01-01T00:00:00.000Z' AND ts <= '1970-01-01T00:10:00.000Z'";
  const plain = 'SELECT ts, v FROM t -- all';
  t.deepEqual(rangeQueries(plain, range, 600), [`SELECT * FROM (${plain}\n) WHERE ${within}`]);
  const sampled = 'SELECT ts, avg(v) FROM t WHERE a = 1 OR b = 2 SAMPLE BY 1h FILL(NULL)';
  const [finer, whole] = rangeQueries(sampled, range, 600);
  t.is(
    finer,
    `SELECT ts, avg(v) FROM t WHERE ( a = 1 OR b = 2 \n) AND ${within} SAMPLE BY 1s FILL(NULL)`,
  );
  t.is(whole, `SELECT * FROM (${sampled}\n) WHERE ${within}`);
  t.is(
    rangeQueries('SELECT ts FROM t SAMPLE BY 1s', range, 600).length,
    1,
    'a one-second step gets no finer step',
  );
  t.is(rangeQueries('SELECT 1 SAMPLE BY 1h UNION SELECT 2', range, 600).length, 1);
  for (const query of [finer, whole]) {
    t.notThrows(() => parse(query ?? ''));
  }
});
