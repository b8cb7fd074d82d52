/** Parameters in place of literals in recorded, documented and benchmarked statements. */
import test from 'ava';

import { sweepParameters, unexplained } from './parameter-sweep.js';

test('parameters and literals produce the same result', async (t) => {
  const sweep = await sweepParameters();
  const { statements, runs } = sweep;
  const shown = JSON.stringify([[...statements], runs]);
  for (const [source, minimum] of [
    ['recorded', 890],
    ['grammar', 400],
    ['functions', 390],
    ['pages', 25],
    ['benchmark', 100],
  ] as const) {
    t.true((statements.get(source) ?? 0) >= minimum, shown);
  }
  t.true(runs.one > 8_000 && runs.several > 3_500 && runs.array > 150, shown);
  t.deepEqual(unexplained(sweep), []);
});
