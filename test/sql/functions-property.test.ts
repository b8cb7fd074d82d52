/**
 * Functions compared with the simple implementations in `functions/reference.ts`, on random columns
 * with nulls, extremes and overflow. Prints its seed; SEED=n repeats a run.
 */
import test, { type ExecutionContext } from 'ava';

import { execute } from '../golden/http-client.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { suiteSeed } from '../seed.js';
import {
  type Cell,
  double,
  int,
  long,
  OF_NUMBERS,
  OF_PAIRS,
  strict,
} from './functions/reference.js';

const seed = suiteSeed();

const ROWS = 300;
const KEYS = ['a', 'b', 'c', null] as const;

/** The mulberry32 generator. */
let state = seed;
function random(): number {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}

function below(limit: number): number {
  return Math.floor(random() * limit);
}

function pick<T>(values: readonly T[]): T {
  return values[below(values.length)] as T;
}

function maybe<T>(value: () => T): T | null {
  return random() < 0.15 ? null : value();
}

const INTS = [0, 1, -1, 2, 7, -7, 2 ** 31 - 1, -(2 ** 31) + 1, 65_536];
const LONGS = [0n, 1n, -1n, 3n, -7n, 2n ** 63n - 1n, -(2n ** 63n) + 1n, 2n ** 40n];
const DOUBLES = [0, 1, -1, 0.1, -2.5, 3.5, 1e308, -1e308, 1e-300, 123_456.789];
const TEXTS = ['', 'a', 'abc', 'ABC def', 'straße', 'x-y-z', "it's", '  blanks ', 'aaaa', 'ñandú'];

interface Row {
  readonly id: number;
  readonly k: string | null;
  readonly i: number | null;
  readonly j: number | null;
  readonly l: bigint | null;
  readonly m: bigint | null;
  readonly d: number | null;
  readonly e: number | null;
  readonly s: string | null;
  readonly b: boolean;
}

function randomRow(id: number): Row {
  const anInt = (): number => (random() < 0.5 ? pick(INTS) : below(2000) - 1000);
  const aLong = (): bigint => (random() < 0.5 ? pick(LONGS) : BigInt(below(2000) - 1000));
  const aDouble = (): number => (random() < 0.4 ? pick(DOUBLES) : (below(20_000) - 10_000) / 64);
  return {
    id,
    k: pick(KEYS),
    i: maybe(anInt),
    j: maybe(anInt),
    l: maybe(aLong),
    m: maybe(aLong),
    d: maybe(aDouble),
    e: maybe(aDouble),
    s: maybe(() => pick(TEXTS)),
    b: random() < 0.5,
  };
}

const table = Array.from({ length: ROWS }, (_, id) => randomRow(id));

function literal(cell: Cell): string {
  return typeof cell === 'string' ? `'${cell.replaceAll("'", "''")}'` : String(cell);
}

let server: TestServer;

async function query(sql: string): Promise<Cell[][]> {
  const { body } = await execute(server.url, sql);
  const answer = JSON.parse(body.toString('utf8')) as { dataset?: Cell[][]; error?: string };
  if (answer.error !== undefined) {
    throw new Error(`${sql}: ${answer.error}`);
  }
  return answer.dataset ?? [];
}

test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  await query(`CREATE TABLE p (ts TIMESTAMP, id INT, k SYMBOL, i INT, j INT, l LONG, m LONG,
    d DOUBLE, e DOUBLE, s VARCHAR, b BOOLEAN) TIMESTAMP(ts) PARTITION BY DAY`);
  for (let start = 0; start < ROWS; start += 100) {
    const values = table.slice(start, start + 100).map((row) => {
      const { id, k, i, j, l, m, d, e, s, b } = row;
      return `(${[id * 3_600_000_000, id, k, i, j, l, m, d, e, s, b].map(literal).join(', ')})`;
    });
    await query(`INSERT INTO p VALUES ${values.join(', ')}`);
  }
});

test.after.always(async () => {
  await server.stop();
});

function same(found: Cell, expected: Cell): boolean {
  if (typeof found === 'number' && typeof expected === 'number') {
    const scale = Math.max(Math.abs(expected), 1e-300);
    return found === expected || Math.abs(found - expected) <= 1e-9 * scale;
  }
  return found === expected;
}

