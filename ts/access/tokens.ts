/** REST tokens: how they look, how long they live. Keys for the line protocol. */
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';

import type { PublicKey } from '../auth/index.js';
import type { RestToken } from './principals.js';

const PREFIX = 'tdm_';
const SECRET_BYTES = 32;
/** Characters of the check sum; a token that was cut or mistyped is detected without a look-up. */
const CHECK_LENGTH = 6;
const SECRET_LENGTH = 43;

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const UNITS: Readonly<Record<string, number>> = {
  s: 1000,
  m: MINUTE_MS,
  h: 3_600_000,
  d: DAY_MS,
};
const MAX_TTL_MS = 10 * 365 * DAY_MS;

/** A new token, for its owner's eyes alone. */
export function newToken(): string {
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  return `${PREFIX}${secret}${check(secret)}`;
}

/** What is stored of a token; null for what cannot be one. */
export function tokenDigest(token: string): string | null {
  const length = PREFIX.length + SECRET_LENGTH + CHECK_LENGTH;
  if (!token.startsWith(PREFIX) || token.length !== length) {
    return null;
  }
  const secret = token.slice(PREFIX.length, PREFIX.length + SECRET_LENGTH);
  if (check(secret) !== token.slice(PREFIX.length + SECRET_LENGTH)) {
    return null;
  }
  return createHash('sha256').update(token).digest('hex');
}

function check(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url').slice(0, CHECK_LENGTH);
}

/** `30d` in milliseconds; null when it is no duration between a minute and ten years. */
export function ttlMs(text: string): number | null {
  const [, number, unit] = /^(\d{1,12})([smhd])$/.exec(text) ?? [];
  const ms = Number(number) * (UNITS[unit ?? ''] ?? Number.NaN);
  return ms >= MINUTE_MS && ms <= MAX_TTL_MS ? ms : null;
}

/** The token as it is after a login now; the same while the last change is too young. */
export function refreshed(token: RestToken, now: number, thresholdMs: number): RestToken {
  const expires = now + token.ttlMs;
  return token.refresh && expires - token.expires >= thresholdMs ? { ...token, expires } : token;
}

interface NewKey extends PublicKey {
  /** Shown once, stored nowhere. */
  readonly secret: string;
}

/** A key pair on the curve P-256, as the members of a JWK. */
export function newKey(): NewKey {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '', d = '' } = privateKey.export({ format: 'jwk' });
  return { x, y, secret: d };
}
