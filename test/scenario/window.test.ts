/**
 * Window functions over random rows (nulls, equal times, few and many partitions), compared with
 * their definitions. The seed is printed; `SEED=n` repeats a run.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { suiteSeed } from '../seed.js';

interface Row {
  readonly second: number;
  readonly key: string | null;
  readonly value: number | null;
}

/** The mulberry32 generator. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const KEYS = ['a', 'b', 'c', null] as const;

/** Returns rows in time order; with `ties`, several rows may have the same time. */
function randomRows(next: () => number, count: number, ties: boolean): Row[] {
  let second = 0;
  return Array.from({ length: count }, () => {
    second += Math.floor(next() * 4) + (ties ? 0 : 1);
    const key = KEYS[Math.floor(next() * KEYS.length)] ?? null;
    return { second, key, value: next() < 0.2 ? null : Math.floor(next() * 40) / 4 };
  });
}

/**
 * A frame in SQL, and whether it contains a row at a distance of `rows` and `seconds` from the
 * current row. Distances are negative for following rows.
 */
interface FrameCase {
  readonly sql: string;
  readonly holds: (rows: number, seconds: number) => boolean;
  /**
   * The frame contains rows before and after the current row but not the current row itself. It is
   * refused for aggregates whose states cannot be combined.
   */
  readonly around?: true;
  /**
   * The frame ends between rows with equal times. It is refused for functions that only DataFusion
   * runs.
   */
  readonly amid?: true;
  /**
   * The frame extends beyond the current row. DataFusion runs it, and does not order rows with
   * equal times.
   */
  readonly ahead?: true;
}

function frames(next: () => number): FrameCase[] {
  const far = Math.floor(next() * 9);
  const near = Math.floor(next() * (far + 1));
  return [
    { sql: '', holds: (rows) => rows >= 0 },
    { sql: `ROWS ${far} PRECEDING`, holds: (rows) => rows <= far && rows >= 0 },
    {
      sql: `ROWS BETWEEN ${far} PRECEDING AND ${near} PRECEDING`,
      holds: (rows) => rows <= far && rows >= near,
    },
    {
      sql: `ROWS BETWEEN UNBOUNDED PRECEDING AND ${near} PRECEDING`,
      holds: (rows) => rows >= near,
    },
    {
      sql: `RANGE BETWEEN '${far}' SECOND PRECEDING AND CURRENT ROW`,
      holds: (rows, seconds) => seconds <= far && rows >= 0,
      amid: true,
    },
    {
      sql: `RANGE BETWEEN ${far} SECONDS PRECEDING AND ${near} SECONDS PRECEDING`,
      holds: (rows, seconds) => seconds <= far && seconds >= near && rows >= 0,
      ...(near === 0 ? { amid: true as const } : {}),
    },
    {
      sql: `ROWS ${far} PRECEDING EXCLUDE CURRENT ROW`,
      holds: (rows) => rows <= far && rows >= 1,
    },
    ...framesAhead(far, near).map((frame) => ({ ...frame, ahead: true as const })),
  ];
}

/** Returns frames that extend beyond the current row. */
function framesAhead(far: number, near: number): FrameCase[] {
  return [
    {
      sql: `ROWS BETWEEN ${far} PRECEDING AND ${near} FOLLOWING`,
      holds: (rows) => rows <= far && rows >= -near,
    },
    {
      sql: `ROWS BETWEEN ${near} FOLLOWING AND ${far} FOLLOWING`,
      holds: (rows) => rows <= -near && rows >= -far,
    },
    { sql: 'ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING', holds: (rows) => rows <= 0 },
    {
      sql: `RANGE BETWEEN ${far} SECONDS PRECEDING AND ${near} SECONDS FOLLOWING`,
      holds: (_, seconds) => seconds <= far && seconds >= -near,
    },
    {
      sql: `ROWS BETWEEN CURRENT ROW AND ${far} FOLLOWING EXCLUDE CURRENT ROW`,
      holds: (rows) => rows < 0 && rows >= -far,
    },
    {
      sql: `ROWS BETWEEN ${far + 1} PRECEDING AND ${near + 1} FOLLOWING EXCLUDE CURRENT ROW`,
      holds: (rows) => rows <= far + 1 && rows >= -near - 1 && rows !== 0,
      around: true,
    },
    {
      sql: 'ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW',
      holds: (rows) => rows !== 0,
      around: true,
    },
  ];
}

