/**
 * SAMPLE BY and LATEST ON on random tables, compared with the naive reference implementation.
 * Prints its seed. SEED=n repeats a run; RUNS=n makes it longer.
 */
import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../../golden/server.js';
import {
  fetchRows,
  type Cell,
  createTable,
  iso,
  micros,
  type Random,
  randomFrom,
  randomShape,
  type Row,
  SECOND,
  shown,
} from './random-table.js';
import {
  bucketOf,
  bucketsBetween,
  fill,
  type Fill,
  type Grid,
  latest,
  sample,
  toUniversal,
  type Unit,
  zoneOffset,
} from './sample-by-reference.js';
import { suiteSeed } from '../../seed.js';

const seed = suiteSeed();
const RUNS = Number(process.env['RUNS'] ?? 20);
const HOUR = 3_600 * SECOND;

let server: TestServer;
test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
});
test.after.always(async () => {
  await server.stop();
});

/**
 * Weeks around a clock change (in spring or autumn, in either hemisphere, or by half an hour), and
 * a week without a clock change.
 */
const WEEKS: readonly (readonly [zone: string | null, start: string])[] = [
  ['Europe/Berlin', '2024-03-27'],
  ['Europe/Berlin', '2024-10-24'],
  ['America/New_York', '2024-03-07'],
  ['America/New_York', '2024-10-31'],
  ['Australia/Lord_Howe', '2024-04-04'],
  ['Asia/Kolkata', '2024-12-30'],
  [null, '2024-02-26'],
];

const STEPS: readonly (readonly [count: number, unit: Unit])[] = [
  [30, 'm'],
  [1, 'h'],
  [3, 'h'],
  [1, 'd'],
  [2, 'd'],
  [1, 'w'],
  [1, 'M'],
  [5, 'M'],
  [1, 'y'],
];

const sum = (values: readonly (number | null)[]): Cell => {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((one, other) => one + other);
};

function same(
  t: ExecutionContext,
  sql: string,
  actual: readonly Cell[][],
  expected: readonly Cell[][],
): void {
  const lines = (cells: readonly Cell[][]): string[] => cells.map(shown).sort();
  t.deepEqual(lines(actual), lines(expected), `SEED=${seed}: ${sql}`);
}

/** Returns the result with timestamps as numbers. */
async function sampled(sql: string): Promise<Cell[][]> {
  const cells = await fetchRows(server.url, sql);
  return cells.map(([ts, ...rest]) => [micros(ts ?? null), ...rest]);
}

interface Case {
  readonly rows: readonly Row[];
  readonly start: number;
  readonly zone: string | null;
  readonly random: Random;
}

async function onWeeks(salt: number, check: (one: Case) => Promise<void>): Promise<void> {
  const random = randomFrom(seed + salt);
  for (let run = 0; run < RUNS; run += 1) {
    const [zone, day] = WEEKS[run % WEEKS.length] ?? [null, '2024-01-01'];
    const start = Date.parse(`${day}T00:00:00Z`) * 1_000;
    const rows = [0, 1, 3, 20, 90][random(5)] ?? 0;
    const shape = { start, step: HOUR / 2, timestamps: 1 + random(48 * 7), rows };
    await check({ rows: await createTable(server.url, 's', random, shape), start, zone, random });
  }
}

test.serial('ALIGN TO CALENDAR with zones and offsets matches the model', async (t) => {
  await onWeeks(1, async ({ rows, zone, random }) => {
    for (const [count, unit] of STEPS) {
      const shift = ['h', 'd'].includes(unit) && random(2) === 0 ? random(3) : 0;
      const grid: Grid = { count, unit, zone, offset: shift * HOUR, origin: null };
      const zoneClause = zone === null ? '' : ` TIME ZONE '${zone}'`;
      const offset = shift === 0 ? '' : ` WITH OFFSET '0${shift}:00'`;
      const align = `ALIGN TO CALENDAR${zoneClause}${offset}`;
      const sql = `SELECT ts, count(), sum(x), first(id) FROM s SAMPLE BY ${count}${unit} ${align}`;
      const expected = sample(rows, grid, false).map(({ bucket, rows: own }) => [
        bucket,
        own.length,
        sum(own.map(({ x }) => x)),
        own[0]?.id ?? null,
      ]);
      same(t, sql, await sampled(sql), expected);
    }
  });
});

test.serial('ALIGN TO FIRST OBSERVATION matches the model', async (t) => {
  await onWeeks(2, async ({ rows }) => {
    for (const [count, unit] of STEPS.filter(([, one]) => one !== 'M' && one !== 'y')) {
      const grid: Grid = { count, unit, zone: null, offset: 0, origin: rows[0]?.ts ?? 0 };
      const step = `${count}${unit}`;
      const sql = `SELECT ts, k, count() FROM s SAMPLE BY ${step} ALIGN TO FIRST OBSERVATION`;
      const expected = sample(rows, grid, true).map(({ bucket, key, rows: own }) => [
        bucket,
        key,
        own.length,
      ]);
      same(t, sql, await sampled(sql), expected);
    }
  });
});

