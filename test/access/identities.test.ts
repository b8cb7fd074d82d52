import test from 'ava';

import { suiteSeed } from '../seed.js';
import { identityDifferences } from './identities.js';

test('gate S15: 500 histories of users with reused names agree with the model', async (t) => {
  t.timeout(10 * 60_000);
  t.deepEqual(await identityDifferences(500, suiteSeed()), []);
});
