import test from 'ava';

import { expectedAt, parse, print, SyntaxError_, type Tree } from '../../ts/sql/index.js';
import { MAX_NESTING, MAX_TERMS, MAX_TEXT_LENGTH } from '../../ts/sql/parser/parser.js';
import { expression } from '../../ts/sql/printer/print-expression.js';

/** Returns the first select item, printed with all parentheses of its tree. */
function grouping(text: string): string {
  const tree = parse(`SELECT ${text}`);
  const select = tree.nodes.find((node) => node.kind === 'Select');
  const first = select?.kind === 'Select' ? select.items[0] : undefined;
  return first === undefined ? '' : bracket(tree, first.expression);
}

function bracket(tree: Tree, id: number): string {
  const node = tree.nodes[id];
  const all = (ids: readonly number[]): string => ids.map((one) => bracket(tree, one)).join(' ');
  switch (node?.kind) {
    case 'Binary':
      return `(${node.operator} ${all([node.left, node.right])})`;
    case 'Logical':
      return `(${node.operator} ${all(node.operands)})`;
    case 'Concat':
      return `(Concat ${all(node.operands)})`;
    case 'Unary':
      return `(${node.operator} ${bracket(tree, node.operand)})`;
    case 'Cast':
      return `(${node.type_name.name} ${bracket(tree, node.operand)})`;
    default:
      return expression({ tree, query: () => '' }, id);
  }
}

test('operators have the same precedence as in QuestDB', (t) => {
  const cases: [string, string][] = [
    ['1 + 2 * 3', '(Add 1 (Multiply 2 3))'],
    ['1 - 2 - 3', '(Subtract (Subtract 1 2) 3)'],
    ['-a::int', '(Minus (int a))'],
    ['-a * b', '(Multiply (Minus a) b)'],
    ['a | b ^ c & d', '(BitOr a (BitXor b (BitAnd c d)))'],
    ['a & b || c', '(BitAnd a (Concat b c))'],
    ['a || b + c || d', '(Concat a (Add b c) d)'],
    ['a < b = c', '(Equal (Less a b) c)'],
    ['a = b < c', '(Equal a (Less b c))'],
    ['not a = b and c or d', '(Or (And (Not (Equal a b)) c) d)'],
    ['a and b and c', '(And a b c)'],
    ['a or b or c', '(Or a b c)'],
    ["a << 'x' and b", "(And (ContainedBy a 'x') b)"],
    ['~a + 1', '(Add (BitNot a) 1)'],
    ['a is not distinct from b', '(Equal a b)'],
  ];
  for (const [text, expected] of cases) {
    t.is(grouping(text), expected, text);
  }
});

test('number suffixes distinguish doubles, decimals and durations', (t) => {
  const tree = parse('SELECT 3d, 5m, 1h FROM t SAMPLE BY 1d');
  const kinds = tree.nodes.map((node) => node.kind).filter((kind) => /Fl|De|Du/.test(kind));
  t.deepEqual(kinds, ['Float', 'Decimal', 'Duration', 'Duration']);
});

test('child nodes precede their parents, and each node has a span', (t) => {
  const text = "SELECT a + 1 AS b FROM (t WHERE ts IN '2024') x JOIN y ON x.k = y.k ORDER BY 1";
  const tree = parse(text);
  t.is(tree.spans.length, tree.nodes.length);
  t.is(tree.root, tree.nodes.length - 1);
  const sum = tree.nodes.findIndex((node) => node.kind === 'Binary');
  const span = tree.spans[sum];
  t.is(text.slice(span?.start, span?.end), 'a + 1');
});

test('literal rows of VALUES are stored as blocks instead of nodes', (t) => {
  const tree = parse("INSERT INTO t VALUES (1, -2.5, 'it''s', null, true, now()), (2L, +3)");
  const insert = tree.nodes[tree.root];
  t.is(insert?.kind, 'Insert');
  if (insert?.kind !== 'Insert') {
    return;
  }
  t.deepEqual(insert.values?.kinds, 'idsntxii');
  t.deepEqual(insert.values?.widths, [6, 2]);
  t.deepEqual(insert.values?.texts.slice(0, 5), ['1', '-2.5', "it's", 'null', 'true']);
  t.deepEqual(insert.values?.texts.slice(6), ['2L', '3']);
  t.is(tree.nodes.filter((node) => node.kind === 'Integer').length, 0);
});

test('WITH before INSERT is parsed as part of the inserted query', (t) => {
  const printed = print(parse('WITH a AS (SELECT 1 x) INSERT INTO t SELECT x FROM a'));
  t.is(printed, 'INSERT INTO t WITH a AS (SELECT 1 AS x) SELECT x FROM a');
});