const FILLS: readonly (readonly [text: string, how: Fill])[] = [
  ['NULL', 'null'],
  ['PREV', 'prev'],
  ['LINEAR', 'linear'],
  ['7', 7],
];

test.serial('FILL across clock changes matches the model, with and without keys', async (t) => {
  await onWeeks(3, async ({ rows, zone, random }) => {
    for (const [text, how] of FILLS) {
      for (const keyed of [false, true]) {
        const [count, unit] = STEPS[random(5)] ?? [1, 'h'];
        const grid: Grid = { count, unit, zone, offset: 0, origin: null };
        const zoneClause = zone === null ? '' : ` TIME ZONE '${zone}'`;
        const align = `ALIGN TO CALENDAR${zoneClause}`;
        const columns = keyed ? 'ts, k, sum(x)' : 'ts, sum(x)';
        const sql = `SELECT ${columns} FROM s SAMPLE BY ${count}${unit} FILL(${text}) ${align}`;
        const groups = sample(rows, grid, keyed);
        const [first, last] = [rows[0]?.ts ?? 0, rows[rows.length - 1]?.ts ?? -1];
        const labels = rows.length === 0 ? [] : bucketsBetween(first, last, HOUR / 2, grid);
        const keys = [...new Set(groups.map(({ key }) => key))];
        const expected = keys.flatMap((key) => {
          const own = groups.filter((group) => group.key === key);
          const values = new Map(own.map((one) => [one.bucket, sum(one.rows.map(({ x }) => x))]));
          const filled = fill(labels, values, how);
          return labels.map((label, index) => {
            const value = filled[index] ?? null;
            return keyed ? [label, key, value] : [label, value];
          });
        });
        same(t, sql, await sampled(sql), expected);
      }
    }
  });
});

test.serial('each bucket of a repeated hour appears once', async (t) => {
  const [first, timestamps] = [Date.parse('2024-11-03T04:30:00Z') * 1_000, 6];
  await fetchRows(
    server.url,
    `CREATE TABLE r AS (SELECT (${first} + (x - 1) * ${HOUR / 2})::timestamp ts, x - 1 id, ` +
      `(x % 2)::symbol k FROM long_sequence(${timestamps})) TIMESTAMP(ts)`,
  );
  const grid: Grid = { count: 30, unit: 'm', zone: 'America/New_York', offset: 0, origin: null };
  const sampleBy = (fill: string): string =>
    `SAMPLE BY 30m ${fill} ALIGN TO CALENDAR TIME ZONE 'America/New_York'`;
  for (let rows = 1; rows < 1 << timestamps; rows += 1) {
    const ids = Array.from({ length: timestamps }, (_, id) => id).filter((id) => (rows >> id) % 2);
    for (const columns of ['ts', 'ts, k']) {
      const counts = new Map<string, Cell[]>();
      for (const id of ids) {
        const label = bucketOf(first + (id * HOUR) / 2, grid);
        const group = columns === 'ts' ? [label] : [label, String((id + 1) % 2)];
        const count = Number(counts.get(String(group))?.at(-1) ?? 0);
        counts.set(String(group), [...group, count + 1]);
      }
      for (const fill of ['', 'FILL(NULL)']) {
        const from = `FROM r WHERE id IN (${ids.join()}) ${sampleBy(fill)}`;
        const sql = `SELECT * FROM (SELECT ${columns}, count() n ${from}) WHERE n IS NOT NULL`;
        same(t, sql, await sampled(sql), [...counts.values()]);
      }
    }
  }
});

test.serial('FILL lists, including PREV of another aggregate, match the model', async (t) => {
  await onWeeks(4, async ({ rows }) => {
    const grid: Grid = { count: 1, unit: 'h', zone: null, offset: 0, origin: null };
    const sql =
      'SELECT ts, sum(n) s, count() c, max(n) m FROM s SAMPLE BY 1h FILL(PREV, 0, PREV(s))';
    const groups = sample(rows, grid, false);
    const [first, last] = [rows[0]?.ts ?? 0, rows[rows.length - 1]?.ts ?? -1];
    const labels = rows.length === 0 ? [] : bucketsBetween(first, last, HOUR / 2, grid);
    const by = (of: (own: readonly Row[]) => Cell): Map<number, Cell> =>
      new Map(groups.map((one) => [one.bucket, of(one.rows)]));
    const sums = by((own) => sum(own.map(({ n }) => n)));
    const counts = fill(
      labels,
      by((own) => own.length),
      0,
    );
    const greatest = by((own) => {
      const known = own.map(({ n }) => n).filter((n) => n !== null);
      return known.length === 0 ? null : Math.max(...known);
    });
    const filled = fill(labels, sums, 'prev');
    const expected = labels.map((label, index) => {
      const value = filled[index] ?? null;
      const maximum = greatest.has(label) ? (greatest.get(label) ?? null) : value;
      return [label, value, counts[index] ?? null, maximum];
    });
    same(t, sql, await sampled(sql), expected);
  });
});

