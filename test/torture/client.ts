/** Requests to a server that may crash at any time. */
import type { TestServer } from '../golden/server.js';

interface Rows {
  readonly dataset: readonly (readonly unknown[])[];
}

/** A refused statement. */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export async function exec(server: TestServer, query: string, timeoutMs = 60_000): Promise<Rows> {
  const signal = AbortSignal.timeout(timeoutMs);
  const url = `${server.url}/exec?query=${encodeURIComponent(query)}`;
  const response = await fetch(url, { signal });
  const text = await response.text();
  if (!response.ok) {
    throw new Refused(response.status, reasonIn(text));
  }
  return JSON.parse(text) as Rows;
}

/** Returns the error in a response. The error comes after the statement, which may be long. */
function reasonIn(text: string): string {
  const found = /"error":"(?:[^"\\]|\\.)*"/.exec(text);
  return (found?.[0] ?? text).slice(0, 300);
}

/** Imports CSV into a table; throws `Refused` unless every row was accepted. */
export async function importCsv(
  server: TestServer,
  table: string,
  csv: string | Buffer,
  parameters: Readonly<Record<string, string>> = {},
  schema?: string,
): Promise<void> {
  const body = new FormData();
  if (schema !== undefined) {
    body.append('schema', schema);
  }
  body.append('data', new Blob([csv]), 'data.csv');
  const fixed = { name: table, timestamp: 'ts', partitionBy: 'DAY', fmt: 'json' };
  const query = new URLSearchParams({ ...fixed, atomicity: 'abort', ...parameters });
  const url = `${server.url}/imp?${query.toString()}`;
  const response = await fetch(url, { method: 'POST', body, signal: AbortSignal.timeout(60_000) });
  const text = await response.text();
  if (!response.ok) {
    throw new Refused(response.status, text.slice(0, 300));
  }
  const answer = JSON.parse(text) as { status: string };
  if (answer.status !== 'OK') {
    throw new Refused(response.status, text.slice(0, 300));
  }
}

/** Whether the error is a lost connection rather than a refusal. */
export function isDisconnected(error: unknown): boolean {
  return !(error instanceof Refused);
}
