/**
 * Who logged in with a browser: a cookie represents the credentials until it is given back, lies
 * idle, or grows old. Known to this process alone; a restart ends them all.
 */
import { createHash, randomBytes } from 'node:crypto';

import { LRUCache } from 'lru-cache';

import type { KnownLogin } from './identity.js';

export const SESSION_COOKIE = 'qdb_session';
/** The lifetime that clients receive; the server keeps to it. */
export const SESSION_SECONDS = 30 * 24 * 3600;
const IDLE_MS = 24 * 3600 * 1000;
const TOKEN_BYTES = 32;
const MAX_SESSIONS = 10_000;

interface LoginSession {
  readonly login: KnownLogin;
  readonly since: number;
  readonly seen: number;
}

const monotonicMs = (): number => performance.now();

export class LoginSessions {
  /** By digest: what is compared must not tell of the token. */
  readonly #sessions = new LRUCache<string, LoginSession>({ max: MAX_SESSIONS });
  readonly #now: () => number;

  constructor(now: () => number = monotonicMs) {
    this.#now = now;
  }

  /** Begins a session, which lasts while its login can be renewed; the token is the client's. */
  open(login: KnownLogin): string {
    const token = randomBytes(TOKEN_BYTES).toString('base64url');
    const now = this.#now();
    this.#sessions.set(digest(token), { login, since: now, seen: now });
    return token;
  }

  /** The login of a token. Using it extends its life. */
  find(token: string): KnownLogin | null {
    const key = digest(token);
    const session = this.#sessions.get(key);
    if (session === undefined) {
      return null;
    }
    const now = this.#now();
    if (now - session.seen > IDLE_MS || now - session.since > SESSION_SECONDS * 1000) {
      this.#sessions.delete(key);
      return null;
    }
    this.#sessions.set(key, { ...session, seen: now });
    return session.login;
  }

  close(token: string): void {
    this.#sessions.delete(digest(token));
  }
}

function digest(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}
