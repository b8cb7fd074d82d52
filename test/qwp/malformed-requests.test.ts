/** Mutated result requests: each gets a response, and none does any harm. */
import test from 'ava';

import { suiteSeed } from '../seed.js';
import { runMalformed } from './malformed-requests.js';

test('20,000 mutated messages never crash the server', async (t) => {
  const { messages, answers } = await runMalformed(20_000, suiteSeed());
  t.true(messages >= 20_000);
  // These counts prove that conversations took place. If every conversation had ended immediately,
  // the test would prove nothing.
  for (const kind of ['batch', 'end', 'error 5', 'error 3', 'error 10', 'info']) {
    t.true((answers.get(kind) ?? 0) > 50, `${kind}: ${answers.get(kind) ?? 0}`);
  }
});