const on = <R>(f: (row: Row) => R | null): ((row: Row) => R | null) => f;
const isBlank = (text: string): boolean => text === '';

/** Expressions over one row, and their expected values. */
const SCALARS: Readonly<Record<string, (row: Row) => Cell>> = {
  'i + j': on(({ i, j }) => strict<number, number, number>((a, b) => int(a + b))(i, j)),
  'i - j': on(({ i, j }) => strict<number, number, number>((a, b) => int(a - b))(i, j)),
  'i * j': on(({ i, j }) =>
    strict<number, number, number>((a, b) => int(BigInt(a) * BigInt(b)))(i, j),
  ),
  'i / j': on(({ i, j }) =>
    strict<number, number, number>((a, b) => (b === 0 ? null : int(Math.trunc(a / b))))(i, j),
  ),
  'i % j': on(({ i, j }) =>
    strict<number, number, number>((a, b) => (b === 0 ? null : int(BigInt(a) % BigInt(b))))(i, j),
  ),
  'i & j': on(({ i, j }) => strict<number, number, number>((a, b) => int(a & b))(i, j)),
  'i | j': on(({ i, j }) => strict<number, number, number>((a, b) => int(a | b))(i, j)),
  'i ^ j': on(({ i, j }) => strict<number, number, number>((a, b) => int(a ^ b))(i, j)),
  '(l + m)::varchar': on(({ l, m }) =>
    shown(strict<bigint, bigint, bigint>((a, b) => long(a + b))(l, m)),
  ),
  '(l - m)::varchar': on(({ l, m }) =>
    shown(strict<bigint, bigint, bigint>((a, b) => long(a - b))(l, m)),
  ),
  '(l * m)::varchar': on(({ l, m }) =>
    shown(strict<bigint, bigint, bigint>((a, b) => long(a * b))(l, m)),
  ),
  '(l / m)::varchar': on(({ l, m }) =>
    shown(strict<bigint, bigint, bigint>((a, b) => (b === 0n ? null : long(a / b)))(l, m)),
  ),
  '(l % m)::varchar': on(({ l, m }) =>
    shown(strict<bigint, bigint, bigint>((a, b) => (b === 0n ? null : long(a % b)))(l, m)),
  ),
  'd + e': on(({ d, e }) => strict<number, number, number>((a, b) => double(a + b))(d, e)),
  'd * e': on(({ d, e }) => strict<number, number, number>((a, b) => double(a * b))(d, e)),
  'd / e': on(({ d, e }) => strict<number, number, number>((a, b) => double(a / b))(d, e)),
  'abs(d)': on(({ d }) => (d === null ? null : Math.abs(d))),
  'sign(d)': on(({ d }) => (d === null ? null : Math.sign(d))),
  'floor(d)': on(({ d }) => (d === null ? null : Math.floor(d))),
  'ceil(d)': on(({ d }) => (d === null ? null : Math.ceil(d))),
  'sqrt(d)': on(({ d }) => (d === null ? null : double(Math.sqrt(d)))),
  'ln(d)': on(({ d }) => (d === null ? null : double(Math.log(d)))),
  'atan2(d, e)': on(({ d, e }) => strict<number, number, number>(Math.atan2)(d, e)),
  'greatest(d, e)': on(({ d, e }) => (d === null ? e : e === null ? d : Math.max(d, e))),
  'least(i, j)': on(({ i, j }) => (i === null ? j : j === null ? i : Math.min(i, j))),
  'i = j': ({ i, j }) => i === j,
  'i != j': ({ i, j }) => i !== j,
  'i < j': ({ i, j }) => i !== null && j !== null && i < j,
  'i >= j': ({ i, j }) => (i === null || j === null ? i === j : i >= j),
  'd > e': ({ d, e }) => d !== null && e !== null && d > e,
  'coalesce(i, j, 5)': ({ i, j }) => i ?? j ?? 5,
  'nullif(i, j)': ({ i, j }) => (i === j ? null : i),
  'CASE WHEN i > 0 THEN 1 WHEN b THEN 2 ELSE 3 END': ({ i, b }) =>
    i !== null && i > 0 ? 1 : b ? 2 : 3,
  'length(s)': ({ s }) => (s === null ? -1 : s.length),
  'length_bytes(s)': ({ s }) => (s === null ? -1 : Buffer.byteLength(s)),
  'upper(s)': on(({ s }) => s?.toUpperCase() ?? null),
  'lower(s)': on(({ s }) => s?.toLowerCase() ?? null),
  'left(s, 3)': on(({ s }) => s?.slice(0, 3) ?? null),
  'right(s, 3)': on(({ s }) => (s === null || isBlank(s) ? s : s.slice(-3))),
  'substring(s, 2, 2)': on(({ s }) => s?.slice(1, 3) ?? null),
  "strpos(s, 'a')": on(({ s }) => (s === null ? null : s.indexOf('a') + 1)),
  "replace(s, 'a', 'xy')": on(({ s }) => s?.replaceAll('a', 'xy') ?? null),
  "lpad(s, 5, '*')": on(({ s }) => s?.padStart(5, '*').slice(0, 5) ?? null),
  "rpad(s, 5, '*')": on(({ s }) => s?.padEnd(5, '*').slice(0, 5) ?? null),
  'trim(s)': on(({ s }) => s?.trim() ?? null),
  "split_part(s, '-', 2)": on(({ s }) => (s === null ? null : (s.split('-')[1] ?? ''))),
  "starts_with(s, 'a')": ({ s }) => s?.startsWith('a') ?? false,
  "s || '!'": ({ s }) => `${s ?? ''}!`,
  "s LIKE '%a%'": ({ s }) => s?.includes('a') ?? false,
  'hour(ts)': ({ id }) => id % 24,
  'day(ts)': ({ id }) => new Date(id * 3_600_000).getUTCDate(),
  "dateadd('d', 3, ts)::long / 3600000000": ({ id }) => id + 72,
  "datediff('d', ts, '1970-01-05')": ({ id }) => Math.floor(Math.abs(96 - id) / 24),
};

