/**
 * Handles one request from an agent over Streamable HTTP. Requests share only the list of running
 * requests, so that a client can cancel a request by its session and ID.
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
  /** The message in `request`. */
  readonly message: unknown;
  /** Key of the user who may cancel the request. */
  readonly owner: string;
  readonly setting: Setting;
  /** Aborted when the client no longer waits for the response. */
  readonly disconnected: AbortSignal;
}

/** A running request. */
interface Running {
  readonly owner: string;
  readonly session: string;
  readonly id: string | number;
  readonly stop: AbortController;
}

/** All running requests. Their number is bounded by the number of connections. */
const running = new Set<Running>();

export async function exchange({
  request,
  message,
  owner,
  setting,
  disconnected,
}: Exchange): Promise<Response> {
  const session = sessionOf(request);
  const cancelledId = cancelledIdOf(message);
  if (cancelledId !== null) {
    stopRunning(owner, session, cancelledId);
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
      withoutAnswer(AbortSignal.any([stop.signal, disconnected])),
    ]);
    if (answer.ok && isInitializeRequest(message)) {
      answer.headers.set(SESSION_HEADER, randomUUID());
    }
    return answer;
  } finally {
    forget();
    // Closing the server cancels calls that are still running.
    await server.close();
  }
}

/** Cancels a client's running requests. */
export function endSession(request: Request, owner: string): void {
  stopRunning(owner, sessionOf(request), null);
}

/**
 * Cancels the request with this ID, or all requests of a session. The server generates session IDs,
 * and only their client knows them.
 */
function stopRunning(owner: string, session: string, id: string | number | null): void {
  for (const entry of running) {
    const isTheirs = entry.owner === owner && entry.session === session;
    if (isTheirs && session !== '' && (id === null || entry.id === id)) {
      entry.stop.abort();
    }
  }
}

/** Returns the response to a cancelled request, which contains no result. */
async function withoutAnswer(signal: AbortSignal): Promise<Response> {
  if (!signal.aborted) {
    await new Promise((resolve) => {
      signal.addEventListener('abort', resolve, { once: true });
    });
  }
  return new Response(null, { status: ACCEPTED });
}

/**
 * Returns the request's session ID. Without it, another client of the same user could use the same
 * request ID.
 */
function sessionOf(request: Request): string {
  const session = request.headers.get(SESSION_HEADER) ?? '';
  return SESSION.test(session) ? session : '';
}

function cancelledIdOf(message: unknown): string | number | null {
  if (!isJSONRPCNotification(message) || message.method !== 'notifications/cancelled') {
    return null;
  }
  const id = message.params?.['requestId'];
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}

/**
 * Makes a request cancellable. The caller must call the returned function when the request ends.
 */
function track(
  message: unknown,
  owner: string,
  session: string,
  stop: AbortController,
): () => void {
  if (session === '' || !isJSONRPCRequest(message)) {
    return () => undefined;
  }
  const entry = { owner, session, id: message.id, stop };
  running.add(entry);
  return () => running.delete(entry);
}
