/**
 * `percentile_disc` of times and strings, compared with sorting: with few and many equal values, in
 * any order.
 */
import test from 'ava';

import { startTestServer } from '../golden/server.js';

const SHAPES: Readonly<Record<string, (x: number) => number>> = {
  ascending: (x) => x,
  descending: (x) => 100_000 - x,
  equal: () => 7,
  'few values': (x) => (x * 7_919) % 13,
  mixed: (x) => (x * 7_919) % 9_973,
};

test('percentiles match those of sorted values', async (t) => {
  const server = await startTestServer({});
  t.teardown(() => server.stop());
  for (const [name, of] of Object.entries(SHAPES)) {
    for (const count of [1, 2, 3, 2_000]) {
      const values = Array.from({ length: count }, (_, at) => of(at + 1));
      const rows = values.map((value) => `(${value})`).join(', ');
      const sorted = values.toSorted((a, b) => a - b);
      const fractions = [0, 0.1, 0.5, 0.9, 1];
      const lists = ['v::timestamp', "lpad(v::varchar, 6, '0')"].flatMap((key) =>
        fractions.map((part) => `percentile_disc(${part}) within group (order by ${key})`),
      );
      const query = `select ${lists.join(', ')} from (values ${rows}) t(v)`;
      const answer = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
      const { dataset, error } = (await answer.json()) as {
        dataset?: readonly (readonly string[])[];
        error?: string;
      };
      const rank = (part: number): number => Math.max(Math.ceil(part * count), 1) - 1;
      const expected = fractions.map((part) => sorted[rank(part)] ?? 0);
      const times = expected.map(
        (value) => `1970-01-01T00:00:00.${String(value).padStart(6, '0')}Z`,
      );
      const texts = expected.map((value) => String(value).padStart(6, '0'));
      t.deepEqual(dataset?.[0], [...times, ...texts], `${name}, ${count}: ${error ?? ''}`);
    }
  }
});