function shown(value: bigint | null): string | null {
  return value === null ? null : String(value);
}

test('scalar functions and operators match their definitions, row by row', async (t) => {
  for (const [expression, expected] of Object.entries(SCALARS)) {
    const rows = await query(`SELECT ${expression} x FROM p ORDER BY id`);
    t.is(rows.length, ROWS);
    const wrong = table.find((row, index) => !same(rows[index]?.[0] ?? null, expected(row)));
    if (wrong !== undefined) {
      const row = JSON.stringify(wrong, (_, value: Cell) =>
        typeof value === 'bigint' ? String(value) : value,
      );
      const found = String(rows[wrong.id]?.[0]);
      t.fail(`${expression} on ${row}: expected ${String(expected(wrong))}, got ${found}`);
    }
  }
});

/** Only numbers of moderate size, because sums of extremes depend on the order of addition. */
const NUMBERS = 'CASE WHEN abs(d) < 1e6 THEN d END';
const WEIGHTS = 'CASE WHEN abs(e) < 1e6 THEN abs(e) + 1 END';

function moderate(value: number | null): number | null {
  return value !== null && Math.abs(value) < 1e6 ? value : null;
}

async function compareGroups(
  t: ExecutionContext,
  expression: string,
  expected: (rows: readonly Row[]) => Cell,
): Promise<void> {
  for (const where of ['true', 'id < 1', 'id < 0', 'b']) {
    const kept = table.filter(({ id, b }) =>
      where === 'b' ? b : id < (where === 'true' ? ROWS : where === 'id < 1' ? 1 : 0),
    );
    const complete = await query(`SELECT ${expression} x FROM p WHERE ${where}`);
    t.true(
      same(complete[0]?.[0] ?? null, expected(kept)),
      `${expression} WHERE ${where}: ${String(complete[0]?.[0])} is not ${String(expected(kept))}`,
    );
    for (const [k, found] of await query(`SELECT k, ${expression} x FROM p WHERE ${where}`)) {
      const group = expected(kept.filter((row) => row.k === k));
      const problem = `${expression} of ${String(k)} WHERE ${where}: ${String(found)}`;
      t.true(same(found ?? null, group), `${problem} is not ${String(group)}`);
    }
  }
}

test('numeric aggregates match their definitions, in total and by key', async (t) => {
  for (const [pattern, reference] of Object.entries(OF_NUMBERS)) {
    await compareGroups(t, pattern.replaceAll('#', NUMBERS), (rows) =>
      reference(rows.flatMap(({ d }) => moderate(d) ?? [])),
    );
  }
});

