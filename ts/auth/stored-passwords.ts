/**
 * Passwords of the users the database keeps. Checking one costs thousands of rounds and clients
 * send it with every request, so a success is remembered for a minute, until the user's verifier
 * is another.
 */
import { createHmac, randomBytes } from 'node:crypto';

import { LRUCache } from 'lru-cache';

import type { Directory } from './directory.js';
import type { Identity } from './identity.js';
import type { ScramVerifier } from './scram-verifier.js';

const REMEMBERED_MS = 60_000;
const MOST_ENTRIES = 10_000;

interface Success {
  readonly identity: Identity;
  /** A new password is a new object, and a user who is gone or disabled has none. */
  readonly verifier: ScramVerifier | null;
  readonly until: number;
}

export class StoredPasswords {
  readonly #directory: Directory;
  readonly #now: () => number;
  readonly #key = randomBytes(32);
  readonly #successes = new LRUCache<string, Success>({ max: MOST_ENTRIES });

  constructor(directory: Directory, now: () => number = () => performance.now()) {
    this.#directory = directory;
    this.#now = now;
  }

  /** At once when the same was right a moment ago. */
  check(user: string, password: string): Identity | null | Promise<Identity | null> {
    const key = createHmac('sha256', this.#key).update(`${user}\u0000${password}`).digest('base64');
    const success = this.#successes.get(key);
    if (success !== undefined && this.#holds(user, success)) {
      return success.identity;
    }
    return this.#verify(user, password, key);
  }

  async #verify(user: string, password: string, key: string): Promise<Identity | null> {
    const verifier = this.#directory.scramVerifier(user);
    const identity = await this.#directory.verifyPassword(user, password);
    if (identity !== null) {
      this.#successes.set(key, { identity, verifier, until: this.#now() + REMEMBERED_MS });
    }
    return identity;
  }

  #holds(user: string, { until, verifier }: Success): boolean {
    return this.#now() < until && this.#directory.scramVerifier(user) === verifier;
  }
}
