import test from 'ava';
import type { Column, Row } from '../src/api/answer.js';
import { rowsAs } from '../src/model/copies.js';
import { compareNumbers, orderOf, rowTest } from '../src/model/order.js';
import { profileOf } from '../src/model/profile.js';

const COLUMNS: Column[] = [
  { name: 'ts', type: 'TIMESTAMP' },
  { name: 'n', type: 'LONG' },
  { name: 'd', type: 'DOUBLE' },
  { name: 's', type: 'SYMBOL' },
];
const ROWS: Row[] = [
  ['2024-01-02T00:00:00.000000Z', '9007199254740993', 1.5, 'b'],
  ['2024-01-01T12:30:00.000000Z', '9007199254740992', null, 'a'],
  [null, '-5', -0.5, ''],
  ['2024-01-03T00:00:00.000000Z', '10', 1.5, 'a|b'],
];

function order(column: number, descending: boolean): number[] {
  return [...(orderOf(COLUMNS, ROWS, { column, descending }, '') ?? [])];
}

test('rows are sorted exactly and stably by value, nulls last', (t) => {
  t.deepEqual(order(0, false), [1, 0, 3, 2]);
  t.deepEqual(order(0, true), [3, 0, 1, 2]);
  t.deepEqual(order(1, false), [2, 3, 1, 0]);
  t.deepEqual(order(2, false), [2, 0, 3, 1]);
  t.deepEqual(order(2, true), [0, 3, 2, 1]);
  t.deepEqual(order(3, false), [2, 1, 3, 0]);
  t.is(orderOf(COLUMNS, ROWS, undefined, '  '), undefined);
});

test('numbers are compared beyond the precision of a double', (t) => {
  for (const [less, more] of [
    ['9223372036854775806', '9223372036854775807'],
    ['-9223372036854775807', '-9223372036854775806'],
    ['0.10000000000000000000000001', '0.10000000000000000000000002'],
    ['-Infinity', '-1'],
    ['1e3', '1001'],
    ['5', 'NaN'],
  ] as const) {
    t.true(compareNumbers(less, more) < 0, `${less} < ${more}`);
    t.true(compareNumbers(more, less) > 0, `${more} > ${less}`);
  }
  t.is(compareNumbers('1.50', '1.5'), 0);
  t.is(compareNumbers('NaN', 'NaN'), 0);
});

test('a filter searches all columns or compares one column', (t) => {
  const found = (filter: string): number[] =>
    ROWS.flatMap((row, index) => (rowTest(COLUMNS, filter)(row) ? [index] : []));
  t.deepEqual(found('a'), [1, 3]);
  t.deepEqual(found('2024-01-01 12'), [1]);
  t.deepEqual(found('9,007,199,254,740,993'), [0]);
  t.deepEqual(found('N >= 10'), [0, 1, 3]);
  t.deepEqual(found('n = 9007199254740992'), [1]);
  t.deepEqual(found('ts > 2024-01-01'), [0, 3]);
  t.deepEqual(found('ts = 2024-01-01'), [1]);
  t.deepEqual(found('d != null'), [0, 2, 3]);
  t.deepEqual(found('s: A'), [1, 3]);
  t.deepEqual(found('unknown > 1'), []);
});

test('a profile contains counts, minimum, maximum and sums', (t) => {
  const column: Column = { name: 'd', type: 'DOUBLE' };
  const rows: Row[] = [[1], [2], [2], [null], [10], [NaN]];
  const profile = profileOf(column, 0, rows);
  t.like(profile, { rows: 6, nulls: 1, distinct: 4, min: '1', mean: 3.75 });
  t.deepEqual(profile.frequent[0], { text: '2', count: 2 });
  t.is(profile.bins.length, 24);
  t.is(
    profile.bins.reduce((sum, { count }) => sum + count, 0),
    4,
  );
  t.is(profile.bins[0]?.count, 1);
  t.is(profile.bins.at(-1)?.count, 1);
  const text = profileOf({ name: 's', type: 'VARCHAR' }, 0, [['x'], [''], ['abc']]);
  t.like(text, { empty: 1, maxLength: 3, min: undefined, frequent: [], bins: [] });
  t.deepEqual(profileOf(column, 0, []).bins, []);
  const huge = profileOf(column, 0, [[-1.7e308], [1.7e308]]);
  t.is(huge.bins.at(-1)?.count, 1);
});

test('copies preserve all digits and distinguish null from empty strings', (t) => {
  const rows = ROWS.slice(2);
  t.is(
    rowsAs('csv', COLUMNS, rows),
    'ts,n,d,s\r\n,-5,-0.5,""\r\n2024-01-03T00:00:00.000000Z,10,1.5,a|b\r\n',
  );
  t.regex(rowsAs('markdown', COLUMNS, rows), /\| null \| -5 \| -0\.5 \| {2}\|\n.*a\\\|b \|/);
  t.regex(rowsAs('json', COLUMNS, ROWS), /"n": 9007199254740993, "d": 1\.5/);
  t.is((JSON.parse(rowsAs('json', COLUMNS, ROWS)) as unknown[]).length, 4);
});
