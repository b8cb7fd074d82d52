/**
 * One request of an agent and its answer, in the terms of Streamable HTTP. Requests share nothing
 * but the list of those that run: a client that takes one back names it by its session and number.
 */
import { randomUUID } from 'node:crypto';

import * as streamable from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import {
  isInitializeRequest,
  isJSONRPCNotification,
  isJSONRPCRequest,
} from '@modelcontextprotocol/sdk/types.js';

import { createServer } from './server.js';
import type { Setting } from './setting.js';

const SESSION_HEADER = 'mcp-session-id';
const SESSION = /^[\x21-\x7e]{1,128}$/;
const ACCEPTED = 202;

export interface Exchange {
  readonly request: Request;
  /** The message that `request` carries. */
  readonly message: unknown;
  /** Whose requests may be taken back by whom: the same for one user alone. */
  readonly owner: string;
  readonly setting: Setting;
  /** Aborted when the client waits for the answer no more. */
  readonly gone: AbortSignal;
}

/** A request that runs. */
interface Running {
  readonly owner: string;
  readonly session: string;
  readonly id: string | number;
  readonly stop: AbortController;
}

/** At most as many as there are connections. */
const running = new Set<Running>();

export async function exchange({
  request,
  message,
  owner,
  setting,
  gone,
}: Exchange): Promise<Response> {
  const session = sessionOf(request);
  const takenBack = takenBackBy(message);
  if (takenBack !== null) {
    stopRunning(owner, session, takenBack);
  }
  const stop = new AbortController();
  const forget = track(message, owner, session, stop);
  const transport = new streamable.WebStandardStreamableHTTPServerTransport({
    enableJsonResponse: true,
  });
  const server = createServer(setting);
  try {
    await server.connect(transport);
    const answer = await Promise.race([
      transport.handleRequest(request, { parsedBody: message }),
      withoutAnswer(AbortSignal.any([stop.signal, gone])),
    ]);
    if (answer.ok && isInitializeRequest(message)) {
      answer.headers.set(SESSION_HEADER, randomUUID());
    }
    return answer;
  } finally {
    forget();
    // What still runs in it is cancelled.
    await server.close();
  }
}

/** Ends the requests of a client that run. */
export function endSession(request: Request, owner: string): void {
  stopRunning(owner, sessionOf(request), null);
}

/** Those of this number, or all. A session is chosen by the server and known to its client. */
function stopRunning(owner: string, session: string, id: string | number | null): void {
  for (const one of running) {
    const isTheirs = one.owner === owner && one.session === session;
    if (isTheirs && session !== '' && (id === null || one.id === id)) {
      one.stop.abort();
    }
  }
}

/** A request that was taken back is only acknowledged. */
async function withoutAnswer(signal: AbortSignal): Promise<Response> {
  if (!signal.aborted) {
    await new Promise((resolve) => {
      signal.addEventListener('abort', resolve, { once: true });
    });
  }
  return new Response(null, { status: ACCEPTED });
}

/** Without a session another client of the same user could have the same number. */
function sessionOf(request: Request): string {
  const session = request.headers.get(SESSION_HEADER) ?? '';
  return SESSION.test(session) ? session : '';
}

function takenBackBy(message: unknown): string | number | null {
  if (!isJSONRPCNotification(message) || message.method !== 'notifications/cancelled') {
    return null;
  }
  const id = message.params?.['requestId'];
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}

/** Lets a request be taken back; the result is called at its end. */
function track(
  message: unknown,
  owner: string,
  session: string,
  stop: AbortController,
): () => void {
  if (session === '' || !isJSONRPCRequest(message)) {
    return () => undefined;
  }
  const one = { owner, session, id: message.id, stop };
  running.add(one);
  return () => running.delete(one);
}
