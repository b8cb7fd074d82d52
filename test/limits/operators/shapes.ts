/**
 * Tables of adversarial shapes, with their known rows. All have the same columns: `ts`, a symbol
 * `k`, a number `n`, a string `t`, an array `a`.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { TestServer } from '../../golden/server.js';
import { rowsOf } from '../client.js';

/** The row properties that results depend on. */
export interface Row {
  readonly tsMicros: number;
  readonly k: string;
  readonly n: number;
  /** Size of the payload: the number itself, or the length of the string or array. */
  readonly size: number;
}

export interface Shape {
  readonly name: string;
  readonly table: string;
  /** Column that statements use as the payload. */
  readonly payload: 'n' | 't' | 'a';
  readonly rows: readonly Row[];
  /** SQL for the table's rows. */
  readonly source: string;
  readonly partitionBy: 'DAY' | 'YEAR';
}

const VALUES = 64;
const VALUE_LENGTH = 1_048_576;
/** A 64 MiB string, built from a column `s`. */
const LONG_TEXT = `concat(${Array.from({ length: VALUES }, () => 's').join(', ')})`;
const LONG_VALUE_SOURCE = `(select rpad('x' || x, ${VALUE_LENGTH}, 'xy ') s from long_sequence(1))`;
const LONG_TEXT_LENGTH = VALUES * VALUE_LENGTH;
const LONG_ARRAY = 5_000_000;
const DAY_MICROS = 86_400_000_000;
const FAR = '2200-01-01T00:00:00.000000Z';
/** Number of rows, each in its own partition. */
const PARTITIONS = 1_000;

function times<T>(count: number, make: (n: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, at) => make(at + 1));
}

/** Returns SQL for the size of a payload. */
export function sizeOf({ payload }: Shape, column: string): string {
  return { n: column, t: `length(${column})`, a: `array_count(${column})` }[payload];
}

function numbered(name: string, shape: Omit<Partial<Shape>, 'name'>): Shape {
  return {
    name,
    table: name,
    payload: 'n',
    rows: [],
    source: '',
    partitionBy: 'DAY',
    ...shape,
  };
}

/** Returns all shapes; those with many rows have `count` rows. */
export function shapesOf(count: number): readonly Shape[] {
  const sequence = (columns: string, of = count): string =>
    `select ${columns}, array[x::double] a from long_sequence(${of})`;
  return [
    numbered('one_group', {
      rows: times(count, (n) => ({ tsMicros: (n - 1) * 1000, k: 'k', n, size: n })),
      source: sequence("timestamp_sequence(0, 1000) ts, 'k' k, x n, 't' || x t"),
    }),
    numbered('equal_keys', {
      rows: times(count, () => ({ tsMicros: 0, k: 'k', n: 7, size: 7 })),
      source: sequence("0::timestamp ts, 'k' k, 7::long n, 't' t"),
    }),
    numbered('distinct_keys', {
      rows: times(count, (n) => ({ tsMicros: (n - 1) * 1000, k: `k${n}`, n, size: n })),
      source: sequence("timestamp_sequence(0, 1000) ts, 'k' || x k, x n, 't' || x t"),
    }),
    numbered('long_gap', {
      rows: [0, Date.parse(FAR) * 1000].map((tsMicros, at) => {
        return { tsMicros, k: 'k', n: at + 1, size: at + 1 };
      }),
      source: sequence(
        `(case when x = 1 then 0::timestamp else '${FAR}'::timestamp end) ts,
        'k' k, x n, 't' || x t`,
        2,
      ),
      partitionBy: 'YEAR',
    }),
    numbered('long_array', {
      payload: 'a',
      rows: [{ tsMicros: 0, k: 'k', n: 1, size: LONG_ARRAY }],
      source: `select 0::timestamp ts, 'k' k, x n, 't' t, array_build(1, ${LONG_ARRAY}, x::double) a
        from long_sequence(1)`,
    }),
    numbered('long_text', {
      payload: 't',
      rows: [{ tsMicros: 0, k: 'k', n: 1, size: LONG_TEXT_LENGTH }],
      source: `select 0::timestamp ts, 'k' k, 1::long n, ${LONG_TEXT} t, array[1.0] a
        from ${LONG_VALUE_SOURCE}`,
    }),
    numbered('no_rows', { source: sequence("0::timestamp ts, 'k' k, x n, 't' t", 0) }),
    numbered('one_row_per_part', {
      rows: times(PARTITIONS, (n) => ({ tsMicros: (n - 1) * DAY_MICROS, k: 'k', n, size: n })),
      source: sequence(
        `timestamp_sequence(0, ${DAY_MICROS}) ts, 'k' k, x n, 't' || x t`,
        PARTITIONS,
      ),
    }),
  ];
}

/** Creates the tables and, for each, a Parquet file and a CSV file of its numbers. */
export async function makeTables(server: TestServer, shapes: readonly Shape[]): Promise<void> {
  await mkdir(join(server.root, 'import'), { recursive: true });
  for (const { table, source, partitionBy } of shapes) {
    await rowsOf(
      server,
      `create table ${table} (ts timestamp, k symbol capacity 4096, n long, t varchar, a double[])
        timestamp(ts) partition by ${partitionBy}`,
    );
    await rowsOf(server, `insert into ${table} ${source}`);
    for (const [fmt, query] of [
      ['parquet', table],
      ['csv', `select n from ${table}`],
    ] as const) {
      const request = new URLSearchParams({ query, fmt });
      const file = await fetch(`${server.url}/exp?${request.toString()}`);
      const bytes = new Uint8Array(await file.arrayBuffer());
      if (!file.ok) {
        throw new Error(`${table}: ${Buffer.from(bytes).toString()}`);
      }
      await writeFile(join(server.root, 'import', `${table}.${fmt}`), bytes);
    }
  }
}