type Cell = number | null;

const present = (values: readonly Cell[]): number[] => values.filter((value) => value !== null);
const sum = (values: readonly Cell[]): Cell =>
  present(values).length === 0 ? null : present(values).reduce((total, value) => total + value, 0);

/** Returns the mean squared difference from the mean, and the number of values. */
function spread(values: readonly Cell[]): readonly [number, number] {
  const known = present(values);
  const mean = known.reduce((total, value) => total + value, 0) / known.length;
  const squares = known.reduce((total, value) => total + (value - mean) ** 2, 0);
  return [squares, known.length];
}

/** Functions that do not support some frames. */
const FOLDED: ReadonlySet<string> = new Set([
  'count(DISTINCT v)',
  'var_pop(v)',
  'stddev_samp(v)',
  'covar_samp(v, 1 - 2 * v)',
  'corr(v, -v)',
]);

/** For each SQL expression, the result of the function for the values in its frame. */
const FUNCTIONS: Readonly<Record<string, (frame: readonly Cell[]) => Cell>> = {
  'sum(v)': sum,
  'avg(v)': (frame) => {
    const total = sum(frame);
    return total === null ? null : total / present(frame).length;
  },
  'count(v)': (frame) => present(frame).length,
  'count(*)': (frame) => frame.length,
  'min(v)': (frame) => (present(frame).length === 0 ? null : Math.min(...present(frame))),
  'max(v)': (frame) => (present(frame).length === 0 ? null : Math.max(...present(frame))),
  'first_value(v)': (frame) => frame[0] ?? null,
  'last_value(v)': (frame) => frame.at(-1) ?? null,
  'nth_value(v, 2)': (frame) => frame[1] ?? null,
  'count(DISTINCT v)': (frame) => new Set(present(frame)).size,
  'var_pop(v)': (frame) => {
    const [squares, count] = spread(frame);
    return count === 0 ? null : squares / count;
  },
  'stddev_samp(v)': (frame) => {
    const [squares, count] = spread(frame);
    return count < 2 ? null : Math.sqrt(squares / (count - 1));
  },
  'covar_samp(v, 1 - 2 * v)': (frame) => {
    const [squares, count] = spread(frame);
    return count < 2 ? null : (-2 * squares) / (count - 1);
  },
  'corr(v, -v)': (frame) => (spread(frame)[0] === 0 || spread(frame)[1] < 2 ? null : -1),
  'first_value(v) IGNORE NULLS': (frame) => present(frame)[0] ?? null,
  'last_value(v) IGNORE NULLS': (frame) => present(frame).at(-1) ?? null,
};

/**
 * For each SQL expression, a function of two lists: the rows up to and including the current row,
 * and the rows after it.
 */
const POSITIONS: Readonly<Record<string, (before: readonly Row[], after: readonly Row[]) => Cell>> =
  {
    'row_number()': (before) => before.length,
    'rank()': (before) => before.findIndex((row) => row.second === before.at(-1)?.second) + 1,
    'dense_rank()': (before) => new Set(before.map((row) => row.second)).size,
    'lag(v)': (before) => before.at(-2)?.value ?? null,
    'lag(v, 2)': (before) => before.at(-3)?.value ?? null,
    'lag(v) IGNORE NULLS': (before) =>
      present(before.slice(0, -1).map((row) => row.value)).at(-1) ?? null,
    'lead(v)': (_, after) => after[0]?.value ?? null,
    'lead(v, 3)': (_, after) => after[2]?.value ?? null,
  };

/**
 * Returns a row's partition as two lists: the rows up to and including this row, and the rows after
 * it.
 */
function neighbours(rows: readonly Row[], at: number, keyed: boolean): readonly [Row[], Row[]] {
  const own = (row: Row): boolean => !keyed || row.key === rows[at]?.key;
  return [rows.slice(0, at + 1).filter(own), rows.slice(at + 1).filter(own)];
}

