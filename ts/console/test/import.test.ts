import test from 'ava';
import type { Proposal, ProposedColumn } from '../src/api/upload.js';
import {
  firstChoices,
  headerLine,
  orderedBy,
  parametersOf,
  patternText,
  problemOf,
  retyped,
  schemaOf,
  trialText,
  type Choices,
  type ColumnChoice,
} from '../src/import/model.js';
import { badLineOf, linesOf, recordOf } from '../src/import/lines.js';
import { endingText } from '../src/import/ending.js';
import { parquetStatements } from '../src/import/parquet.js';
import { advanced, begun, percent, remaining } from '../src/import/progress.js';

const PROPOSAL: Proposal = {
  table: 'weather',
  delimiter: ';',
  header: true,
  headerBytes: 20,
  rows: 3,
  columns: [
    { name: 'city', type: 'VARCHAR', couldBeTimestamp: false, values: ['Oslo'] },
    {
      name: 'at',
      type: 'VARCHAR',
      couldBeTimestamp: true,
      values: ['2026-01-01 10:30:00'],
      forms: [{ type: 'TIMESTAMP', pattern: 'yyyy-MM-dd HH:mm:ss', read: 3, of: 3 }],
    },
    { name: 'v', type: 'INT', couldBeTimestamp: false, values: ['1'] },
  ],
};

test('a time column partitions the table by day; inferred types are not sent', (t) => {
  const choices = firstChoices(PROPOSAL);
  t.is(choices.timestamp, 'at');
  t.deepEqual(parametersOf(PROPOSAL, choices, undefined), {
    name: 'weather',
    delimiter: ';',
    forceHeader: 'true',
    overwrite: 'false',
    timestamp: 'at',
    partitionBy: 'DAY',
  });
  t.deepEqual(schemaOf(PROPOSAL, choices, undefined), []);
  t.is(headerLine(PROPOSAL, choices), '"city";"at";"v"\n');
});

test('column names are not sent for an unchanged file; the error handling is sent', (t) => {
  const proposal = { ...PROPOSAL, delimiter: ',', asIs: true, header: false };
  const choices = { ...firstChoices(proposal), atomicity: 'skipRow' as const };
  t.deepEqual(parametersOf(proposal, choices, undefined), {
    name: 'weather',
    forceHeader: 'false',
    atomicity: 'skipRow',
    overwrite: 'false',
    timestamp: 'at',
    partitionBy: 'DAY',
  });
});

test('a changed column type is sent with the pattern that matches the column values', (t) => {
  const first = firstChoices(PROPOSAL);
  const typed = (change: (column: ColumnChoice) => ColumnChoice): Choices => ({
    ...first,
    columns: first.columns.map((column, index) => (index === 1 ? change(column) : column)),
  });
  const choices = typed((at) => retyped(at, 'TIMESTAMP_NS', PROPOSAL.columns[1]));
  t.deepEqual(schemaOf(PROPOSAL, choices, undefined), [
    { name: 'at', type: 'TIMESTAMP_NS', pattern: 'yyyy-MM-dd HH:mm:ss' },
  ]);
  t.is(problemOf(PROPOSAL, choices, undefined), undefined);
  const blank = typed((at) => ({ ...at, type: 'TIMESTAMP', pattern: '' }));
  t.regex(problemOf(PROPOSAL, blank, undefined) ?? '', /Enter a pattern/);
});

test('column names must be present and unique', (t) => {
  const first = firstChoices(PROPOSAL);
  const named = (name: string): typeof first => ({
    ...first,
    columns: first.columns.map((column, at) => (at === 0 ? { ...column, name } : column)),
  });
  t.is(problemOf(PROPOSAL, named(' '), undefined), 'A column has no name.');
  t.is(problemOf(PROPOSAL, named('V'), undefined), 'Two columns are named v.');
  t.is(problemOf(PROPOSAL, { ...first, table: '' }, undefined), 'Enter a table name.');
});

