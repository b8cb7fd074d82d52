/**
 * Password checks for stored users. A check costs thousands of iterations, and clients send the
 * password with every request. A success is therefore cached for a minute, unless the user's
 * verifier changes.
 */
import { createHmac, randomBytes } from 'node:crypto';

import { LRUCache } from 'lru-cache';

import type { Directory } from './directory.js';
import { type Caller, CallerDisconnected, hashPool } from './hash-pool.js';
import type { Identity } from './identity.js';
import type { ScramVerifier } from './scram-verifier.js';

const REMEMBERED_MS = 60_000;
const MAX_ENTRIES = 10_000;

interface Success {
  readonly identity: Identity;
  /**
   * Compared by object identity: a new password creates a new object, and a deleted or disabled
   * user has none.
   */
  readonly verifier: ScramVerifier | null;
  readonly until: number;
}

interface Check {
  readonly key: string;
  readonly caller: Caller;
}

export class StoredPasswords {
  readonly #directory: Directory;
  readonly #now: () => number;
  readonly #key = randomBytes(32);
  readonly #successes = new LRUCache<string, Success>({ max: MAX_ENTRIES });
  /** Checks in progress: concurrent requests with the same password share one check. */
  readonly #checking = new Map<string, Promise<Identity | null>>();

  constructor(directory: Directory, now: () => number = () => performance.now()) {
    this.#directory = directory;
    this.#now = now;
  }

  /** Checks a password; synchronous if the same password was verified recently. */
  check(
    user: string,
    password: string,
    caller: Caller,
  ): Identity | null | Promise<Identity | null> {
    const key = createHmac('sha256', this.#key).update(`${user}\u0000${password}`).digest('base64');
    const success = this.#successes.get(key);
    if (success !== undefined && this.#isCurrent(user, success)) {
      return success.identity;
    }
    return this.#joined(user, password, { key, caller });
  }

  async #joined(user: string, password: string, by: Check): Promise<Identity | null> {
    for (;;) {
      const under = this.#checking.get(by.key);
      const checked = under ?? this.#begin(user, password, by);
      try {
        return await checked;
      } catch (error) {
        // The client that started the check disconnected, but others may still be waiting for the
        // result.
        if (under === undefined || !(error instanceof CallerDisconnected)) {
          throw error;
        }
      }
    }
  }

  #begin(user: string, password: string, by: Check): Promise<Identity | null> {
    const checked = this.#verify(user, password, by).finally(() => this.#checking.delete(by.key));
    this.#checking.set(by.key, checked);
    return checked;
  }

  async #verify(user: string, password: string, { key, caller }: Check): Promise<Identity | null> {
    const verifier = this.#directory.scramVerifier(user);
    const identity = await this.#directory.verifyPassword(user, password, caller);
    hashPool.judge(caller, identity !== null);
    if (identity !== null) {
      this.#successes.set(key, { identity, verifier, until: this.#now() + REMEMBERED_MS });
    }
    return identity;
  }

  #isCurrent(user: string, { until, verifier }: Success): boolean {
    return this.#now() < until && this.#directory.scramVerifier(user) === verifier;
  }
}
