import test from 'ava';
import { parse } from '../../sql/index.js';
import { NotebookError, read, write } from '../src/cells/file.js';
import {
  apply,
  EMPTY,
  freeName,
  inverse,
  MAX_CELLS,
  nameTrouble,
  newId,
  sqlCells,
  type Cell,
  type Command,
  type Notebook,
} from '../src/cells/model.js';
import { compose, valueOf } from '../src/cells/statement.js';
import { serverTime, timeOf } from '../src/cells/times.js';

const NOW = Date.parse('2026-03-31T12:34:56.789Z');

function sql(name: string, text: string): Cell {
  return { kind: 'sql', id: newId(), name, text, view: 'grid' };
}

function notebook(cells: readonly Cell[], more: Partial<Notebook> = {}): Notebook {
  return { ...EMPTY, ...more, cells };
}

/** Returns the statement that the last cell sends. */
function sentBy(cells: readonly Cell[], more: Partial<Notebook> = {}): string {
  const { statement, trouble } = compose(notebook(cells, more), cells.at(-1)?.id ?? '', NOW);
  return statement?.bound.text ?? `trouble: ${trouble?.message ?? ''}`;
}

/** Returns the notebook without the ids that identify cells within a page. */
function facts({ cells, ...rest }: Notebook): unknown {
  return { ...rest, cells: cells.map((cell) => ({ ...cell, id: '' })) };
}

const FULL: Notebook = {
  layout: 'grid',
  refresh: 5,
  range: { from: 'now-1h', to: 'now' },
  variables: [
    { name: 'symbol', kind: 'list', value: 'BTC-USD', query: 'SELECT DISTINCT symbol\nFROM "t"' },
    { name: 'least', kind: 'number', value: '1.5' },
    { name: 'note', kind: 'text', value: 'a "quoted" \\ text\nof two lines' },
  ],
  cells: [
    { kind: 'markdown', id: '', text: '# Trading\n\nText.', size: { width: 12, height: 2 } },
    { kind: 'markdown', id: '', text: '```sql\nSELECT 1\n```\n<!-- cellar -->' },
    {
      ...(sql('prices', 'SELECT *\n\nFROM trades') as object),
      chart: 'area',
      view: 'chart',
      options: {
        unit: 'req/s',
        scale: 'log',
        thresholds: '80 warn, 95 error',
        annotations: 'SELECT ts,\n"what" FROM events',
      },
    } as Cell,
    { ...(sql('empty', '') as object), folded: true } as Cell,
  ],
};

/** Options of the `prices` cell that need quotes. */
const OPTIONS = 'thresholds="80 warn, 95 error" annotations="SELECT ts,\\n\\"what\\" FROM events"';

test('a name that is not an earlier cell refers to a table; 200 chained cells resolve', (t) => {
  const cellsOf = (cells: readonly Cell[]): (readonly string[] | undefined)[] =>
    cells.map(({ id }) => compose(notebook(cells), id, NOW).statement?.cells);
  const naming = (length: number, target: (at: number) => number): Cell[] =>
    Array.from({ length }, (_, at) => sql(`c${at}`, `SELECT * FROM c${target(at)}`));
  // Only the last cell refers to a cell above; its own name is not the name of a cell above.
  t.deepEqual(cellsOf(naming(1, () => 0)), [[]]);
  t.deepEqual(cellsOf(naming(2, (at) => (at + 1) % 2)), [[], ['c0']]);
  t.deepEqual(cellsOf(naming(3, (at) => (at + 1) % 3)), [[], [], ['c0']]);
  const row = naming(MAX_CELLS, (at) => Math.max(0, at - 1));
  t.is(cellsOf(row).at(-1)?.length, MAX_CELLS - 1);
});

