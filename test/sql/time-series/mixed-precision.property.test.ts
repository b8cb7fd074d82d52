/**
 * Time joins between a microsecond table and a nanosecond table. Times are compared in nanoseconds,
 * so no row matches a row in its future. SEED=n repeats a run.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../../golden/server.js';
import { suiteSeed } from '../../seed.js';
import { asof, type KeyOf, splice, windowOf } from './joins-reference.js';
import { fetchRows, type Cell, type Random, randomFrom, type Row, shown } from './random-table.js';

const seed = suiteSeed();
const RUNS = Number(process.env['RUNS'] ?? 12);

let server: TestServer;
test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
});
test.after.always(async () => {
  await server.stop();
});

const KEYS: readonly (readonly [on: string, of: KeyOf])[] = [
  ['', () => ''],
  ['ON (k)', ({ k }) => String(k)],
];

/**
 * Returns a timestamp string for a number of nanoseconds after the start of a day, with as many
 * digits as the type has.
 */
const at = (nanos: number, digits: number): string =>
  `2024-01-01T00:00:00.${String(nanos).padStart(9, '0').slice(0, digits)}Z`;

/**
 * Fills a table with timestamps within one second. In microsecond tables the timestamps are whole
 * microseconds.
 */
async function fill(name: string, nanoseconds: boolean, random: Random): Promise<Row[]> {
  const timestamps = 1 + random(12);
  const rows = Array.from({ length: [0, 1, 3, 9, 40][random(5)] ?? 0 }, () => {
    const micros = 1_000 * random(timestamps);
    const ts = micros + (nanoseconds ? ([0, 0, 1, 500, 999][random(5)] ?? 0) : 0);
    return { ts, k: 'ab'.charAt(random(2)) };
  })
    .sort((one, other) => one.ts - other.ts)
    .map((row, id): Row => ({ ...row, id, g: null, x: id, n: null, b: false }));
  const [type, digits] = nanoseconds ? ['TIMESTAMP_NS', 9] : ['TIMESTAMP', 6];
  await fetchRows(server.url, `DROP TABLE IF EXISTS ${name}`);
  await fetchRows(
    server.url,
    `CREATE TABLE ${name} (ts ${type}, k SYMBOL, x DOUBLE, id INT) TIMESTAMP(ts) PARTITION BY DAY`,
  );
  if (rows.length > 0) {
    const values = rows.map(({ ts, k, x, id }) => `('${at(ts, digits)}', '${k}', ${x}, ${id})`);
    await fetchRows(server.url, `INSERT INTO ${name} VALUES ${values.join(',')}`);
  }
  return rows;
}

test.serial('time-series joins match the model for mixed timestamp precisions', async (t) => {
  const random = randomFrom(seed);
  const same = async (sql: string, expected: readonly Cell[][]): Promise<void> => {
    const lines = (cells: readonly Cell[][]): string[] => cells.map(shown).sort();
    t.deepEqual(lines(await fetchRows(server.url, sql)), lines(expected), `SEED=${seed}: ${sql}`);
  };
  for (let run = 0; run < 2 * RUNS; run += 1) {
    const finer = run % 2 === 0;
    const left = await fill('a', !finer, random);
    const right = await fill('c', finer, random);
    for (const [on, of] of KEYS) {
      const micros = random(4);
      const pairs = (strict: boolean, tolerance: number | null): Cell[][] =>
        asof(left, right, of, strict, tolerance).map(([a, c]) => [a?.id ?? null, c?.id ?? null]);
      await same(`SELECT a.id, c.id FROM a ASOF JOIN c ${on}`, pairs(false, null));
      await same(
        `SELECT a.id, c.id FROM a LT JOIN c ${on} TOLERANCE ${micros + 1}U`,
        pairs(true, 1_000 * (micros + 1)),
      );
      await same(
        `SELECT a.id, c.id FROM a SPLICE JOIN c ${on}`,
        splice(left, right, of).map(([a, c]) => [a?.id ?? null, c?.id ?? null]),
      );
      const prevailing = random(2) === 0;
      const spec = {
        low: () => -1_000 * micros,
        high: () => 0,
        prevailing,
        on: (one: Row, other: Row) => of(one) === of(other),
      };
      await same(
        `SELECT a.id, count(), last(c.id) FROM a WINDOW JOIN c ${on} RANGE BETWEEN ${micros} ` +
          'microseconds PRECEDING AND CURRENT ROW ' +
          `${prevailing ? 'INCLUDE' : 'EXCLUDE'} PREVAILING`,
        left.map((row) => {
          const inside = windowOf(row, right, spec);
          return [row.id, inside.length, inside[inside.length - 1]?.id ?? null];
        }),
      );
      const offset = micros === 0 ? '0' : `${micros}U`;
      const moved = left.map((row) => ({ ...row, ts: row.ts + 1_000 * micros }));
      await same(
        `SELECT a.id, c.id FROM a HORIZON JOIN c ${on} LIST (${offset}) AS h`,
        asof(moved, right, of, false, null).map(([a, c]) => [a?.id ?? null, c?.id ?? null]),
      );
    }
  }
});
