/** Sends one request exactly as described and reads the complete response. */
import { Agent, type IncomingMessage, request } from 'node:http';

import { noteInternalError } from '../internal-errors.js';

export interface Exchange {
  readonly method: string;
  /** Path and query, as sent. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
}

export interface Reply {
  readonly status: number;
  readonly reason: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

const TIMEOUT_MS = 30_000;
const INTERNAL_ERROR = 500;
const agent = new Agent({ keepAlive: true, maxSockets: 4 });

export function send(base: string, exchange: Exchange): Promise<Reply> {
  const address = new URL(base);
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        agent,
        host: address.hostname,
        port: address.port,
        method: exchange.method,
        path: exchange.target,
        headers: {
          ...exchange.headers,
          ...(exchange.body === null ? {} : { 'Content-Length': exchange.body.length }),
        },
        timeout: TIMEOUT_MS,
      },
      (incoming) => {
        collect(incoming).then(resolve, reject);
      },
    );
    outgoing.on('timeout', () => outgoing.destroy(new Error('timeout')));
    outgoing.on('error', reject);
    outgoing.end(exchange.body ?? undefined);
  });
}

async function collect(incoming: IncomingMessage): Promise<Reply> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    chunks.push(chunk);
  }
  return {
    status: incoming.statusCode ?? 0,
    reason: incoming.statusMessage ?? '',
    headers: incoming.headers,
    body: Buffer.concat(chunks),
  };
}

/** Sends one statement to /exec. Internal errors are counted for the whole run. */
export async function execute(
  base: string,
  sql: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> {
  let reply: Reply;
  try {
    reply = await send(base, executeRequest(sql, headers));
  } catch (error) {
    noteInternalError(sql, `no answer: ${String(error)}`);
    throw error;
  }
  if (reply.status === INTERNAL_ERROR) {
    noteInternalError(sql, `${reply.status} ${reply.body.toString().slice(0, 500)}`);
  }
  return reply;
}

/** Builds a GET request to /exec, or a POST request for a long statement. */
function executeRequest(sql: string, headers: Readonly<Record<string, string>>): Exchange {
  const target = `/exec?query=${encodeURIComponent(sql.replace(/\p{Surrogate}/gu, '\ufffd'))}`;
  // A statement that is too long for a request head is sent as a form.
  if (target.length > 60_000) {
    const body = Buffer.from(new URLSearchParams({ query: sql }).toString());
    const form = { 'Content-Type': 'application/x-www-form-urlencoded', ...headers };
    return { method: 'POST', target: '/exec', headers: form, body };
  }
  return { method: 'GET', target, headers, body: null };
}