test('invalid chart options are refused with their line number', (t) => {
  const of = (attributes: string): string =>
    `---\ntidemark-notebook: 1\n---\n\n\`\`\`sql cell=a ${attributes}\nSELECT 1\n\`\`\`\n`;
  for (const [attributes, message] of [
    ['decimals=12', /line 5: Decimals must be/],
    ['thresholds="x loud"', /line 5: "x loud" is not a valid threshold/],
    ['unit="ms', /line 5: unknown attribute unit="ms/],
    ['unit=ms unit=s', /line 5: duplicate attribute unit/],
    ['colour="red"', /line 5: unknown attribute colour/],
  ] as const) {
    t.throws(() => read(of(attributes)), { message }, attributes);
  }
});

test('a notebook is written as readable text and parsed back', (t) => {
  const text = write(FULL);
  t.is(
    text,
    `---
tidemark-notebook: 1
layout: grid
refresh: 5s
range: now-1h .. now
@symbol: list "BTC-USD" from "SELECT DISTINCT symbol\\nFROM \\"t\\""
@least: number "1.5"
@note: text "a \\"quoted\\" \\\\ text\\nof two lines"
---

<!-- cell width=12 height=2 -->
# Trading

Text.

<!-- cell -->
\`\`\`sql
SELECT 1
\`\`\`
<!-- cellar -->

\`\`\`sql cell=prices view=chart chart=area unit="req/s" scale=log ${OPTIONS}
SELECT *

FROM trades
\`\`\`

\`\`\`sql cell=empty folded=true
\`\`\`
`,
  );
  t.deepEqual(facts(read(text)), facts(FULL));
  t.deepEqual(facts(read(text.replaceAll('\n', '\r\n'))), facts(FULL), 'with Windows line endings');
  t.deepEqual(facts(read(write(EMPTY))), facts(EMPTY));
});

test('text that resembles the file format survives a round trip', (t) => {
  const seed = Number(process.env['SEED'] ?? 1);
  t.log(`SEED=${seed}`);
  let state = seed;
  const random = (below: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
  const fragments = [
    '<!-- cell -->',
    '<!-- cell',
    '\\',
    '```',
    '````',
    '```sql cell=a',
    '`',
    '---',
  ];
  fragments.push(
    '\n',
    '\n',
    '\n',
    ' ',
    'text',
    '@a: text "b"',
    '-->',
    'tidemark-notebook: 2',
    '```sql',
  );
  for (let round = 0; round < 2000; round += 1) {
    const cells = Array.from({ length: 1 + random(4) }, (_, index): Cell => {
      const text = Array.from(
        { length: random(14) },
        () => fragments[random(fragments.length)],
      ).join('');
      const expected = text.replace(/^(?:[ \t]*\n)+/, '').trimEnd();
      return random(2) === 0
        ? { kind: 'markdown', id: '', text: expected }
        : sql(`n${index}`, expected);
    });
    const created = notebook(cells);
    t.deepEqual(facts(read(write(created))), facts(created), write(created));
  }
});

test('a malformed notebook is refused with its line number', (t) => {
  const head = '---\ntidemark-notebook: 1\n';
  const cases: readonly (readonly [string, RegExp])[] = [
    ['', /^line 1: a notebook must begin with settings/],
    ['SELECT 1', /^line 1: /],
    ['---\nother: 1\n---\n', /^line 2: expected "tidemark-notebook: 1"/],
    [
      '---\ntidemark-notebook: 2\nnew: x\n---\n',
      /^line 2: this notebook has format version 2, .* newer/,
    ],
    [`${head}colour: red\n---\n`, /^line 3: unknown setting colour/],
    [`${head}layout: ring\n---\n`, /^line 3: unknown layout ring/],
    [`${head}layout: grid\nlayout: list\n---\n`, /^line 4: duplicate setting layout/],
    [`${head}refresh: 2s\n---\n`, /^line 3: refresh must be changes, 1s/],
    [`${head}range: soon .. now\n---\n`, /^line 3: invalid time soon/],
    [`${head}@a: text b\n---\n`, /^line 3: expected a variable/],
    [`${head}@a: list "b"\n---\n`, /^line 3: only a list variable/],
    [`${head}@a: text "b"\n@A: text "c"\n---\n`, /^line 4: duplicate variable @A/],
    [`${head}@a: text "\\x"\n---\n`, /^line 3: "\\x" is not a quoted JSON string/],
    [`${head}---\ntext\n`, /^line 4: expected a cell/],
    [`${head}---\n<!-- cell onclick=x -->\n`, /^line 4: unknown attribute onclick=x/],
    [`${head}---\n<!-- cell width=13 height=1 -->\n`, /^line 4: the width must be 1 to 12/],
    [`${head}---\n\`\`\`sql cell=1a\n\`\`\`\n`, /^line 4: invalid cell name 1a/],
    [`${head}---\n\`\`\`sql cell=a view=pie\n\`\`\`\n`, /^line 4: view must be grid or chart/],
    [
      `${head}---\n\`\`\`sql cell=a\nSELECT 1\n`,
      /^line 4: the cell that begins here is not closed/,
    ],
    [`${head}---\n\`\`\`sql cell=a\n\`\`\`\n\`\`\`sql cell=A\n\`\`\`\n`, /duplicate cell name A/],
    [`${head}---\n${'<!-- cell -->\nx\n'.repeat(201)}`, /too many cells: at most 200/],
    [`${head}---\n<!-- cell -->\n${'x'.repeat(5_000_000)}`, /exceeds the limit of 4 MiB/],
  ];
  for (const [text, message] of cases) {
    const error = t.throws(() => read(text), { instanceOf: NotebookError }, text.slice(0, 80));
    t.regex(error.message, message);
  }
});

test('a referenced earlier cell becomes a common table expression', (t) => {
  const one = sql('cell_1', 'SELECT * FROM trades; -- all\n');
  const two = sql('cell_2', '-- half\nselect * from Cell_1 where price > 1');
  t.is(
    sentBy([one, two, sql('cell_3', 'SELECT count() FROM cell_2')]),
    'WITH "cell_1" AS (SELECT * FROM trades\n), ' +
      '"cell_2" AS (select * from Cell_1 where price > 1\n) SELECT count() FROM cell_2',
  );
  t.is(
    sentBy([one, sql('x', 'WITH a AS (SELECT 1) SELECT * FROM a JOIN cell_1 ON 1 = 1')]),
    'WITH "cell_1" AS (SELECT * FROM trades\n), ' +
      'a AS (SELECT 1) SELECT * FROM a JOIN cell_1 ON 1 = 1',
  );
  t.is(
    sentBy([one, sql('x', 'INSERT INTO t SELECT * FROM cell_1')]),
    'INSERT INTO t WITH "cell_1" AS (SELECT * FROM trades\n) SELECT * FROM cell_1',
  );
  t.is(
    sentBy([one, sql('x', "SELECT 'cell_1' AS cell_1 -- cell_1\nFROM y")]),
    "SELECT 'cell_1' AS cell_1 -- cell_1\nFROM y",
  );
  t.is(
    sentBy([one, sql('x', 'WITH cell_1 AS (SELECT 2) SELECT * FROM cell_1')]),
    'WITH cell_1 AS (SELECT 2) SELECT * FROM cell_1',
  );
  t.is(
    sentBy([sql('self', 'SELECT * FROM self')]),
    'SELECT * FROM self',
    'a cell does not refer to itself',
  );
});

test('the reason is reported when a cell cannot be composed', (t) => {
  t.is(sentBy([sql('a', ' -- nothing')]), 'trouble: The cell is empty.');
  t.regex(sentBy([sql('a', 'SELECT 1; SELECT 2')]), /has 2 statements/);
  t.regex(sentBy([sql('a', 'DROP TABLE x'), sql('b', 'SELECT * FROM a')]), /a is not a query/);
  t.regex(
    sentBy([sql('a', 'SELECT 1; SELECT 2'), sql('b', 'a')]),
    /a cannot be used: The cell has 2/,
  );
  t.is(
    sentBy([sql('a', 'SELECT FROM WHERE')]),
    'SELECT FROM WHERE',
    'the server reports the syntax error',
  );
  const later = notebook([sql('b', 'SELECT * FROM a'), sql('a', 'SELECT 1')]);
  const { statement } = compose(later, later.cells[0]?.id ?? '', NOW);
  t.is(statement?.bound.text, 'SELECT * FROM a', 'later cells are not in scope');
});

test('variables are declared before the query instead of inserted into it', (t) => {
  const variables = [
    { name: 'symbol', kind: 'text', value: "x'; DROP TABLE t; --" },
    { name: 'least', kind: 'number', value: ' 1e3 ' },
    { name: 'unused', kind: 'number', value: 'nonsense' },
  ] as const;
  const text = 'SELECT * FROM t WHERE s = @symbol AND n > @least AND ts >= @from';
  const sent = sentBy([sql('a', text)], { variables, range: { from: 'now-1h', to: 'now' } });
  t.is(
    sent,
    "DECLARE @from := '2026-03-31T11:34:56.789Z'::timestamp, " +
      `@symbol := 'x''; DROP TABLE t; --', @least := 1e3 ${text}`,
  );
  t.notThrows(() => parse(sent));
  t.is(
    sentBy([sql('a', 'DECLARE @x := (SELECT 1) SELECT @x, @least')], { variables }),
    'DECLARE @least := 1e3, @x := (SELECT 1) SELECT @x, @least',
  );
  t.is(
    sentBy([sql('c', 'SELECT @least'), sql('a', 'DECLARE @x := (SELECT 1) c')], { variables }),
    'DECLARE @least := 1e3, @x := (SELECT 1) WITH "c" AS (SELECT @least\n) c',
  );
  t.is(
    sentBy([sql('a', 'DECLARE @least := 7 SELECT @least')], { variables }),
    'DECLARE @least := 7 SELECT @least',
    'the own declaration takes precedence',
  );
  t.regex(
    sentBy([sql('a', 'SELECT @unused')], { variables }),
    /@unused: "nonsense" is not a number/,
  );
  t.regex(
    sentBy([sql('a', 'UPDATE t SET n = @least')], { variables }),
    /^trouble: Only queries can use/,
  );
  t.regex(sentBy([sql('a', 'SELECT @other')], { variables }), /has no variable @other/);
  t.regex(sentBy([sql('a', 'SELECT @to')]), /@to belongs to the time range/);
  t.is(valueOf({ name: 'n', kind: 'number', value: '1) OR (1' }, NOW), undefined);
  t.is(valueOf({ name: 'n', kind: 'time', value: "now' OR 1" }, NOW), undefined);
});

test('error positions refer to the text that the user wrote', (t) => {
  const variables = [{ name: 'v', kind: 'number', value: '10' }] as const;
  const text = '-- first\nSELECT @v, wrong FROM c';
  const cells = [sql('c', 'SELECT 1 AS one'), sql('a', text)];
  const { statement } = compose(notebook(cells, { variables }), cells[1]?.id ?? '', NOW);
  t.truthy(statement);
  if (statement) {
    const at = statement.bound.text.indexOf('wrong');
    t.is(statement.start + statement.bound.original(at), text.indexOf('wrong'));
    t.is(statement.start + statement.bound.original(0), text.indexOf('SELECT'));
    t.deepEqual([...statement.tables], []);
    t.deepEqual([...statement.cells], ['c']);
  }
});

test('relative and absolute time expressions are parsed', (t) => {
  t.is(serverTime('now', NOW), '2026-03-31T12:34:56.789Z');
  t.is(serverTime('today', NOW), '2026-03-31T00:00:00.000Z');
  t.is(serverTime('now - 90m', NOW), '2026-03-31T11:04:56.789Z');
  t.is(serverTime('now-1M', NOW), '2026-02-28T12:34:56.789Z', 'the previous month has fewer days');
  t.is(serverTime('today+1y', NOW), '2027-03-31T00:00:00.000Z');
  t.is(serverTime('2026-01-02 03:04', NOW), '2026-01-02T03:04:00Z');
  t.is(serverTime('2026-01-02 03:04:05.123456789', NOW), '2026-01-02T03:04:05.123456789Z');
  for (const text of ['', 'yesterday', 'now-', 'now-1q', '2026-02-30', '2026-01-01 25:00', '1']) {
    t.is(timeOf(text, NOW), undefined, text);
  }
});

test('undo reverses each kind of change', (t) => {
  const start = notebook([sql('a', '1'), sql('b', '2'), sql('c', '3'), sql('d', '4')]);
  const ids = start.cells.map(({ id }) => id);
  const [a = '', b = '', c = ''] = ids;
  const commands: Command[] = [
    { kind: 'add', at: 1, cells: [sql('x', 'x'), sql('y', 'y')] },
    { kind: 'remove', ids: [a, c] },
    { kind: 'move', id: a, to: 3 },
    { kind: 'move', id: c, to: 0 },
    { kind: 'change', id: b, patch: { name: 'z', chart: 'bars', size: { width: 3, height: 4 } } },
    { kind: 'settings', patch: { layout: 'grid', range: { from: 'now-1h', to: 'now' } } },
  ];
  for (const command of [...commands, { kind: 'all', commands } as const]) {
    const after = apply(start, command);
    t.notDeepEqual(after, start);
    t.deepEqual(apply(after, inverse(start, command)), start, command.kind);
  }
});

test('new cell names are unique, ignoring case', (t) => {
  const created = notebook([sql('cell_1', ''), sql('Prices', '')]);
  t.is(freeName(created), 'cell_2');
  t.is(freeName(created, 'prices'), 'prices_1');
  t.regex(nameTrouble(created, '', 'PRICES') ?? '', /Another cell is already named Prices/);
  t.regex(nameTrouble(created, '', 'a-b') ?? '', /letters, digits/);
  t.is(nameTrouble(created, sqlCells(created)[1]?.id ?? '', 'prices'), undefined);
});
