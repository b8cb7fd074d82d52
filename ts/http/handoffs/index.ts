/** Which connections may be handed off to the engine, and what is known of each. */
import type { Socket } from 'node:net';

import { type Authenticator, readCredentials } from '../../auth/index.js';
import { KEYS } from '../../config/index.js';
import { chooseCoding } from '../request/negotiation.js';
import { MIN_COMPRESSED_BYTES } from '../response/compression.js';
import type { HttpContext, HttpServices } from '../route.js';
import { type HandoffLimits, RepeatedRequests } from './repeated-requests.js';

export type { Answered } from './repeated-requests.js';

/** Longer requests hardly repeat each other. */
const MAX_REQUEST_LENGTH = 8_192;

class RequestHandoffs {
  readonly #services: HttpServices;
  /** The most bytes of an answer that leaves in one piece. */
  readonly #largest: number;
  /** Kept beside the sockets, which belong to others. */
  readonly #known = new WeakMap<Socket, RepeatedRequests>();

  constructor(services: HttpServices, largest: number) {
    this.#services = services;
    this.#largest = largest;
  }

  /** What the client of a request repeats; null where it is not to be handed off. */
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

  /** What a handoff for requests like this may take and give; null where its login may run out. */
  limits(context: HttpContext): HandoffLimits | null {
    const { config, authenticator } = this.#services;
    if (!isLasting(context, authenticator)) {
      return null;
    }
    const isCompressed = chooseCoding(context.req.headers['accept-encoding'], ['gzip']) !== null;
    return {
      longest: Math.min(MAX_REQUEST_LENGTH, config.get(KEYS.httpHeaderBytes) - 1),
      largest: isCompressed ? MIN_COMPRESSED_BYTES - 1 : this.#largest,
    };
  }
}

/** Null where handoffs are switched off. */
export function requestHandoffs(services: HttpServices, largest: number): RequestHandoffs | null {
  return services.config.get(KEYS.httpHandoffs) ? new RequestHandoffs(services, largest) : null;
}

/**
 * Whether nothing but a change of rights ends the login: neither a token nor a session, which end
 * with their time, nor a password that another service judges.
 */
function isLasting({ headers }: HttpContext, authenticator: Authenticator): boolean {
  if (!authenticator.required) {
    return true;
  }
  const credentials = readCredentials(headers.authorization ?? '');
  return credentials?.scheme === 'basic' && !authenticator.needsPlainPassword(credentials.user);
}
