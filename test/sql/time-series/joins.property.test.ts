/**
 * Time joins on random tables, compared with the naive reference implementation. Prints its seed.
 * SEED=n repeats a run; RUNS=n makes it longer.
 */
import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../../golden/server.js';
import {
  AGGREGATES,
  asof,
  type KeyOf,
  splice,
  type WindowSpec,
  windowOf,
} from './joins-reference.js';
import {
  fetchRows,
  type Cell,
  createTable,
  micros,
  type Random,
  randomFrom,
  randomShape,
  type Row,
  SECOND,
  shown,
} from './random-table.js';
import { suiteSeed } from '../../seed.js';

const seed = suiteSeed();
const RUNS = Number(process.env['RUNS'] ?? 12);

let server: TestServer;
test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
});
test.after.always(async () => {
  await server.stop();
});

function one<T>(list: readonly T[], index: number): T {
  const found = list[index];
  if (found === undefined) {
    throw new Error(`no entry ${index} of ${list.length}`);
  }
  return found;
}

interface Keys {
  readonly on: string;
  readonly of: KeyOf;
}

const KEYS: readonly Keys[] = [
  { on: '', of: () => '' },
  { on: 'ON (k)', of: ({ k }) => String(k) },
  { on: 'ON (a.g = c.g)', of: ({ g }) => String(g) },
  { on: 'ON (a.k = c.k AND a.g = c.g)', of: ({ k, g }) => `${k}/${g}` },
];

interface Tables {
  readonly left: readonly Row[];
  readonly right: readonly Row[];
  readonly random: Random;
  /** Distance between adjacent timestamps of the right table. */
  readonly step: number;
}

/** Runs `check` on random pairs of tables `a` and `c`. */
async function onTables(salt: number, check: (tables: Tables) => Promise<void>): Promise<void> {
  const random = randomFrom(seed + salt);
  for (let run = 0; run < RUNS; run += 1) {
    const shape = randomShape(random);
    const other = { ...randomShape(random), step: shape.step };
    const left = await createTable(server.url, 'a', random, shape);
    const right = await createTable(server.url, 'c', random, other);
    await check({ left, right, random, step: shape.step });
  }
}

function same(
  t: ExecutionContext,
  sql: string,
  actual: readonly Cell[][],
  expected: readonly Cell[][],
): void {
  const lines = (cells: readonly Cell[][]): string[] => cells.map(shown).sort();
  t.deepEqual(lines(actual), lines(expected), `SEED=${seed}: ${sql}`);
}

test.serial('ASOF and LT JOIN match the model', async (t) => {
  await onTables(1, async ({ left, right, random, step }) => {
    for (const keys of KEYS) {
      for (const strict of [false, true]) {
        const steps = random(4);
        const tolerance = steps === 0 ? null : steps * step;
        const word = strict ? 'LT' : 'ASOF';
        const limit = tolerance === null ? '' : `TOLERANCE ${tolerance}U`;
        const sql = `SELECT a.id, c.id, c.x, c.b FROM a ${word} JOIN c ${keys.on} ${limit}`;
        const expected = asof(left, right, keys.of, strict, tolerance).map(([row, found]) => [
          row?.id ?? null,
          found?.id ?? null,
          found?.x ?? null,
          found?.b ?? false,
        ]);
        same(t, sql, await fetchRows(server.url, sql), expected);
      }
    }
  });
});

test.serial('LATEST ON over the right input of an ASOF JOIN matches the model', async (t) => {
  await onTables(7, async ({ left, right }) => {
    const { on, of } = one(KEYS, 1);
    const sql =
      `SELECT id FROM (SELECT a.ts ts, a.id id, c.k s FROM a ASOF JOIN c ${on}) ` +
      'LATEST ON ts PARTITION BY s';
    const pairs = asof(left, right, of, false, null).map(([row, found]) => ({
      id: row?.id ?? null,
      s: found?.k ?? null,
    }));
    const expected = pairs.filter(
      ({ s }, index) => !pairs.slice(index + 1).some((later) => later.s === s),
    );
    same(
      t,
      sql,
      await fetchRows(server.url, sql),
      expected.map(({ id }) => [id]),
    );
  });
});

test.serial('SPLICE JOIN matches the model', async (t) => {
  await onTables(2, async ({ left, right }) => {
    for (const keys of KEYS) {
      const sql = `SELECT a.id, a.k, c.id, c.x, c.b FROM a SPLICE JOIN c ${keys.on}`;
      const expected = splice(left, right, keys.of).map(([row, found]) => [
        row?.id ?? null,
        row?.k ?? null,
        found?.id ?? null,
        found?.x ?? null,
        found?.b ?? false,
      ]);
      same(t, sql, await fetchRows(server.url, sql), expected);
    }
  });
});

