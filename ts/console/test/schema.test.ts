import test from 'ava';
import type { Row } from '../src/api/answer.js';
import { columnEntries, functionEntries, tableEntries } from '../src/model/schema.js';
import { nearest, quoted } from '../src/sql/names.js';
import { treeRows } from '../src/schema/rows.js';

function answer(names: string[], rows: Row[]): Parameters<typeof tableEntries>[0] {
  return { head: { columns: names.map((name) => ({ name, type: 'STRING' })) }, rows };
}

const TABLES = tableEntries(
  answer(
    ['id', 'table_name', 'partitionBy', 'table_row_count', 'table_suspended', 'table_type'],
    [
      [1, 'trades', 'DAY', '100', false, 'T'],
      [2, 'hourly', 'DAY', '5', false, 'M'],
      [3, 'open', null, null, true, 'V'],
      [4, 'totals', 'DAY', '7', false, 'L'],
    ],
  ),
);

test('table lists are parsed by column name, ignoring unknown columns', (t) => {
  t.deepEqual(
    TABLES.map(({ name, kind, rows, suspended }) => [name, kind, rows, suspended]),
    [
      ['hourly', 'materialized', 5, false],
      ['open', 'view', undefined, true],
      ['totals', 'live', 7, false],
      ['trades', 'table', 100, false],
    ],
  );
  t.like(tableEntries(answer(['table_name'], [['only']]))[0], { name: 'only', kind: 'table' });
});

test('column lists are parsed by column name', (t) => {
  const rows: Row[] = [
    ['ts', 'TIMESTAMP', true],
    ['x', 'INT', false],
  ];
  t.deepEqual(columnEntries(answer(['column', 'type', 'designated'], rows)), [
    { name: 'ts', type: 'TIMESTAMP', designated: true },
    { name: 'x', type: 'INT', designated: false },
  ]);
});

test('the tree shows groups, expanded tables and filter matches', (t) => {
  const columns = new Map([
    [
      'trades',
      { state: 'ready', value: [{ name: 'price', type: 'DOUBLE', designated: false }] } as const,
    ],
  ]);
  const ids = (opened: string[], closed: string[], filter: string): string[] =>
    treeRows(TABLES, columns, new Set(opened), new Set(closed), filter).map(({ id }) => id);
  t.deepEqual(ids([], [], ''), [
    'table',
    'table:trades',
    'materialized',
    'table:hourly',
    'live',
    'table:totals',
    'view',
    'table:open',
  ]);
  t.deepEqual(ids(['trades'], ['materialized', 'live', 'view'], ''), [
    'table',
    'table:trades',
    'table:trades:price',
    'materialized',
    'live',
    'view',
  ]);
  t.true(ids([], [], 'pri').includes('table:trades:price'));
  t.false(ids([], [], 'pri').includes('table:hourly'));
  t.true(ids(['hourly'], [], '').includes('table:hourly:loading'));
  const suspended = ids([], [], 'Suspended').filter((id) => id.startsWith('table:'));
  t.deepEqual(suspended, ['table:open']);
});

test('names are quoted only where necessary', (t) => {
  t.is(quoted('trades'), 'trades');
  t.is(quoted('my table'), '"my table"');
  t.is(quoted('a"b'), '"a""b"');
});

test('a misspelt name gets a suggestion, and an unrelated name gets none', (t) => {
  t.is(nearest('temprature', ['time', 'temperature', 'station']), 'temperature');
  t.is(nearest('Prise', ['price', 'amount']), 'price');
  t.is(nearest('zzzzzz', ['price', 'amount']), undefined);
});

test('a function has one entry for all of its signatures', (t) => {
  const entries = functionEntries(
    answer(
      ['name', 'type', 'signature', 'description'],
      [
        ['round', 'STANDARD', 'round(DOUBLE) -> DOUBLE', 'nearest number'],
        ['round', 'STANDARD', 'round(DOUBLE, INT) -> DOUBLE', 'nearest number'],
        ['tables', 'CURSOR', 'tables()', ''],
      ],
    ),
  );
  t.deepEqual(entries, [
    {
      name: 'round',
      isSource: false,
      signatures: ['round(DOUBLE) -> DOUBLE', 'round(DOUBLE, INT) -> DOUBLE'],
      description: 'nearest number',
    },
    { name: 'tables', isSource: true, signatures: ['tables()'], description: '' },
  ]);
});
