/**
 * `tidemark mcp`: reads messages from an agent's client, one per line, on standard input. It
 * forwards each to POST /mcp on a running server, and returns the responses. The server provides
 * the tools, the login and the permissions.
 */
import { serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  type JSONRPCMessage,
  JSONRPCMessageSchema,
  type JSONRPCRequest,
} from '@modelcontextprotocol/sdk/types.js';

import { Lines } from './lines.js';

/**
 * Maximum length of a line from the client, in bytes; enough for any statement. The server's own
 * limit is lower.
 */
const MAX_LINE_BYTES = 17 * 1024 * 1024;
/** JSON-RPC code for server errors. */
const SERVER_ERROR = -32_000;
const UNAUTHORISED = 401;
const ACCEPTED = 202;

export interface StdioOptions {
  /** The server's URL: `http://127.0.0.1:9000`, with the base path of its interface. */
  readonly url: string;
  /** The Authorization header; empty without a login. */
  readonly authorization: string;
  readonly mayWrite: boolean;
}

/** Match a request's ID, which programs write at the start or the end of the line. */
const FIRST_ID = /^\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("[^"\\]*"|\d+)\s*,/;
const LAST_ID = /,\s*"id"\s*:\s*("[^"\\]*"|\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;

/** Forwards messages until the client closes its input. */
export async function serveStdio(options: StdioOptions): Promise<void> {
  const { stdin, stdout } = process;
  const bridge = new Bridge(options, (message) => stdout.write(serializeMessage(message)));
  const lines = new Lines(MAX_LINE_BYTES, {
    line: (text) => {
      const message = messageOf(text);
      if (message === null) {
        complain('a line of standard input is not a JSON-RPC message');
      } else {
        void bridge.receive(message);
      }
    },
    tooLong: (beginning, end) => {
      const [, id] = FIRST_ID.exec(beginning) ?? LAST_ID.exec(end) ?? [];
      const reason = `the message is too long [limit=${MAX_LINE_BYTES} bytes]`;
      complain(reason);
      if (id !== undefined) {
        const request = { jsonrpc: '2.0', id: JSON.parse(id) as string | number } as const;
        stdout.write(serializeMessage(refusal({ ...request, method: 'tools/call' }, reason)));
      }
    },
  });
  const closed = new Promise<void>((resolve) => {
    stdin.once('close', resolve).once('end', resolve);
    // Ends when the client stops reading.
    stdout.once('error', () => {
      resolve();
    });
  });
  stdin.on('data', (chunk: Buffer) => {
    lines.push(chunk);
  });
  await closed;
  bridge.close();
}

function complain(reason: string): void {
  process.stderr.write(`tidemark mcp: ${reason}\n`);
}

type Send = (message: JSONRPCMessage) => unknown;

class Bridge {
  readonly #options: StdioOptions;
  readonly #address: string;
  readonly #send: Send;
  /** Requests that have no response yet, by ID. */
  readonly #waiting = new Map<string | number, AbortController>();
  #protocolVersion: string | null = null;

  constructor(options: StdioOptions, send: Send) {
    this.#options = options;
    this.#address = `${options.url.replace(/\/+$/, '')}/mcp`;
    this.#send = send;
  }

  async receive(message: JSONRPCMessage): Promise<void> {
    if (isJSONRPCRequest(message)) {
      await this.#carry(message);
    } else if (isJSONRPCNotification(message) && message.method === 'notifications/cancelled') {
      // Aborting closes the connection to the server, which then cancels the request.
      this.#waiting.get(message.params?.['requestId'] as string | number)?.abort();
    }
    // Other notifications have no effect on the server.
  }

  /** Aborts all pending requests. */
  close(): void {
    for (const pending of this.#waiting.values()) {
      pending.abort();
    }
  }

  async #carry(request: JSONRPCRequest): Promise<void> {
    const stop = new AbortController();
    this.#waiting.set(request.id, stop);
    try {
      const reply = await this.#exchange(request, stop.signal);
      if (reply !== null && !stop.signal.aborted) {
        this.#note(request, reply);
        this.#send(reply);
      }
    } catch (error) {
      if (!stop.signal.aborted) {
        this.#send(refusal(request, this.#unreachable(error)));
      }
    } finally {
      this.#waiting.delete(request.id);
    }
  }

  async #exchange(request: JSONRPCRequest, signal: AbortSignal): Promise<JSONRPCMessage | null> {
    const response = await fetch(this.#address, {
      method: 'POST',
      headers: this.#headers(),
      body: JSON.stringify(request),
      redirect: 'error',
      signal,
    });
    const text = await response.text();
    if (response.status === ACCEPTED) {
      return null;
    }
    const message = messageOf(text);
    if (message !== null && 'id' in message && message.id === request.id) {
      return message;
    }
    return refusal(request, this.#refused(response.status, text));
  }

  #headers(): Record<string, string> {
    const { authorization, mayWrite } = this.#options;
    return {
      Accept: 'application/json, text/event-stream',
      'Content-Type': 'application/json',
      ...(authorization === '' ? {} : { Authorization: authorization }),
      ...(mayWrite ? { 'Tidemark-Writes': 'allow' } : {}),
      ...(this.#protocolVersion === null ? {} : { 'MCP-Protocol-Version': this.#protocolVersion }),
    };
  }

  /** Records the protocol version that the first request negotiated; later requests repeat it. */
  #note({ method }: JSONRPCRequest, reply: JSONRPCMessage): void {
    if (method === 'initialize' && 'result' in reply) {
      const version = reply.result['protocolVersion'];
      this.#protocolVersion = typeof version === 'string' ? version : null;
    }
  }

  #refused(status: number, text: string): string {
    const { url } = this.#options;
    const reason = text.trim().slice(0, 1_000);
    if (status === UNAUTHORISED) {
      return (
        `the server at ${url} rejected the login (401): set --user and TIDEMARK_PASSWORD, ` +
        'or TIDEMARK_TOKEN'
      );
    }
    return `the server at ${url} returned status ${status}: ${reason}`;
  }

  #unreachable(error: unknown): string {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const code = (cause as { readonly code?: unknown }).code;
    const reason = cause instanceof Error && cause.message !== '' ? cause.message : String(code);
    return (
      `no answer from the server at ${this.#options.url} (${reason}): is it running? ` +
      'start one with `tidemark start`, or set --url'
    );
  }
}

function messageOf(text: string): JSONRPCMessage | null {
  try {
    return JSONRPCMessageSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/**
 * Returns the response for an error. For a tool call the error is returned as the tool's result,
 * because agents read results.
 */
function refusal({ id, method }: JSONRPCRequest, message: string): JSONRPCMessage {
  if (method === 'tools/call') {
    const result = { content: [{ type: 'text', text: message }], isError: true };
    return { jsonrpc: '2.0', id, result };
  }
  return { jsonrpc: '2.0', id, error: { code: SERVER_ERROR, message } };
}
