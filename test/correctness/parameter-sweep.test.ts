/** Parameters in the place of every literal of the recorded statements. */
import test from 'ava';

import { sweepParameters, unexplained } from './parameter-sweep.js';

test('a statement with a parameter answers as the one with the literal', async (t) => {
  const sweep = await sweepParameters();
  t.true(sweep.statements > 800, String(sweep.statements));
  t.true(sweep.runs > 4_000, String(sweep.runs));
  t.deepEqual(unexplained(sweep), []);
});