interface Bounds {
  readonly text: string;
  readonly low: WindowSpec['low'];
  readonly high: WindowSpec['high'];
}

function randomBounds(random: Random, step: number): Bounds {
  const [before, after] = [random(5) * step, random(5) * step];
  const dynamic = random(3) === 0;
  if (dynamic) {
    const distance = ({ g }: Row): number | null => (g === null ? null : g * step);
    return {
      text: `a.g * ${step}L PRECEDING AND ${after} microseconds FOLLOWING`,
      low: (row) => {
        const units = distance(row);
        return units === null ? null : -units;
      },
      high: () => after,
    };
  }
  const choices: Bounds[] = [
    { text: `${before} PRECEDING AND ${after} FOLLOWING`, low: () => -before, high: () => after },
    { text: `${before} PRECEDING AND CURRENT ROW`, low: () => -before, high: () => 0 },
    {
      text: `${before + after} microseconds PRECEDING AND ${after} microseconds PRECEDING`,
      low: () => -(before + after),
      high: () => -after,
    },
    {
      text: `${before} FOLLOWING AND ${before + after} FOLLOWING`,
      low: () => before,
      high: () => before + after,
    },
  ];
  return one(choices, random(choices.length));
}

interface Condition {
  readonly on: string;
  readonly holds: WindowSpec['on'];
}

/** Join conditions: keys, and terms over one side or both. */
const CONDITIONS: readonly Condition[] = [
  ...KEYS.map(({ on, of }) => ({ on, holds: (left: Row, right: Row) => of(left) === of(right) })),
  {
    on: 'ON (a.k = c.k AND c.x > 0)',
    holds: (left, right) => left.k === right.k && right.x !== null && right.x > 0,
  },
  {
    on: 'ON (a.k = c.k AND a.n > 0)',
    holds: (left, right) => left.k === right.k && left.n !== null && left.n > 0,
  },
  {
    on: 'ON (a.g = c.g AND c.x > a.x)',
    holds: (left, right) =>
      left.g === right.g && left.x !== null && right.x !== null && right.x > left.x,
  },
];

test.serial('WINDOW JOIN matches the model', async (t) => {
  await onTables(3, async ({ left, right, random, step }) => {
    for (const { on, holds } of CONDITIONS) {
      const { text, low, high } = randomBounds(random, step);
      const prevailing = random(2) === 0;
      const words = prevailing ? 'INCLUDE PREVAILING' : 'EXCLUDE PREVAILING';
      const names = Object.keys(AGGREGATES);
      const lists = names.flatMap((name) => [`${name}(c.x)`, `${name}(c.n)`]);
      const list = [...lists, 'count()', 'sum(c.n + a.id)', 'first(c.k)'];
      const filter = random(3) === 0 ? 'WHERE a.id > 5' : '';
      const sql =
        `SELECT a.id, ${list.join(', ')} FROM a WINDOW JOIN c ${on} ` +
        `RANGE BETWEEN ${text} ${words} ${filter}`;
      const rows = left.filter(({ id }) => filter === '' || id > 5);
      const expected = rows.map((row) => {
        const inside = windowOf(row, right, { low, high, prevailing, on: holds });
        const [xs, ns] = [inside.map(({ x }) => x), inside.map(({ n }) => n)];
        const moved = ns.map((n) => (n === null ? null : n + row.id));
        return [
          row.id,
          ...names.flatMap((name) => [xs, ns].map((values) => AGGREGATES[name]?.(values) ?? null)),
          inside.length,
          AGGREGATES['sum']?.(moved) ?? null,
          inside[0]?.k ?? null,
        ];
      });
      same(t, sql, await fetchRows(server.url, sql), expected);
    }
  });
});

test.serial('two WINDOW JOINs match the model', async (t) => {
  await onTables(4, async ({ left, right, random, step }) => {
    const [before, after] = [1 + random(4), 1 + random(4)];
    const sql =
      'SELECT a.id, sum(c.n) s, count(d.x) m FROM a ' +
      `WINDOW JOIN c ON (a.k = c.k) RANGE BETWEEN ${before * step} PRECEDING AND CURRENT ROW ` +
      `EXCLUDE PREVAILING WINDOW JOIN c d RANGE BETWEEN CURRENT ROW AND ${after * step} FOLLOWING`;
    const expected = left.map((row) => {
      const early = windowOf(row, right, {
        low: () => -before * step,
        high: () => 0,
        prevailing: false,
        on: (left_, right_) => left_.k === right_.k,
      });
      const late = windowOf(row, right, {
        low: () => 0,
        high: () => after * step,
        prevailing: true,
        on: () => true,
      });
      const sum = AGGREGATES['sum']?.(early.map(({ n }) => n)) ?? null;
      return [row.id, sum, late.filter(({ x }) => x !== null).length];
    });
    same(t, sql, await fetchRows(server.url, sql), expected);
  });
});

