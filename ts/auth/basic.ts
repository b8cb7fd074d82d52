/**
 * The one-user mode: `http.user` and `http.password`. One superuser, nothing between; users and
 * grants are not here yet.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

export interface Identity {
  readonly name: string;
}

export interface Authenticator {
  /** Whether requests must log in at all. */
  readonly required: boolean;
  /** The identity behind an `Authorization` value, `null` when it proves nothing. */
  identify(authorization: string | undefined): Identity | null;
}

/** Who asks when nobody has to log in. */
const OPEN_IDENTITY: Identity = { name: 'admin' };

export function createBasicAuthenticator(user: string, password: string): Authenticator {
  if (user === '' || password === '') {
    return { required: false, identify: () => OPEN_IDENTITY };
  }
  // Digests of equal length compare in constant time, whatever the client sends.
  const key = randomBytes(32);
  const digest = (text: string): Buffer => createHmac('sha256', key).update(text).digest();
  const expected = digest(`${user}:${password}`);
  return {
    required: true,
    identify: (authorization) => {
      const credentials = decodeBasic(authorization ?? '');
      const same = timingSafeEqual(digest(credentials ?? ''), expected);
      return same && credentials !== null ? { name: user } : null;
    },
  };
}

/** `user:password`, or `null` when the header is not well-formed Basic. */
function decodeBasic(header: string): string | null {
  const match = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header.trim());
  return match?.[1] === undefined ? null : Buffer.from(match[1], 'base64').toString('utf8');
}
