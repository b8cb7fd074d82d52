/** Client for the workspace that the server stores for the signed-in user. */
import { call, SqlError } from './client.js';
import { credentialHeaders } from './credentials.js';

export interface Dated {
  /**
   * Time of the change, in milliseconds since 1970. If two values have the same key, the later one
   * wins.
   */
  readonly changed: number;
}

interface OpenedWorkspace {
  readonly id: string;
  /** A 256-bit key, encoded as base64. */
  readonly key: string;
  readonly entries: Readonly<Record<string, Dated>>;
}

interface Changes {
  readonly put: Readonly<Record<string, Dated>>;
  readonly remove: readonly string[];
}

const ADDRESS = 'api/v1/workspace';
/** Maximum body length of a request that outlives its page. Browsers limit this size. */
const MAX_KEEPALIVE_LENGTH = 60_000;

export async function openWorkspace(): Promise<OpenedWorkspace> {
  return (await request('GET', ADDRESS)) as OpenedWorkspace;
}

/** Saves changes to the workspace `id`. The server refuses an `id` that belongs to another user. */
export async function saveWorkspace(id: string, changes: Changes): Promise<void> {
  await request('POST', `${ADDRESS}?id=${id}`, JSON.stringify(changes));
}

/** Saves changes while the page is being closed, without reading the response. */
export async function saveFromLeavingPage(id: string, changes: Changes): Promise<void> {
  const body = JSON.stringify(changes);
  const keepalive = body.length < MAX_KEEPALIVE_LENGTH;
  const headers = await credentialHeaders();
  await fetch(`${ADDRESS}?id=${id}`, { method: 'POST', body, headers, keepalive });
}

async function request(method: 'GET' | 'POST', address: string, body?: string): Promise<unknown> {
  const answer = await call(address, { method, ...(body === undefined ? {} : { body }) });
  const { error } = answer.body as { error?: string };
  if (error !== undefined) {
    throw new SqlError(error, undefined, answer.status);
  }
  return answer.body;
}
