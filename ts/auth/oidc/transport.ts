/**
 * Calls to the identity provider. Redirects are refused; body size, duration and concurrency are
 * limited; and link-local addresses are blocked.
 */
import { type LookupAddress, lookup } from 'node:dns';
import { Agent as PlainAgent, type IncomingMessage, request as plainRequest } from 'node:http';
import { Agent, request } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';

import type { OidcSettings } from './settings.js';

const BODY_BYTES = 1024 * 1024;
/** Maximum number of concurrent calls; further calls are queued. */
const CALLS_AT_ONCE = 32;
const MAX_WAITING = 1024;

export interface ProviderAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** The error in the `WWW-Authenticate` header, if any. */
  readonly challenge: string;
}

export interface ProviderCall {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as form data; if present, the call is a POST. */
  readonly form?: URLSearchParams;
}

/**
 * Thrown if the provider sent no usable response. The login is then neither accepted nor refused.
 */
export class ProviderUnavailable extends Error {
  override readonly name = 'ProviderUnavailable';
  /** Seconds until a retry is useful, if known. */
  readonly seconds: number | undefined;

  constructor(message: string, options: ErrorOptions & { readonly seconds?: number } = {}) {
    super(message, options);
    this.seconds = options.seconds;
  }
}

export interface Transport {
  call(call: ProviderCall): Promise<ProviderAnswer>;
}

type TransportSettings = Pick<
  OidcSettings,
  'timeoutMs' | 'verifyCertificate' | 'trust' | 'allowHttp'
>;

export class HttpTransport implements Transport {
  readonly #settings: TransportSettings;
  readonly #plain = new PlainAgent({ keepAlive: true, maxSockets: CALLS_AT_ONCE });
  readonly #secure: Agent;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(settings: TransportSettings) {
    this.#settings = settings;
    this.#secure = new Agent({
      keepAlive: true,
      maxSockets: CALLS_AT_ONCE,
      minVersion: 'TLSv1.2',
      rejectUnauthorized: settings.verifyCertificate,
      ...settings.trust,
    });
  }

  async call(call: ProviderCall): Promise<ProviderAnswer> {
    const deadline = performance.now() + this.#settings.timeoutMs;
    await this.#acquireSlot(deadline);
    try {
      return await this.#send(call, deadline);
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
    }
  }

  /** Waits until one of the slots for concurrent calls is free. */
  async #acquireSlot(deadline: number): Promise<void> {
    if (this.#running < CALLS_AT_ONCE) {
      this.#running += 1;
      return;
    }
    if (this.#waiting.length >= MAX_WAITING) {
      throw new ProviderUnavailable('too many logins are waiting for the identity provider');
    }
    await new Promise<void>((resolve, reject) => {
      const begin = (): void => {
        clearTimeout(timer);
        this.#running += 1;
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(begin), 1);
        reject(new ProviderUnavailable('the identity provider did not respond in time'));
      }, deadline - performance.now());
      this.#waiting.push(begin);
    });
  }

  #send(call: ProviderCall, deadline: number): Promise<ProviderAnswer> {
    const url = new URL(call.url);
    const secure = url.protocol === 'https:';
    const form = call.form?.toString();
    return new Promise((resolve, reject) => {
      let failed = false;
      const fail = (cause: unknown): void => {
        failed = true;
        clearTimeout(timer);
        const reason = cause instanceof Error ? cause.message : String(cause);
        reject(new ProviderUnavailable(`${url.origin}: ${reason}`, { cause }));
        sent.destroy();
      };
      const sent = (secure ? request : plainRequest)(url, {
        method: form === undefined ? 'GET' : 'POST',
        agent: secure ? this.#secure : this.#plain,
        headers: {
          Accept: 'application/json',
          ...(form === undefined ? {} : formHeaders(form)),
          ...call.headers,
        },
        lookup: guardedLookup,
      });
      const timer = setTimeout(
        () => {
          fail(new Error(`no response within ${this.#settings.timeoutMs} ms`));
        },
        Math.max(deadline - performance.now(), 0),
      );
      sent.on('error', (error: NodeJS.ErrnoException) => {
        if (!failed && sent.reusedSocket && error.code === 'ECONNRESET') {
          // The provider closed the idle connection just as it was reused, so the call is sent
          // again.
          clearTimeout(timer);
          resolve(this.#send(call, deadline));
        } else {
          fail(error);
        }
      });
      sent.on('response', (response) => {
        readBody(response).then((body) => {
          clearTimeout(timer);
          resolve({
            status: response.statusCode ?? 0,
            contentType: response.headers['content-type'] ?? '',
            challenge: response.headers['www-authenticate'] ?? '',
            body,
          });
        }, fail);
      });
      sent.end(form);
    });
  }
}

function formHeaders(form: string): Record<string, string> {
  return {
    'Content-Type': 'application/x-www-form-urlencoded',
    'Content-Length': String(Buffer.byteLength(form)),
  };
}

async function readBody(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES) {
      throw new Error(`the response is too large [limit=${BODY_BYTES} bytes]`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * Resolves the name once, checks the address, and connects to that same address. Cloud providers
 * serve machine credentials on link-local addresses.
 */
const guardedLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) {
      callback(error, '', 0);
      return;
    }
    const open = addresses.filter(({ address }) => !isLinkLocal(address));
    const first: LookupAddress | undefined = open[0];
    if (first === undefined) {
      callback(new Error(`'${hostname}' resolves to a link-local address`), '', 0);
    } else if (options.all === true) {
      callback(null, open);
    } else {
      callback(null, first.address, first.family);
    }
  });
};

/** Returns whether an address is link-local. */
export function isLinkLocal(address: string): boolean {
  const bare = address.replace(/^\[|\]$/g, '').replace(/^::ffff:/i, '');
  return isIP(bare) === 4
    ? bare.startsWith('169.254.')
    : isIP(bare) === 6 && /^fe[89ab][0-9a-f]:/i.test(bare);
}