test('an existing table determines the column types of the import', (t) => {
  const existing = {
    timestamp: 'at',
    partitionBy: 'HOUR',
    rows: 1,
    columns: new Map([['at', 'TIMESTAMP']]),
  };
  const choices = firstChoices(PROPOSAL);
  t.is(problemOf(PROPOSAL, choices, existing), undefined);
  t.false('timestamp' in parametersOf(PROPOSAL, choices, existing));
  t.is(parametersOf(PROPOSAL, { ...choices, overwrite: true }, existing)['overwrite'], 'true');
  const strange = { ...existing, columns: new Map([['other', 'INT']]) };
  t.is(problemOf(PROPOSAL, choices, strange), 'The table has none of these columns.');
});

test('time units and parse counts are described in words', (t) => {
  t.is(patternText('epoch_ms'), 'milliseconds since 1970');
  t.is(patternText('yyyy-MM-dd'), 'yyyy-MM-dd');
  t.is(trialText({ read: 1299, of: 1300 }), '1,299 of 1,300 read');
});

test('a type that the import cannot infer is sent with its null strings', (t) => {
  const [city, at, v] = PROPOSAL.columns as [ProposedColumn, ProposedColumn, ProposedColumn];
  const seconds = { ...at, type: 'TIMESTAMP', pattern: 'epoch_s', isSet: true };
  const proposal = { ...PROPOSAL, columns: [city, seconds, v] };
  const first = firstChoices(proposal);
  const sent = { name: 'at', type: 'TIMESTAMP', pattern: 'epoch_s' };
  t.deepEqual(schemaOf(proposal, first, undefined), [sent]);
  const columns = first.columns.map((column, index) =>
    index === 0 ? { ...column, type: 'DOUBLE', pattern: ',', nullTexts: ['n/a'] } : column,
  );
  t.deepEqual(schemaOf(proposal, { ...first, columns }, undefined), [
    { name: 'city', type: 'DOUBLE', pattern: ',', nullTexts: ['n/a'] },
    sent,
  ]);
});

test('the remaining time is shown as soon as it is known', (t) => {
  const start = begun(0, 1000);
  t.is(
    remaining(advanced(start, 1000, 100, 1000)),
    undefined,
    'the remaining time is still unknown',
  );
  const later = advanced(advanced(start, 1000, 100, 1000), 2500, 250, 1000);
  t.is(percent(later), 25);
  t.is(remaining(later), 'about 8 s left');
});

test('Parquet files are imported with SQL, and a table is replaced only at the end', (t) => {
  const proposal = { ...PROPOSAL, isTyped: true };
  const first = firstChoices(proposal);
  const columns = first.columns.map((column) =>
    column.name === 'city' ? { ...column, name: 'my city', type: 'SYMBOL' } : column,
  );
  const choices = { ...first, columns, timestamp: 'at', partitionBy: 'DAY' };
  const rows = `SELECT city::SYMBOL AS "my city", at AS at, v AS v FROM read_parquet('upload/a')`;
  t.deepEqual(parquetStatements('upload/a', proposal, choices, undefined), [
    `CREATE TABLE weather AS (${rows}) TIMESTAMP(at) PARTITION BY DAY`,
  ]);
  const [owned] = parquetStatements('upload/a', proposal, { ...choices, owner: 'ops' }, undefined);
  t.true(owned?.endsWith(' PARTITION BY DAY OWNED BY ops'));
  t.is(parametersOf(proposal, { ...choices, owner: ' ops' }, undefined)['owner'], 'ops');
  const existing = {
    timestamp: undefined,
    partitionBy: 'NONE',
    rows: 1,
    columns: new Map([['v', 'INT']]),
  };
  t.deepEqual(parquetStatements('upload/a', proposal, choices, existing), [
    `INSERT INTO weather (v) SELECT v FROM read_parquet('upload/a')`,
  ]);
  t.deepEqual(parquetStatements('upload/a', proposal, { ...choices, overwrite: true }, existing), [
    'DROP TABLE IF EXISTS weather_importing',
    `CREATE TABLE weather_importing AS (${rows}) TIMESTAMP(at) PARTITION BY DAY`,
    'DROP TABLE weather',
    'RENAME TABLE weather_importing TO weather',
  ]);
});

