import { readFileSync } from 'node:fs';

import test from 'ava';

const ROOT = new URL('../../../', import.meta.url);

interface Script {
  compare(baseline: Record<string, number>, counts: Map<string, number>): string[];
}
const { compare } = (await import(new URL('scripts/kernel-counts.mjs', ROOT).href)) as Script;

const counts = (changes: Record<string, number>) =>
  new Map(Object.entries({ sum: 1.2, match: 40, ...changes }));

test('instruction counts may differ slightly from the baseline', (t) => {
  const baseline = { sum: 1.2, match: 40 };
  t.deepEqual(compare(baseline, counts({})), []);
  t.deepEqual(compare(baseline, counts({ sum: 1.25, match: 38.5 })), []);
  t.deepEqual(compare(baseline, counts({ match: 44 })), [
    'match: 44 instructions per row, 10.0 % more than 40',
  ]);
  t.deepEqual(compare(baseline, counts({ match: 30 })), [
    'match: 30 instructions per row, 25.0 % fewer than 40',
  ]);
});

test('added and removed kernels require a new baseline', (t) => {
  t.deepEqual(compare({ sum: 1.2, last: 3 }, counts({})), [
    'match: 40 instructions per row, not in the baseline',
    'last: in the baseline, but not counted',
  ]);
});

test('the baseline has counts for all kernels', (t) => {
  const baseline = JSON.parse(
    readFileSync(new URL('scripts/kernel-counts.json', ROOT), 'utf8'),
  ) as Record<string, number>;
  const sources = ['loops.rs', 'texts.rs'].map((file) =>
    readFileSync(new URL(`crates/testkit/src/kernels/${file}`, ROOT), 'utf8'),
  );
  const text = sources.join('');
  t.deepEqual(
    Object.keys(baseline).filter((name) => !text.includes(`"${name}"`)),
    [],
  );
});
