/**
 * Random histories of a base table: whatever happens to it, each live view over it equals its own
 * query over it. `HISTORIES=100000 npx ava build/test/views/live-histories.test.js` plays as many.
 */
import test from 'ava';

import { playHistories, playWithKills } from './history.js';
import { live } from './live-history.js';

test('live views equal their queries, whatever happens to their bases', (t) =>
  playHistories(t, live));

test('live views equal their queries after kills', (t) => playWithKills(t, live, 6));