test('the outcome of a stopped import is determined from the table', (t) => {
  const before = { rows: '10', transaction: '4' };
  const after = { rows: '1200', transaction: '5' };
  t.is(endingText('weather', before, { ...before }, 'part'), 'Nothing was written.');
  t.is(endingText('weather', undefined, undefined, 'part'), 'Nothing was written.');
  t.regex(endingText('weather', before, before, 'whole'), /may still write it\. Check weather/);
  for (const known of [before, undefined]) {
    t.regex(
      endingText('weather', known, after, 'whole'),
      /was changed before the import stopped: it now has 1,200 rows\.$/,
    );
  }
  // Another table with the same number of rows has replaced the table.
  const replaced = { rows: '10', transaction: '6' };
  t.regex(
    endingText('weather', before, replaced, 'part'),
    /was changed before the import stopped: it now has 10 rows\.$/,
  );
  t.is(endingText('weather', before, undefined, 'part'), 'The table weather no longer exists.');
});

test('choosing a time column also enables partitioning', (t) => {
  const none = { ...firstChoices(PROPOSAL), timestamp: '', partitionBy: 'NONE' };
  t.deepEqual(orderedBy(none, 'at'), { timestamp: 'at', partitionBy: 'DAY' });
  const hours = { ...none, timestamp: 'at', partitionBy: 'HOUR' };
  t.deepEqual(orderedBy(hours, 'other'), { timestamp: 'other', partitionBy: 'HOUR' });
  t.deepEqual(orderedBy(hours, ''), { timestamp: '', partitionBy: 'NONE' });
});

test('malformed lines are found for any line ending and file size', async (t) => {
  const bad = [
    { line: 3, field: 2, problem: 'bad syntax' },
    { line: 40_002, field: 1, problem: 'bad syntax' },
  ];
  for (const end of ['\n', '\r\n', '\r']) {
    const lines = Array.from({ length: 40_001 }, (_, at) => `${at};"v ${at};${'x'.repeat(90)}"`);
    const header = `a;b${end}`;
    const file = new Blob([header, lines.map((line) => `${line}${end}`).join('')]);
    const proposal = { ...PROPOSAL, headerBytes: header.length };
    const found = await linesOf(file, proposal, bad);
    t.deepEqual(
      found.map(({ line, value, text }) => [line, value, text]),
      [
        [3, `"v 1;${'x'.repeat(90)}"`, lines[1]],
        [40_002, '40000', lines[40_000]],
      ],
    );
  }
  const [huge] = await linesOf(new Blob(['a\n', 'y'.repeat(5_000_000)]), PROPOSAL, [
    { line: 1, problem: 'no such line' },
  ]);
  t.is(huge?.text, '');
  const one = { ...PROPOSAL, headerBytes: 0 };
  const [long] = await linesOf(new Blob(['y'.repeat(5_000_000)]), one, [
    { line: 2, field: 1, problem: 'bad syntax' },
  ]);
  t.deepEqual([long?.line, long?.text.length, long?.value.length], [1, 501, 101]);
  const asIs = await linesOf(new Blob(['packed']), { ...PROPOSAL, asIs: true }, bad);
  t.deepEqual(asIs[0], { line: 3, field: 2, problem: 'bad syntax', value: '', text: '' });
});

test('line and column positions of malformed lines are parsed', (t) => {
  t.deepEqual(badLineOf('line 4, field 3: bad syntax'), {
    line: 4,
    field: 3,
    problem: 'bad syntax',
  });
  t.deepEqual(badLineOf('line 8: 4 fields, expected 3'), {
    line: 8,
    problem: '4 fields, expected 3',
  });
  t.is(badLineOf('a note'), undefined);
  t.deepEqual(recordOf('a,"b""c,\nd",e"f,\nnext', ','), {
    text: 'a,"b""c,\nd",e"f,',
    fields: ['a', '"b""c,\nd"', 'e"f', ''],
  });
  t.deepEqual(recordOf('a,"open', ',').fields, ['a', '"open']);
});
