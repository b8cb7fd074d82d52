/**
 * Declares one ava test per golden case. Cases on the pending list are skipped. An extra test fails
 * if a pending case passes, so the list can only get shorter.
 */
import test from 'ava';

import { readPending, type Suite } from './cases.js';
import type { Results } from './run.js';

const SUITE_MS = 20 * 60_000;

export function declareSuite(
  suite: Suite,
  ids: readonly string[],
  run: () => Promise<Results>,
): void {
  const pending = new Set(readPending()[suite]);
  let results: Results = new Map();
  test.before(async (t) => {
    t.timeout(SUITE_MS);
    results = await run();
  });
  for (const id of ids) {
    const declare = pending.has(id) ? test.skip : test;
    declare(`${suite} ${id}`, (t) => {
      const problem = results.get(id);
      t.is(problem, null, problem ?? 'the case did not run');
    });
  }
  test(`${suite}: every pending case still fails`, (t) => {
    const passing = [...pending].filter((id) => results.get(id) === null);
    t.deepEqual(passing, [], 'npm run golden -- --update-pending removes them from the list');
  });
  test(`${suite}: every pending id refers to a case`, (t) => {
    const known = new Set(ids);
    t.deepEqual(
      [...pending].filter((id) => !known.has(id)),
      [],
    );
  });
}
