import test from 'ava';
import { between, cellsIn, factsOf, contains } from '../../src/grid/selection.js';

test('a selection is the same when started from any corner', (t) => {
  const one = between({ row: 3, column: 1 }, { row: 1, column: 2 });
  t.deepEqual(one, between({ row: 1, column: 2 }, { row: 3, column: 1 }));
  t.is(cellsIn(one), 6);
  t.true(contains(one, 2, 1));
  t.false(contains(one, 0, 1));
  t.false(contains(undefined, 0, 0));
});

test('integers are summed exactly, and nulls and strings are counted separately', (t) => {
  const rows = [
    ['9223372036854775807', 'a'],
    ['9223372036854775807', null],
    [null, 'c'],
  ];
  const facts = factsOf(rows, [true, false]);
  t.is(facts.sum, '18446744073709551614');
  t.is(facts.cells, 6);
  t.is(facts.values, 4);
  t.is(facts.numbers, 2);
  t.is(facts.average, 9223372036854775807);
});

test('a sum of fractions does not lose small values next to large ones', (t) => {
  const facts = factsOf([[1e16], [1.5], [-1e16]], [true]);
  t.is(facts.sum, '1.5');
  t.is(facts.min, -1e16);
  t.is(factsOf([['x'], [null]], [true]).sum, undefined);
  t.is(factsOf([['NaN'], [2]], [true]).sum, '2');
});
