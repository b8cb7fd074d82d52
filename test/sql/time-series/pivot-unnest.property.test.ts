/**
 * PIVOT and UNNEST on random tables, compared with loops. Prints its seed. SEED=n repeats a run;
 * RUNS=n makes it longer.
 */
import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../../golden/server.js';
import { AGGREGATES } from './joins-reference.js';
import {
  fetchRows,
  type Cell,
  createTable,
  type Random,
  randomFrom,
  randomShape,
  type Row,
  shown,
} from './random-table.js';
import { suiteSeed } from '../../seed.js';

const seed = suiteSeed();
const RUNS = Number(process.env['RUNS'] ?? 15);

let server: TestServer;
test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
});
test.after.always(async () => {
  await server.stop();
});

function same(
  t: ExecutionContext,
  sql: string,
  actual: readonly Cell[][],
  expected: readonly Cell[][],
): void {
  const lines = (cells: readonly Cell[][]): string[] => cells.map(shown).sort();
  t.deepEqual(lines(actual), lines(expected), `SEED=${seed}: ${sql}`);
}

/** Returns rows grouped by their key as a string, in order of first occurrence. */
function grouped(rows: readonly Row[], key: (row: Row) => string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    groups.set(key(row), [...(groups.get(key(row)) ?? []), row]);
  }
  return groups;
}

/**
 * Returns the result of an aggregate for the rows that a FOR value selects; null if there are none.
 */
function cell(name: string, rows: readonly Row[], value: (row: Row) => number | null): Cell {
  return rows.length === 0 ? null : (AGGREGATES[name]?.(rows.map(value)) ?? null);
}

test.serial('PIVOT matches the model', async (t) => {
  const random = randomFrom(seed + 1);
  for (let run = 0; run < RUNS; run += 1) {
    const rows = await createTable(server.url, 'p', random, randomShape(random));
    const keys = ['a', 'b', 'zz'];
    const names = ['sum', 'min', 'max', 'avg'];
    const list = names.map((name) => `${name}(x) AS ${name}`).join(', ');
    for (const by of [null, 'g', 'b'] as const) {
      const group = by === null ? '' : ` GROUP BY ${by}`;
      const sql = `p PIVOT (${list} FOR k IN ('a', 'b', 'zz')${group})`;
      // Groups without any listed value are omitted.
      const listed = rows.filter(({ k }) => k !== null && keys.includes(k));
      const groups = [...grouped(listed, (row) => String(by === null ? '' : row[by])).values()];
      const expected = groups.map((own) => [
        ...(by === null ? [] : [own[0]?.[by] ?? null]),
        ...keys.flatMap((key) =>
          names.map((name) =>
            cell(
              name,
              own.filter(({ k }) => k === key),
              ({ x }) => x,
            ),
          ),
        ),
      ]);
      const found = await fetchRows(server.url, sql);
      // Without GROUP BY there is always one row.
      const nothing = [keys.flatMap(() => names.map(() => null))];
      same(t, sql, found, by === null && groups.length === 0 ? nothing : expected);
    }
    const two = "p PIVOT (sum(n) FOR k IN ('a', 'c') b IN (true, false) GROUP BY g)";
    const listed = rows.filter(({ k }) => k === 'a' || k === 'c');
    const pairs = [...grouped(listed, (row) => String(row.g)).values()].map((own) => [
      own[0]?.g ?? null,
      ...['a', 'c'].flatMap((key) =>
        [true, false].map((flag) =>
          cell(
            'sum',
            own.filter(({ k, b }) => k === key && b === flag),
            ({ n }) => n,
          ),
        ),
      ),
    ]);
    same(t, two, await fetchRows(server.url, two), pairs);
  }
});

type List = readonly (number | null)[] | null;

interface Lists {
  readonly id: number;
  readonly one: List;
  readonly other: List;
}

function randomList(random: Random): List {
  if (random(6) === 0) {
    return null;
  }
  return Array.from({ length: random(5) }, () => (random(4) === 0 ? null : random(100) / 4));
}

const literal = (list: List): string =>
  list === null ? 'null' : `ARRAY[${list.map(String).join(', ')}]::double[]`;

test.serial('UNNEST matches the model', async (t) => {
  const random = randomFrom(seed + 2);
  for (let run = 0; run < RUNS; run += 1) {
    const count = [0, 1, 2, 9, 40][random(5)] ?? 0;
    const rows = Array.from({ length: count }, (_, id): Lists => ({
      id,
      one: randomList(random),
      other: randomList(random),
    }));
    await fetchRows(server.url, 'DROP TABLE IF EXISTS u');
    await fetchRows(server.url, 'CREATE TABLE u (id INT, one DOUBLE[], other DOUBLE[])');
    if (rows.length > 0) {
      const values = rows.map(
        ({ id, one, other }) => `(${id}, ${literal(one)}, ${literal(other)})`,
      );
      await fetchRows(server.url, `INSERT INTO u VALUES ${values.join(', ')}`);
    }
    const single = 'SELECT id, e, n FROM u, UNNEST(u.one) WITH ORDINALITY q (e, n)';
    const elements = rows.flatMap(({ id, one }) => (one ?? []).map((e, at) => [id, e, at + 1]));
    same(t, single, await fetchRows(server.url, single), elements);

    const both = 'SELECT id, a, b FROM u, UNNEST(u.one, u.other) q (a, b) WHERE id > 1';
    const side = rows
      .filter(({ id }) => id > 1)
      .flatMap(({ id, one, other }) =>
        Array.from({ length: Math.max(one?.length ?? 0, other?.length ?? 0) }, (_, at) => [
          id,
          one?.[at] ?? null,
          other?.[at] ?? null,
        ]),
      );
    same(t, both, await fetchRows(server.url, both), side);

    const crossed = 'SELECT id, a, b FROM u, UNNEST(u.one) p (a), UNNEST(u.other) q (b)';
    const pairs = rows.flatMap(({ id, one, other }) =>
      (one ?? []).flatMap((a) => (other ?? []).map((b) => [id, a, b])),
    );
    same(t, crossed, await fetchRows(server.url, crossed), pairs);

    const sums = 'SELECT id, sum(e) s, count() c FROM u, UNNEST(u.one) q (e)';
    const folded = rows
      .filter(({ one }) => (one ?? []).length > 0)
      .map(({ id, one }) => [id, AGGREGATES['sum']?.(one ?? []) ?? null, (one ?? []).length]);
    same(t, sums, await fetchRows(server.url, sums), folded);
  }
});
