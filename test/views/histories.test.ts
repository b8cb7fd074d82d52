/**
 * Random histories of a base table. After any changes, each view must match the result of its
 * query. `HISTORIES=100000 npx ava build/test/views/histories.test.js` runs 100,000 histories.
 */
import test from 'ava';

import { playHistories, playWithKills } from './history.js';
import { materialized } from './materialized-history.js';

test('views match the results of their queries after random base table changes', (t) =>
  playHistories(t, materialized));

test('views match the results of their queries after kills', (t) =>
  playWithKills(t, materialized, 8));
