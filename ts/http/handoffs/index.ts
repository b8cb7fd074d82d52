/**
 * Decides which connections may be handed off to the engine, and stores the state of each
 * connection.
 */
import type { Socket } from 'node:net';

import { type Authenticator, readCredentials } from '../../auth/index.js';
import { KEYS } from '../../config/index.js';
import { chooseCoding, MIN_COMPRESSED_BYTES } from '../request/negotiation.js';
import type { HttpContext, HttpServices } from '../route.js';
import { type HandoffLimits, RepeatedRequests } from './repeated-requests.js';

export type { Answered } from './repeated-requests.js';

/** Maximum request length for a handoff; longer requests rarely repeat. */
const MAX_REQUEST_LENGTH = 8_192;

class RequestHandoffs {
  readonly #services: HttpServices;
  /** Maximum size of a response that is sent in one write, in bytes. */
  readonly #maxResponseBytes: number;
  /** Keyed by socket, because other code owns the sockets. */
  readonly #known = new WeakMap<Socket, RepeatedRequests>();

  constructor(services: HttpServices, maxBodyBytes: number) {
    this.#services = services;
    this.#maxResponseBytes = maxBodyBytes;
  }

  /**
   * Returns the state of a connection's repeated requests; `null` if the connection cannot be
   * handed off.
   */
  of(context: HttpContext): RepeatedRequests | null {
    const { socket } = context.req;
    if (context.method !== 'GET' || 'encrypted' in socket) {
      return null;
    }
    let known = this.#known.get(socket);
    if (known === undefined) {
      known = new RepeatedRequests(socket, (error) => {
        this.#services.logger.child('http').error('handoff_failed', { error });
      });
      this.#known.set(socket, known);
    }
    return known;
  }

  /**
   * Returns the size limits for handing off a connection with these requests; `null` if the login
   * may expire.
   */
  limits(context: HttpContext): HandoffLimits | null {
    const { config, authenticator } = this.#services;
    if (!isLasting(context, authenticator)) {
      return null;
    }
    const isCompressed = chooseCoding(context.req.headers['accept-encoding'], ['gzip']) !== null;
    return {
      maxRequestBytes: Math.min(MAX_REQUEST_LENGTH, config.get(KEYS.httpHeaderBytes) - 1),
      maxBodyBytes: isCompressed ? MIN_COMPRESSED_BYTES - 1 : this.#maxResponseBytes,
    };
  }
}

/** `null` if handoffs are disabled. */
export function requestHandoffs(
  services: HttpServices,
  maxBodyBytes: number,
): RequestHandoffs | null {
  return services.config.get(KEYS.httpHandoffs)
    ? new RequestHandoffs(services, maxBodyBytes)
    : null;
}

/**
 * Whether only a permission change can end the login. Tokens and sessions expire, and a password
 * that another service verifies may change.
 */
function isLasting({ headers }: HttpContext, authenticator: Authenticator): boolean {
  if (!authenticator.required) {
    return true;
  }
  const credentials = readCredentials(headers.authorization ?? '');
  return credentials?.scheme === 'basic' && !authenticator.needsPlainPassword(credentials.user);
}