function expected(
  rows: readonly Row[],
  keyed: boolean,
  call: string,
  frame: FrameCase,
): readonly Cell[] {
  return rows.map((row, at) => {
    const [before, after] = neighbours(rows, at, keyed);
    const position = POSITIONS[call];
    if (position !== undefined) {
      return position(before, after);
    }
    const inside = [...before, ...after].filter((other, index) =>
      frame.holds(before.length - 1 - index, row.second - other.second),
    );
    return FUNCTIONS[call]?.(inside.map((other) => other.value)) ?? null;
  });
}

async function column(server: TestServer, query: string): Promise<readonly Cell[]> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  const answer = (await response.json()) as { dataset?: Cell[][]; error?: string };
  if (answer.dataset === undefined) {
    throw new Error(`${query}: ${answer.error ?? ''}`);
  }
  return answer.dataset.map((row) => row[0] ?? null);
}

async function fill(server: TestServer, table: string, rows: readonly Row[]): Promise<void> {
  const create =
    `CREATE TABLE ${table} (ts TIMESTAMP, k SYMBOL, v DOUBLE) TIMESTAMP(ts) ` + 'PARTITION BY DAY';
  const values = rows.map(({ second, key, value }) => {
    const at = new Date(Date.UTC(2026, 0, 1, 23, 58, 0) + second * 1000).toISOString();
    return `('${at}', ${key === null ? 'null' : `'${key}'`}, ${value ?? 'null'})`;
  });
  const insert = `INSERT INTO ${table} VALUES ${values.join(', ')}`;
  for (const statement of rows.length === 0 ? [create] : [create, insert]) {
    const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(statement)}`);
    const { error } = (await response.json()) as { error?: string };
    if (error !== undefined) {
      throw new Error(`${statement}: ${error}`);
    }
  }
}

const close = (one: Cell, other: Cell): boolean =>
  one === other || (one !== null && other !== null && Math.abs(one - other) < 1e-9);

test('window functions match their definitions', async (t) => {
  const seed = suiteSeed();
  const next = random(seed);
  const server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  try {
    const sizes = [0, 1, 7, 60, 120];
    const rounds = Math.ceil(Number(process.env['RUNS'] ?? 5) / 5);
    for (const [number, count] of Array.from({ length: 2 * rounds }, () => sizes)
      .flat()
      .entries()) {
      const ties = number % (2 * sizes.length) < sizes.length;
      const rows = randomRows(next, count, ties);
      const table = `wp${number}`;
      await fill(server, table, rows);
      for (const keyed of [false, true]) {
        const partition = keyed ? 'PARTITION BY k ' : '';
        for (const frame of frames(next)) {
          const skipped = (call: string): boolean =>
            (ties && keyed && (frame.ahead === true || FOLDED.has(call))) ||
            (FOLDED.has(call) && (frame.around ?? frame.amid) === true) ||
            (call.startsWith('nth_value') && frame.around === true);
          const calls = [
            ...Object.keys(FUNCTIONS).filter((call) => !skipped(call)),
            ...(frame.sql === '' ? Object.keys(POSITIONS) : []),
          ];
          for (const call of calls) {
            const over = `(${partition}ORDER BY ts ${frame.sql})`;
            const query = `SELECT ${call} OVER ${over} x FROM ${table}`;
            const found = await column(server, query);
            const expectedRows = expected(rows, keyed, call, frame);
            const same = found.length === expectedRows.length;
            const wrong = expectedRows.findIndex((value, at) => !close(value, found[at] ?? null));
            t.true(same && wrong === -1, `${query}: row ${wrong}: ${JSON.stringify(found)}`);
          }
        }
        const totals = await column(server, `SELECT sum(v) OVER (${partition}) x FROM ${table}`);
        const expectedRows = rows.map((_, at) =>
          sum(
            neighbours(rows, at, keyed)
              .flat()
              .map((row) => row.value),
          ),
        );
        t.true(
          expectedRows.every((value, at) => close(value, totals[at] ?? null)),
          `sum() of ${table}`,
        );
      }
    }
  } finally {
    await server.stop();
  }
});
