/**
 * The one-user mode: `http.user` and `http.password`. One superuser, nothing between; users and
 * grants are not here yet.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

import { FailureLimiter } from './failure-limiter.js';
import type { Authenticator, Login } from './identity.js';
import { LoginSessions } from './login-sessions.js';

/** Who asks when nobody has to log in. */
const OPEN: Login = { kind: 'known', identity: { name: 'admin', kind: 'admin' } };
const UNKNOWN: Login = { kind: 'unknown' };

export function createBasicAuthenticator(
  user: string,
  password: string,
  limiter: FailureLimiter = new FailureLimiter(),
): Authenticator {
  const sessions = new LoginSessions();
  if (user === '' || password === '') {
    return { required: false, sessions, login: () => OPEN };
  }
  // Digests of equal length compare in constant time, whatever the client sends.
  const key = randomBytes(32);
  const digest = (text: string): Buffer => createHmac('sha256', key).update(text).digest();
  const expected = digest(`${user}:${password}`);
  const known: Login = { kind: 'known', identity: { name: user, kind: 'admin' } };
  return {
    required: true,
    sessions,
    login: (authorization, address) => {
      const credentials = decodeBasic(authorization ?? '');
      if (credentials === null) {
        return UNKNOWN;
      }
      const claimed = credentials.slice(0, Math.max(credentials.indexOf(':'), 0));
      const seconds = limiter.waitSeconds(claimed, address);
      if (seconds > 0) {
        return { kind: 'wait', seconds };
      }
      if (timingSafeEqual(digest(credentials), expected)) {
        limiter.succeeded(claimed, address);
        return known;
      }
      limiter.failed(claimed, address);
      return UNKNOWN;
    },
  };
}

/** `user:password`, or `null` when the header is not well-formed Basic. */
function decodeBasic(header: string): string | null {
  const match = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header.trim());
  return match?.[1] === undefined ? null : Buffer.from(match[1], 'base64').toString('utf8');
}