test.serial('HORIZON JOIN matches the model', async (t) => {
  await onTables(5, async ({ left, right, random, step }) => {
    for (const keys of KEYS) {
      const count = 1 + random(4);
      const first = random(5) - 2;
      const offsets = Array.from({ length: count }, (_, index) => (first + index) * step);
      const text = (offset: number): string => (offset === 0 ? '0' : `${offset}U`);
      const spec =
        random(2) === 0
          ? `LIST (${offsets.map(text).join(', ')})`
          : `RANGE FROM ${offsets[0]}U TO ${offsets[count - 1]}U STEP ${step}U`;
      const matched = offsets.flatMap((offset) => {
        const moved = left.map((row) => ({ ...row, ts: row.ts + offset }));
        const pairs = asof(moved, right, keys.of, false, null);
        const complete = asof(moved, right, () => '', false, null);
        return pairs.map(([row, found], index) => ({
          offset,
          row: row ?? one(left, index),
          found,
          any: complete[index]?.[1] ?? null,
        }));
      });
      const all =
        `SELECT h.offset, h.timestamp, a.id, c.id, d.id FROM a HORIZON JOIN c ${keys.on} ` +
        `HORIZON JOIN c d ${spec} AS h`;
      const rows = (await fetchRows(server.url, all)).map(([offset, ts, ...ids]) => [
        offset ?? null,
        micros(ts ?? null),
        ...ids,
      ]);
      const expected = matched.map(({ offset, row, found, any }) => [
        offset,
        row.ts,
        row.id,
        found?.id ?? null,
        any?.id ?? null,
      ]);
      same(t, all, rows, expected);
      const grouped =
        `SELECT h.offset o, a.g, sum(c.x - a.x) s, count() n FROM a HORIZON JOIN c ${keys.on} ` +
        `${spec} AS h WHERE a.id > 3`;
      const groups = new Map<string, { cells: Cell[]; values: (number | null)[] }>();
      for (const { offset, row, found } of matched.filter((pair) => pair.row.id > 3)) {
        const name = `${offset}/${row.g}`;
        const group = groups.get(name) ?? { cells: [offset, row.g], values: [] };
        const [own, other] = [row.x, found?.x ?? null];
        group.values.push(own === null || other === null ? null : other - own);
        groups.set(name, group);
      }
      const sums = [...groups.values()].map(({ cells, values }) => [
        ...cells,
        AGGREGATES['sum']?.(values) ?? null,
        values.length,
      ]);
      same(t, grouped, await fetchRows(server.url, grouped), sums);
    }
  });
});

test.serial('large joins on several workers match the model', async (t) => {
  const random = randomFrom(seed + 6);
  const shape = {
    start: 1_704_067_200 * SECOND,
    step: 7 * SECOND,
    timestamps: 90_000,
    rows: 1_500,
  };
  const left = await createTable(server.url, 'a', random, shape);
  const right = await createTable(server.url, 'c', random, shape);
  const keys = one(KEYS, 1);
  const reach = 600 * SECOND;
  const sql =
    'SELECT a.id, sum(c.x), max(c.n), last(c.id) FROM a WINDOW JOIN c ON (k) ' +
    'RANGE BETWEEN 10 minutes PRECEDING AND 10 minutes FOLLOWING';
  const spec: WindowSpec = {
    low: () => -reach,
    high: () => reach,
    prevailing: true,
    on: (row, other) => keys.of(row) === keys.of(other),
  };
  const expected = left.map((row) => {
    const inside = windowOf(row, right, spec);
    const [xs, ns] = [inside.map(({ x }) => x), inside.map(({ n }) => n)];
    const last = inside[inside.length - 1]?.id ?? null;
    return [row.id, AGGREGATES['sum']?.(xs) ?? null, AGGREGATES['max']?.(ns) ?? null, last];
  });
  same(t, sql, await fetchRows(server.url, sql), expected);
  const spliced = 'SELECT a.id, c.id FROM a SPLICE JOIN c ON (k)';
  const pairs = splice(left, right, keys.of).map(([row, found]) => [
    row?.id ?? null,
    found?.id ?? null,
  ]);
  same(t, spliced, await fetchRows(server.url, spliced), pairs);
});
