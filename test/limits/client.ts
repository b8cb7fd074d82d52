/** Statements over HTTP, with the details of refusals. */
import type { TestServer } from '../golden/server.js';

interface Answer {
  readonly status: number;
  readonly error: string | undefined;
  readonly rows: readonly (readonly unknown[])[];
}

export async function send(server: TestServer, query: string): Promise<Answer> {
  const body = new URLSearchParams({ query });
  const response = await fetch(`${server.url}/exec`, { method: 'POST', body });
  const answer = (await response.json()) as { dataset?: unknown[][]; error?: string };
  return { status: response.status, error: answer.error, rows: answer.dataset ?? [] };
}

/** Returns the rows of a statement that must succeed. */
export async function rowsOf(
  server: TestServer,
  query: string,
): Promise<readonly (readonly unknown[])[]> {
  const { error, rows } = await send(server, query);
  if (error !== undefined) {
    throw new Error(`${query}: ${error}`);
  }
  return rows;
}