/** A bound of FROM or TO: its SQL and its timestamp. */
interface Bound {
  readonly text: string;
  readonly at: number;
}

/** A string without a zone is read in the statement's zone. */
function boundOf(local: number, zone: string | null, random: Random): Bound {
  if (zone === null || random(4) === 0) {
    return { text: `'${iso(local)}'`, at: local };
  }
  return { text: `'${iso(local).slice(0, -1)}'`, at: toUniversal(zone, local) };
}

test.serial('FROM and TO match the model with zones, offsets and empty input', async (t) => {
  await onWeeks(5, async ({ rows, start, zone, random }) => {
    for (const [count, unit] of STEPS.slice(0, 5)) {
      const low = start + random(96) * (HOUR / 2);
      const from = random(3) === 0 ? null : boundOf(low, zone, random);
      const to =
        random(3) === 0 ? null : boundOf(low + (1 + random(96)) * (HOUR / 2), zone, random);
      const filled = random(2) === 0;
      const shift = random(3) === 0 ? random(3) : 0;
      const nothing = random(4) === 0;
      const words = [
        from === null ? '' : `FROM ${from.text}`,
        to === null ? '' : `TO ${to.text}`,
        filled ? 'FILL(NULL)' : '',
        'ALIGN TO CALENDAR',
        zone === null ? '' : `TIME ZONE '${zone}'`,
        shift === 0 ? '' : `WITH OFFSET '0${shift}:00'`,
      ];
      const where = nothing ? 'WHERE id < 0' : '';
      const sql = `SELECT ts, count() FROM s ${where} SAMPLE BY ${count}${unit} ${words.join(' ')}`;
      const origin =
        from === null ? null : from.at + (zone === null ? 0 : zoneOffset(zone, from.at));
      const grid: Grid = { count, unit, zone, offset: shift * HOUR, origin };
      const inside = (nothing ? [] : rows).filter(
        ({ ts }) => ts >= (from?.at ?? ts) && (to === null || ts < to.at),
      );
      const groups = sample(inside, grid, false);
      const counts = new Map<number, Cell>(groups.map((one) => [one.bucket, one.rows.length]));
      const first = from?.at ?? inside[0]?.ts ?? 0;
      const last = to === null ? (inside[inside.length - 1]?.ts ?? -1) : to.at - 1;
      const bounded = from !== null && to !== null && from.at < to.at;
      const labels =
        filled && (inside.length > 0 || bounded)
          ? bucketsBetween(first, last, HOUR / 2, grid)
          : [...counts.keys()].sort((one, other) => one - other);
      const expected = labels.map((label) => [label, counts.get(label) ?? null]);
      same(t, sql, await sampled(sql), expected);
    }
  });
});

test.serial('LATEST ON matches the model', async (t) => {
  const random = randomFrom(seed + 6);
  for (let run = 0; run < RUNS; run += 1) {
    const rows = await createTable(server.url, 's', random, randomShape(random));
    const keys: readonly (readonly [text: string, of: (row: Row) => string])[] = [
      ['k', ({ k }) => String(k)],
      ['g', ({ g }) => String(g)],
      ['k, g', ({ k, g }) => `${k}/${g}`],
    ];
    for (const [text, of] of keys) {
      for (const [where, holds] of [
        ['', () => true],
        ['WHERE x > 0', ({ x }: Row) => x !== null && x > 0],
      ] as const) {
        const sql = `SELECT id, ts FROM s ${where} LATEST ON ts PARTITION BY ${text}`;
        const expected = latest(rows.filter(holds), of).map(({ id, ts }) => [id, ts]);
        const actual = await fetchRows(server.url, sql);
        const found = actual.map(([id, ts]) => [id ?? null, micros(ts ?? null)]);
        same(t, sql, found, expected);
        const times = found.map(([, ts]) => Number(ts));
        t.deepEqual(
          times,
          times.toSorted((one, other) => one - other),
          sql,
        );
      }
    }
  }
});

test('the reference model computes calendar buckets correctly', (t) => {
  const grid: Grid = { count: 1, unit: 'd', zone: 'Europe/Berlin', offset: 0, origin: null };
  const at = (text: string): number => Date.parse(text) * 1_000;
  t.is(bucketOf(at('2024-03-31T12:00:00Z'), grid), at('2024-03-30T23:00:00Z'));
  t.is(bucketOf(at('2024-04-01T12:00:00Z'), grid), at('2024-03-31T22:00:00Z'));
  t.is(
    bucketOf(at('2024-02-29T12:00:00Z'), { ...grid, unit: 'w', zone: null }),
    at('2024-02-26T00:00:00Z'),
  );
});