test('no input overflows the stack or takes a long time', (t) => {
  const many = 100_000;
  const texts = [
    `select ${'('.repeat(many)}1${')'.repeat(many)}`,
    `select 1 from t where ${Array<string>(many).fill('a=1').join(' or ')}`,
    `select ${Array<string>(many).fill('1').join('+')}`,
    `select ${'- '.repeat(many)}1`,
    `select ${'not '.repeat(many)}1`,
    `select 1${'::int'.repeat(many)}`,
    `select a${'[1]'.repeat(many)}`,
    `select ${'case when '.repeat(many)}`,
    `select ${'ARRAY['.repeat(many)}`,
    `select ${'f('.repeat(many)}`,
    `select 1${' union select 1'.repeat(50_000)}`,
    `select * from a${' join b on x=y'.repeat(50_000)}`,
    `select * from ${'('.repeat(many)}`,
    '('.repeat(many),
    `with a as (${'with a as ('.repeat(50_000)}`,
    `declare @x := ${'('.repeat(many)}`,
    `select a in (${Array<string>(many).fill('1').join(',')})`,
    `select ${'1'.repeat(MAX_TEXT_LENGTH)}`,
  ];
  for (const text of texts) {
    const started = Date.now();
    const error = t.throws(() => parse(text), { instanceOf: SyntaxError_ }, text.slice(0, 40));
    t.true(error.start >= 0 && error.start <= text.length);
    t.true(Date.now() - started < 10_000, text.slice(0, 40));
  }
});

test('input at the limits is accepted', (t) => {
  const depth = MAX_NESTING - 8;
  t.notThrows(() => parse(`select ${'('.repeat(depth)}1${')'.repeat(depth)}`));
  t.notThrows(() => parse(`select ${Array<string>(MAX_TERMS).fill('a').join(' or ')}`));
  const rows = Array<string>(MAX_TERMS * 3).fill("(1,'a')");
  t.notThrows(() => parse(`insert into t values ${rows.join(',')}`));
});

test('an empty statement becomes an Empty node', (t) => {
  for (const text of ['', '   ', ';', ' ; ; ', '-- nothing', '/* nothing */']) {
    const tree = parse(text);
    t.is(tree.nodes[tree.root]?.kind, 'Empty', text);
  }
});

test('the words of a session statement are kept as tokens', (t) => {
  const tree = parse("SET TIME ZONE 'UTC';");
  t.deepEqual(tree.nodes[tree.root], { kind: 'Session', words: ['SET', 'TIME', 'ZONE', 'UTC'] });
});

test('statement keywords can also name tables', (t) => {
  for (const word of ['backup', 'checkpoint', 'grant', 'add', 'exit', 'refresh', 'copy_of']) {
    t.is(parse(`SELECT ${word} FROM ${word}`).nodes.at(-1)?.kind, 'Query', word);
  }
});

test('unsupported statements are refused at the unsupported word', (t) => {
  const cases: [string, number, string][] = [
    ['show; ', 4, "expected 'TABLES', 'COLUMNS', 'PARTITIONS', 'CREATE' or a setting"],
    ['CREATE LIVE VIEW v FLUSH EVERY 1s AS (t)', 34, "'start from' expected"],
    ['CREATE LIVE VIEW v START FROM NOW', 19, "'flush every' expected"],
    ['ALTER LIVE VIEW v SET TTL 1d', 18, "'resume' or 'suspend' expected"],
    ['SELECT sum(a) OVER (ORDER BY b ANCHOR WEEKLY) FROM t', 38, "'daily' or 'expression'"],
    ["ALTER USER u WITH PASSWORD ''", 27, 'password cannot be empty'],
    ['BACKUP everything', 7, "'database' or 'table' or 'abort' expected"],
    ['GRANT ON t TO u', 6, 'permission expected'],
  ];
  for (const [text, start, message] of cases) {
    const error = t.throws(() => parse(text), { instanceOf: SyntaxError_ }, text);
    t.is(error.start, start, text);
    t.true(error.message.startsWith(message), error.message);
  }
});

test('completion offers exactly what the parser accepts', (t) => {
  const at = (text: string): ReturnType<typeof expectedAt> => expectedAt(text, text.length);
  t.true(at('').keywords.includes('SELECT'));
  t.deepEqual(at('SELECT * FROM ').contexts, ['table']);
  t.deepEqual(at('SELECT ').contexts, ['expression']);
  const clauses = ['ASOF', 'GROUP', 'JOIN', 'LATEST', 'LIMIT', 'ORDER', 'SAMPLE', 'UNION', 'WHERE'];
  for (const word of clauses) {
    t.true(at('SELECT * FROM t ').keywords.includes(word), word);
  }
  t.false(at('SELECT * FROM t ').keywords.includes('SELECT'));
  t.deepEqual(at('CREATE TABLE t (a ').contexts, ['type']);
  t.deepEqual(at('CREATE TABLE t (a int) TIMESTAMP(a) PARTITION BY ').keywords, [
    'DAY',
    'HOUR',
    'MONTH',
    'NONE',
    'WEEK',
    'YEAR',
  ]);
  t.deepEqual(at('SELECT 1; DROP TA'), {
    start: 15,
    keywords: ['ALL', 'LIVE', 'MATERIALIZED', 'TABLE', 'VIEW'],
    contexts: [],
  });
  t.deepEqual(at("SELECT 'te").keywords, []);
});

