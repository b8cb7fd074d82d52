/** Sends lines to a server, and reads its tables. */
import type { TestServer } from '../golden/server.js';

export interface LineAnswer {
  readonly status: number;
  readonly text: string;
  /** Error code; present in a refusal. */
  readonly code?: string;
  readonly message?: string;
  readonly line?: number;
  readonly errorId?: string;
}

type Body = string | Uint8Array;

/** Posts lines; `path` may contain a query string. */
export async function write(
  server: TestServer,
  body: Body | ReadableStream<Uint8Array>,
  headers: Record<string, string> = {},
  path = '/write',
): Promise<LineAnswer> {
  const streamed = body instanceof ReadableStream ? { duplex: 'half' as const } : {};
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    body: body as NonNullable<RequestInit['body']>,
    headers,
    ...streamed,
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  return { status: response.status, text, ...(isJson ? (JSON.parse(text) as object) : {}) };
}

type Rows = readonly (readonly unknown[])[];

export async function rows(
  server: TestServer,
  query: string,
  headers: Record<string, string> = {},
): Promise<Rows> {
  const url = `${server.url}/exec?query=${encodeURIComponent(query)}`;
  const response = await fetch(url, { headers });
  const answer = (await response.json()) as { dataset?: Rows; error?: string };
  if (answer.error !== undefined) {
    throw new Error(`${query}: ${answer.error}`);
  }
  return answer.dataset ?? [];
}

/** Returns `name TYPE` for each column. */
export async function columns(server: TestServer, table: string): Promise<readonly string[]> {
  const found = await rows(server, `select "column", type from table_columns('${table}')`);
  return found.map(([name, type]) => `${String(name)} ${String(type)}`);
}

/** Concatenates bytes: strings, single bytes, little-endian doubles. */
export function bytes(...parts: readonly (string | number | readonly number[])[]): Uint8Array {
  const buffers = parts.map((part) => {
    if (typeof part === 'string') {
      return Buffer.from(part);
    }
    if (typeof part === 'number') {
      const double = Buffer.alloc(8);
      double.writeDoubleLE(part);
      return double;
    }
    return Buffer.from(part);
  });
  return Buffer.concat(buffers);
}

/** Users who send rows: `ann` into one table, `maker` into its own tables, `guest` into none. */
export const SENDERS = [
  'CREATE TABLE open (x LONG, ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY',
  'CREATE TABLE shut (x LONG, ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY',
  "CREATE USER ann WITH PASSWORD 'a'",
  'GRANT HTTP TO ann',
  'GRANT INSERT ON open TO ann',
  "CREATE USER maker WITH PASSWORD 'm'",
  'GRANT HTTP, CREATE TABLE TO maker',
  "CREATE USER guest WITH PASSWORD 'g'",
  'GRANT PGWIRE TO guest',
] as const;
