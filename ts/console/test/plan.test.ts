import test from 'ava';
import { millis, parsePlan } from '../src/model/plan.js';

test('the lines of a plan become a tree with row counts and times', (t) => {
  const { nodes, totals } = parsePlan([
    'SortExec: expr=[a@0 ASC, b@1 DESC], metrics=[output_rows=12, elapsed_compute=1.5ms, spills=0]',
    '  FilterExec: price > 1, metrics=[output_rows=100000, elapsed_compute=320µs]',
    '    Scan',
    'Rows: 12',
    'Time: 3.250 ms',
  ]);
  t.deepEqual(
    nodes.map(({ name, detail, depth, rows, ms }) => ({ name, detail, depth, rows, ms })),
    [
      { name: 'Sort', detail: 'expr=[a@0 ASC, b@1 DESC]', depth: 0, rows: '12', ms: 1.5 },
      { name: 'Filter', detail: 'price > 1', depth: 1, rows: '100000', ms: 0.32 },
      { name: 'Scan', detail: '', depth: 2, rows: undefined, ms: undefined },
    ],
  );
  t.deepEqual(totals, [
    { name: 'Rows', value: '12' },
    { name: 'Time', value: '3.250 ms' },
  ]);
});

test('durations in any unit are parsed as milliseconds', (t) => {
  t.is(millis('2s'), 2000);
  t.is(millis('500ns'), 0.0005);
  t.is(millis('soon'), undefined);
});
