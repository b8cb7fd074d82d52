/**
 * Browser sessions: a cookie represents the credentials until sign-out, idle timeout or expiry.
 * Sessions exist only in this process, so a restart ends all of them.
 */
import { createHash, randomBytes } from 'node:crypto';

import { LRUCache } from 'lru-cache';

import type { KnownLogin } from './identity.js';

export const SESSION_COOKIE = 'qdb_session';
/** Lifetime of the cookie, which the server also enforces. */
export const SESSION_SECONDS = 30 * 24 * 3600;
const IDLE_MS = 24 * 3600 * 1000;
const TOKEN_BYTES = 32;
const MAX_SESSIONS = 10_000;

interface LoginSession {
  readonly login: KnownLogin;
  readonly since: number;
  readonly lastUsed: number;
}

const monotonicMs = (): number => performance.now();

export class LoginSessions {
  /** Keyed by digest, so that lookup times reveal nothing about the token. */
  readonly #sessions = new LRUCache<string, LoginSession>({ max: MAX_SESSIONS });
  readonly #now: () => number;

  constructor(now: () => number = monotonicMs) {
    this.#now = now;
  }

  /**
   * Opens a session, which lasts as long as its login can be renewed. Returns the client's token.
   */
  open(login: KnownLogin): string {
    const token = randomBytes(TOKEN_BYTES).toString('base64url');
    const now = this.#now();
    this.#sessions.set(digest(token), { login, since: now, lastUsed: now });
    return token;
  }

  /** Returns the login for a token, and extends the session. */
  find(token: string): KnownLogin | null {
    const key = digest(token);
    const session = this.#sessions.get(key);
    if (session === undefined) {
      return null;
    }
    const now = this.#now();
    if (now - session.lastUsed > IDLE_MS || now - session.since > SESSION_SECONDS * 1000) {
      this.#sessions.delete(key);
      return null;
    }
    this.#sessions.set(key, { ...session, lastUsed: now });
    return session.login;
  }

  close(token: string): void {
    this.#sessions.delete(digest(token));
  }
}

function digest(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}