test('only file functions have named options', (t) => {
  const kinds = (text: string): string[] => parse(text).nodes.map(({ kind }) => kind);
  const compared = "SELECT * FROM read_csv('f.csv', header = true, delim = ';')";
  for (const mark of ['=>', ':=']) {
    const named = compared.replaceAll(' = ', ` ${mark} `);
    t.deepEqual(kinds(named), kinds(compared));
    t.is(print(parse(named)), print(parse(compared)));
  }
  t.deepEqual(kinds(compared.replaceAll(' = ', '=>')), kinds(compared));
  t.throws(() => parse('SELECT abs(a => 1)'), { instanceOf: SyntaxError_ });
  const missing = t.throws(() => parse("SELECT * FROM read_csv('f.csv', header => )"), {
    instanceOf: SyntaxError_,
  });
  t.true(missing.start >= 42, missing.message);
});

test('make_interval accepts named arguments, and missing ones are 0', (t) => {
  const complete = 'SELECT make_interval(0, 0, 0, 3, 0, 0, 1.5)';
  for (const text of [
    'SELECT make_interval(days => 3, secs => 1.5)',
    'SELECT make_interval(secs := 1.5, days := 3)',
    'SELECT make_interval(0, 0, 0, 3, 0, 0, 1.5)',
    'SELECT make_interval(0, 0, 0, 3, secs => 1.5)',
  ]) {
    t.is(print(parse(text)), print(parse(complete)), text);
  }
  for (const text of [
    'SELECT make_interval(days => 3, days => 4)',
    'SELECT make_interval(fortnights => 1)',
    'SELECT make_interval(days => 3, 4)',
    'SELECT make_interval(0, 0, 0, 3, days => 4)',
  ]) {
    const wrong = t.throws(() => parse(text), { instanceOf: SyntaxError_ }, text);
    t.regex(wrong.message, /^expected one or more of years, months, .*, each at most once$/);
  }
});

test('temporary views are printed as temporary', (t) => {
  for (const text of [
    'CREATE TEMP VIEW v AS SELECT 1',
    'CREATE OR REPLACE LOCAL TEMPORARY VIEW v AS (SELECT 1)',
    'CREATE UNLOGGED TABLE t (a INT)',
  ]) {
    const printed = print(parse(text));
    t.regex(printed, /TEMPORARY VIEW|UNLOGGED TABLE/, printed);
    t.is(print(parse(printed)), printed);
  }
});

test('ANALYZE t is parsed as VACUUM TABLE t, and analyze can be a table name', (t) => {
  for (const text of ['ANALYZE t', 'ANALYZE VERBOSE public.t (a, b)', 'analyze "t"']) {
    t.is(print(parse(text)), text.includes('"') ? 'VACUUM TABLE "t"' : 'VACUUM TABLE t', text);
  }
  for (const text of ['analyze', 'analyze WHERE a = 1', 'analyze LIMIT 1']) {
    t.regex(print(parse(text)), /^(?:SELECT|analyze)/i, text);
  }
});

test('COMMENT ON is parsed for any kind of object', (t) => {
  for (const text of [
    "COMMENT ON MATERIALIZED VIEW v IS 'x'",
    'COMMENT ON CONSTRAINT c ON t IS NULL',
    "COMMENT ON COLUMN t.a IS 'x'",
  ]) {
    t.notThrows(() => parse(text), text);
  }
});

test('a mistyped keyword is reported at any position', (t) => {
  for (const [text, meant] of [
    ['selct 1', /did you mean 'select' for 'selct'\?$/],
    ['SELECTT a, b FROM t', /did you mean 'select' for 'SELECTT'\?$/],
    ['udpate t set a = 1', /did you mean 'update' for 'udpate'\?$/],
    ['SELECT 1; SELCT 2', /^unexpected token \[SELCT\]: did you mean 'select' for 'SELCT'\?$/],
    ['SELECT price FORM trades', /did you mean 'from' for 'FORM'\?$/],
    ['SELECT * FROM t WERE a > 1', /^unexpected token \[a\]: did you mean 'where' for 'WERE'\?$/],
    ['SELECT * FROM t ODER BY ts', /did you mean 'order' for 'ODER'\?$/],
    ['SELECT * FROM t WHERE a = 1 ADN b = 2', /did you mean 'and' for 'ADN'\?$/],
    ['SELECT a FROM t SAMPEL BY 1h', /did you mean 'sample' for 'SAMPEL'\?$/],
    ['UPDATE t STE a = 1', /did you mean 'set' for 'STE'\?$/],
    ['DROP TBLE x', /did you mean 'table' for 'TBLE'\?$/],
    // There is no suggestion for two-letter words, which resemble too many keywords, nor for quoted
    // names or correct keywords.
    ['SELECT a b c FROM t', /expected$/],
    ['SELECT * FROM "WERE" a > 1', /^unexpected token \[>\]$/],
    ['SELECT * FROM t WHERE', /^empty where clause$/],
    ['trades 1', /^unexpected token \[1\]$/],
    ['select 1 1 1', /identifier should start/],
    ['select * as t', /^wildcard cannot have alias$/],
    ['select * other', /^wildcard cannot have alias$/],
  ] as const) {
    t.regex(t.throws(() => parse(text), { instanceOf: SyntaxError_ }, text).message, meant, text);
  }
});
