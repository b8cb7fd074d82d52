/** Mutated result requests: each gets a response, none causes harm. */
import test from 'ava';

import { suiteSeed } from '../seed.js';
import { runSpoiled } from './spoiled-requests.js';

test('20,000 messages', async (t) => {
  const { messages, answers } = await runSpoiled(20_000, suiteSeed());
  t.true(messages >= 20_000);
  // Conversations that end before they start would prove nothing.
  for (const kind of ['batch', 'end', 'error 5', 'error 3', 'error 10', 'info']) {
    t.true((answers.get(kind) ?? 0) > 50, `${kind}: ${answers.get(kind) ?? 0}`);
  }
});
