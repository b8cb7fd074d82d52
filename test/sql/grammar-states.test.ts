/** The grammar table against a running server. */
import test from 'ava';

import { readPending, runItems } from './grammar/states.js';

test('grammar items run unless they are listed as pending', async (t) => {
  const listed = new Set(readPending());
  const results = await runItems();
  for (const [id, problem] of results) {
    if (listed.has(id)) {
      t.not(problem, null, `${id} runs now: node build/test/sql/grammar/main.js --update`);
    } else {
      t.is(problem, null, id);
    }
  }
});
