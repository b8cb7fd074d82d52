import test from 'ava';

import { suiteSeed } from '../seed.js';
import { identityDifferences } from './identities.js';

test('500 random histories that reuse user names match the model', async (t) => {
  t.timeout(10 * 60_000);
  t.deepEqual(await identityDifferences(500, suiteSeed()), []);
});
