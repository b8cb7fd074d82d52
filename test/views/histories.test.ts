/**
 * Random histories of a base table: whatever happens to it, each view over it equals its query over
 * it. `HISTORIES=100000 npx ava build/test/views/histories.test.js` plays as many.
 */
import test from 'ava';

import { playHistories, playWithKills } from './history.js';
import { materialized } from './materialized-history.js';

test('views equal their queries, whatever happens to their bases', (t) =>
  playHistories(t, materialized));

test('views equal their queries after kills', (t) => playWithKills(t, materialized, 8));
