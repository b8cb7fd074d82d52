/**
 * Random histories of a base table: after any changes, each live view must match the result of its
 * query. `HISTORIES=100000 npx ava build/test/views/live-histories.test.js` runs 100,000 histories.
 */
import test from 'ava';

import { playHistories, playWithKills } from './history.js';
import { live } from './live-history.js';

test('live views equal their queries after random changes to their base tables', (t) =>
  playHistories(t, live));

test('live views equal their queries after kills', (t) => playWithKills(t, live, 6));
