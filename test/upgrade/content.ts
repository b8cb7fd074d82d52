/** The content of recorded data directories, and the queries that read all of it. */
import { fileURLToPath } from 'node:url';

import type { TestServer } from '../golden/server.js';

export const ROOTS = fileURLToPath(new URL('../../../test/upgrade/roots/', import.meta.url));
export const ADMIN = 'admin:Admin-1234';
const READER = 'ann:Reader-1234';

export const SETTINGS = [
  ...[
    'acl.enabled=true',
    'acl.admin.password=Admin-1234',
    'acl.password.hash.iteration.count=4096',
  ],
  'disk.reserve=0',
];

/** Statements that create tables of each kind, views, users and grants. */
export const CONTENT: readonly string[] = [
  'CREATE TABLE trades (ts TIMESTAMP, symbol SYMBOL, price DOUBLE, amount LONG, note VARCHAR) ' +
    'TIMESTAMP(ts) PARTITION BY DAY WAL DEDUP UPSERT KEYS(ts, symbol)',
  "INSERT INTO trades VALUES ('2026-01-01T09:00', 'A', 1.0, 10, 'first'), " +
    "('2026-01-01T10:00', 'B', 2.0, 20, NULL), ('2026-01-02T09:00', 'A', 1.5, 30, 'third')",
  "INSERT INTO trades VALUES ('2026-01-01T08:00', 'B', 1.9, 5, 'late'), " +
    "('2026-01-02T09:00', 'A', 1.6, 31, 'replaced')",
  'CREATE TABLE kinds (b BOOLEAN, i8 BYTE, i16 SHORT, i32 INT, i64 LONG, f FLOAT, d DOUBLE, ' +
    'c CHAR, s STRING, v VARCHAR, u UUID, ip IPv4, dt DATE, t TIMESTAMP, n TIMESTAMP_NS, ' +
    'bin BINARY, l LONG256, g GEOHASH(8c), a DOUBLE[], dec DECIMAL(18, 3))',
  "INSERT INTO kinds VALUES (true, 1, 2, 3, 4, 5.5, 6.5, 'x', 'string', 'varchar', " +
    "'11111111-2222-3333-4444-555555555555', '10.0.0.1', '2026-01-01', '2026-01-01T01:02:03.4', " +
    "'2026-01-01T01:02:03.456789012', NULL, '0x0123', #u33d8b12, ARRAY[1.0, 2.5], 12.345m)",
  'INSERT INTO kinds (i32) VALUES (NULL)',
  "UPDATE trades SET note = 'updated' WHERE symbol = 'B' AND price = 2.0",
  "ALTER TABLE trades CONVERT PARTITION TO PARQUET LIST '2026-01-01'",
  'CREATE TABLE changed (a INT, b INT, c INT)',
  'INSERT INTO changed VALUES (1, 2, 3)',
  'ALTER TABLE changed DROP COLUMN b',
  'ALTER TABLE changed RENAME COLUMN c TO d',
  'ALTER TABLE changed ADD COLUMN e VARCHAR',
  "INSERT INTO changed VALUES (4, 5, 'new')",
  'CREATE TABLE dropped (a INT)',
  'DROP TABLE dropped',
  'CREATE VIEW expensive AS (SELECT * FROM trades WHERE price > 1.5)',
  'CREATE MATERIALIZED VIEW daily AS (SELECT ts, symbol, sum(amount) total FROM trades ' +
    'SAMPLE BY 1d)',
  "CREATE USER ann WITH PASSWORD 'Reader-1234'",
  'GRANT HTTP TO ann',
  'GRANT SELECT ON trades(ts, symbol) TO ann',
];

/** User and query. */
const QUERIES: readonly (readonly [user: string, query: string])[] = [
  [ADMIN, 'SELECT * FROM trades ORDER BY ts, symbol'],
  [ADMIN, 'SELECT * FROM kinds ORDER BY i64'],
  [ADMIN, 'SELECT * FROM changed ORDER BY a'],
  [ADMIN, 'SELECT * FROM daily ORDER BY ts, symbol'],
  [ADMIN, 'SELECT * FROM expensive ORDER BY ts, symbol'],
  [ADMIN, "SELECT name, numRows, isParquet FROM table_partitions('trades') ORDER BY name"],
  [ADMIN, 'SELECT table_name FROM tables() ORDER BY table_name'],
  [ADMIN, 'SHOW CREATE TABLE trades'],
  [ADMIN, 'SHOW COLUMNS FROM kinds'],
  [ADMIN, 'SHOW USERS'],
  [READER, 'SELECT ts, symbol FROM trades ORDER BY ts, symbol'],
  [READER, 'SELECT price FROM trades'],
];

export interface Answer {
  readonly query: string;
  readonly rows?: unknown;
  readonly error?: string;
}

async function send(server: TestServer, user: string, query: string): Promise<Answer> {
  const headers = { Authorization: `Basic ${btoa(user)}` };
  const url = `${server.url}/exec?query=${encodeURIComponent(query)}`;
  const body = (await (await fetch(url, { headers })).json()) as {
    readonly dataset?: unknown;
    readonly error?: string;
  };
  const { dataset, error } = body;
  return error === undefined ? { query, rows: dataset ?? null } : { query, error };
}

/** Runs a statement that must succeed. */
export async function run(server: TestServer, user: string, query: string): Promise<unknown> {
  const { error, rows } = await send(server, user, query);
  if (error !== undefined) {
    throw new Error(`${query}: ${error}`);
  }
  return rows;
}

/** Returns the number of rows of the materialized view, which is refreshed in the background. */
export async function viewRows(server: TestServer): Promise<number> {
  const [[count = 0] = []] = (await run(server, ADMIN, 'SELECT count() FROM daily')) as number[][];
  return count;
}

/** Returns the answer to each query. */
export async function answers(server: TestServer): Promise<Answer[]> {
  const all: Answer[] = [];
  for (const [user, query] of QUERIES) {
    all.push(await send(server, user, query));
  }
  return all;
}

/** `tidemark 1.5 0d93fe87` → `1.5`. */
export function formatOf(line: string): string {
  return /^tidemark (\d+\.\d+)/.exec(line)?.[1] ?? '';
}