test('two-argument aggregates match their definitions, in total and by key', async (t) => {
  for (const [pattern, reference] of Object.entries(OF_PAIRS)) {
    const expression = pattern.replaceAll('#', NUMBERS).replaceAll('@', WEIGHTS);
    await compareGroups(t, expression, (rows) =>
      reference(
        rows.flatMap(({ d, e }) => {
          const [y, x] = [moderate(d), moderate(e)];
          return y === null || x === null ? [] : [[y, Math.abs(x) + 1] as const];
        }),
      ),
    );
  }
});

/** Aggregates over the other columns. */
const OTHERS: Readonly<Record<string, (rows: readonly Row[]) => Cell>> = {
  'count()': (rows) => rows.length,
  'sum(l)::varchar': (rows) => {
    const longs = rows.flatMap(({ l }) => l ?? []);
    return longs.length === 0 ? null : shown(long(longs.reduce((all, value) => all + value, 0n)));
  },
  'sum(i)::varchar': (rows) => {
    const ints = rows.flatMap(({ i }) => i ?? []);
    return ints.length === 0 ? null : String(ints.reduce((all, value) => all + value, 0));
  },
  'max(l)::varchar': (rows) => extremeOf(rows, (a, b) => a > b),
  'min(l)::varchar': (rows) => extremeOf(rows, (a, b) => a < b),
  'first(i)': (rows) => rows[0]?.i ?? null,
  'last(i)': (rows) => rows.at(-1)?.i ?? null,
  'first_not_null(s)': (rows) => rows.find(({ s }) => s !== null)?.s ?? null,
  'last_not_null(s)': (rows) => rows.findLast(({ s }) => s !== null)?.s ?? null,
  "string_agg(s, '+')": (rows) => {
    const texts = rows.flatMap(({ s }) => s ?? []);
    return texts.length === 0 ? null : texts.join('+');
  },
  'bool_and(b)': (rows) => rows.length > 0 && rows.every(({ b }) => b),
  'bool_or(b)': (rows) => rows.some(({ b }) => b),
  'count_distinct(s)': (rows) => new Set(rows.flatMap(({ s }) => s ?? [])).size,
  'count(DISTINCT i)': (rows) => new Set(rows.flatMap(({ i }) => i ?? [])).size,
  'isOrdered(id)': () => true,
};

function extremeOf(rows: readonly Row[], wins: (a: bigint, b: bigint) => boolean): string | null {
  const longs = rows.flatMap(({ l }) => l ?? []);
  const found = longs.reduce<bigint | null>(
    (best, value) => (best === null || wins(value, best) ? value : best),
    null,
  );
  return shown(found);
}

test('the remaining aggregates match their definitions, in total and by key', async (t) => {
  for (const [expression, expected] of Object.entries(OTHERS)) {
    await compareGroups(t, expression, expected);
  }
});

/** Compares decimals as integers without the decimal point. */
test('decimal arithmetic is exact', async (t) => {
  const rows = await query(`SELECT id, a::varchar, b::varchar, (a + b)::varchar, (a * b)::varchar,
    (a - i)::varchar FROM (SELECT id, i, (i % 100000)::decimal(12, 2) a,
    (j % 1000)::decimal(10, 4) + 0.0625m b FROM p)`);
  const digits = (text: Cell, scale: number): bigint | null => {
    if (typeof text !== 'string') {
      return null;
    }
    const [integer = '', fraction = ''] = text.split('.');
    t.is(fraction.length, scale, text);
    return BigInt(integer + fraction);
  };
  for (const [id, a, b, plus, times, minus] of rows) {
    const [x, y] = [digits(a ?? null, 2), digits(b ?? null, 4)];
    const i = table[Number(id)]?.i ?? null;
    const both = (f: (x: bigint, y: bigint) => bigint): bigint | null =>
      x === null || y === null ? null : f(x, y);
    t.is(
      digits(plus ?? null, 4),
      both((left, right) => left * 100n + right),
    );
    t.is(
      digits(times ?? null, 6),
      both((left, right) => left * right),
    );
    t.is(digits(minus ?? null, 2), x === null || i === null ? null : x - BigInt(i) * 100n);
  }
});
