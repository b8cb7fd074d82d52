/** Random tables for the time-series operators, with the rows as the server stores them. */
import { execute } from '../../golden/http-client.js';

/** A row. Times are microseconds since 1970, which a double represents exactly. */
export interface Row {
  readonly ts: number;
  readonly k: string | null;
  readonly g: number | null;
  readonly x: number | null;
  readonly n: number | null;
  readonly b: boolean;
  readonly id: number;
}

export type Cell = string | number | boolean | null;
export type Random = (below: number) => number;

/** Seeded random numbers (mulberry32). */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

export const SECOND = 1_000_000;

interface Shape {
  /** First possible timestamp in microseconds. */
  readonly start: number;
  /**
   * Distance between adjacent timestamps. The fewer timestamps there are, the more rows share one.
   */
  readonly step: number;
  readonly timestamps: number;
  readonly rows: number;
  /** Whether each timestamp has exactly one row. If so, scan chunks end where segments end. */
  readonly even?: boolean;
}

/** Returns sizes that reveal mistakes in edge cases: none, one, a few, ties, many. */
export function randomShape(random: Random): Shape {
  const rows = [0, 1, 2, 7, 30, 120][random(6)] ?? 0;
  if (random(4) === 0) {
    return {
      start: 1_704_067_200 * SECOND,
      step: 21_600 * SECOND,
      timestamps: rows,
      rows,
      even: true,
    };
  }
  const step = [1, SECOND, 60 * SECOND, 3_600 * SECOND][random(4)] ?? SECOND;
  return { start: 1_704_067_200 * SECOND, step, timestamps: 1 + random(2 * rows + 3), rows };
}

function randomRow(random: Random, shape: Shape, id: number): Row {
  const orNull = <T>(value: T): T | null => (random(6) === 0 ? null : value);
  return {
    ts: shape.start + shape.step * (shape.even === true ? id : random(shape.timestamps)),
    k: orNull('abcd'.charAt(random(4))),
    g: orNull(random(3)),
    // Multiples of one half, whose sums and differences are exact in any order.
    x: orNull((random(400) - 200) / 2),
    n: orNull(random(2_000) - 1_000),
    b: random(2) === 0,
    id,
  };
}

export async function fetchRows(url: string, sql: string): Promise<Cell[][]> {
  const reply = await execute(url, sql);
  const body = JSON.parse(reply.body.toString('utf8')) as { dataset?: Cell[][]; error?: string };
  if (reply.status !== 200 || body.error !== undefined) {
    throw new Error(`${sql}: ${body.error ?? reply.status}`);
  }
  return body.dataset ?? [];
}

/** Returns the microseconds of a printed timestamp. */
export function micros(text: Cell): number {
  const printed = String(text);
  return Date.parse(`${printed.slice(0, 19)}Z`) * 1_000 + Number(printed.slice(20, 26));
}

export function iso(ts: number): string {
  const seconds = Math.floor(ts / SECOND);
  const fraction = String(ts - seconds * SECOND).padStart(6, '0');
  return `${new Date(seconds * 1_000).toISOString().slice(0, 19)}.${fraction}Z`;
}

const literal = (value: Cell): string =>
  value === null ? 'null' : typeof value === 'string' ? `'${value}'` : String(value);

/** Creates a table, fills it out of order in several commits, and reads its contents back. */
export async function createTable(
  url: string,
  name: string,
  random: Random,
  shape: Shape,
): Promise<readonly Row[]> {
  await fetchRows(url, `DROP TABLE IF EXISTS ${name}`);
  await fetchRows(
    url,
    `CREATE TABLE ${name} (ts TIMESTAMP, k SYMBOL, g INT, x DOUBLE, n LONG, b BOOLEAN, id INT)
     TIMESTAMP(ts) PARTITION BY DAY`,
  );
  const rows = Array.from({ length: shape.rows }, (_, id) => randomRow(random, shape, id));
  for (let at = 0; at < rows.length;) {
    const part = rows.slice(at, at + 1 + random(60));
    const values = part.map(
      ({ ts, k, g, x, n, b, id }) => `(${[iso(ts), k, g, x, n, b, id].map(literal).join(',')})`,
    );
    await fetchRows(url, `INSERT INTO ${name} VALUES ${values.join(',')}`);
    at += part.length;
  }
  const stored = await readTable(url, name);
  const ids = stored.map(({ id }) => id).sort((one, other) => one - other);
  if (ids.some((id, index) => id !== index) || ids.length !== rows.length) {
    throw new Error(`${name} does not contain the inserted rows`);
  }
  if (stored.some(({ ts }, index) => index > 0 && ts < (stored[index - 1]?.ts ?? 0))) {
    throw new Error(`${name} is not in time order`);
  }
  return stored;
}

async function readTable(url: string, name: string): Promise<Row[]> {
  const cells = await fetchRows(url, `SELECT ts, k, g, x, n, b, id FROM ${name}`);
  return cells.map(([ts, k, g, x, n, b, id]) => ({
    ts: micros(ts ?? null),
    k: k as string | null,
    g: g as number | null,
    x: x as number | null,
    n: n as number | null,
    b: b as boolean,
    id: id as number,
  }));
}

/**
 * Returns cells as strings; doubles are given 12 digits, so the order of addition does not matter.
 */
export function shown(cells: readonly Cell[]): string {
  const cell = (value: Cell): string =>
    String(typeof value === 'number' ? Number(value.toPrecision(12)) : value);
  return cells.map(cell).join(' | ');
}
