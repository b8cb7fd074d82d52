/**
 * Random histories of a base table. After any changes, each live view must match the result of its
 * query. `HISTORIES=100000 npx ava build/test/views/live-histories.test.js` runs 100,000 histories.
 */
import test from 'ava';

import { playHistories, playWithKills } from './history.js';
import { live } from './live-history.js';

test("live views match their queries' results after random base table changes", (t) =>
  playHistories(t, live));

test("live views match their queries' results after kills", (t) => playWithKills(t, live, 6));
