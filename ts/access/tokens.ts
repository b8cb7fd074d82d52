/** REST tokens (format and lifetime), and keys for the line protocol. */
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';

import type { PublicKey } from '../auth/index.js';
import type { RestToken } from './principals.js';

const PREFIX = 'tdm_';
const SECRET_BYTES = 32;
/** Length of the checksum, which detects a truncated or mistyped token without a lookup. */
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

/** Generates a token; only its owner may see it. */
export function newToken(): string {
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  return `${PREFIX}${secret}${check(secret)}`;
}

/** Returns the digest that is stored for a token; `null` if the token is malformed. */
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

/**
 * Parses a duration such as `30d` into milliseconds. Returns `null` unless it is between one minute
 * and ten years.
 */
export function ttlMs(text: string): number | null {
  const [, number, unit] = /^(\d{1,12})([smhd])$/.exec(text) ?? [];
  const ms = Number(number) * (UNITS[unit ?? ''] ?? Number.NaN);
  return ms >= MINUTE_MS && ms <= MAX_TTL_MS ? ms : null;
}

/**
 * Returns the token with the expiry extended by this login, or unchanged if the last extension was
 * too recent.
 */
export function refreshed(token: RestToken, now: number, thresholdMs: number): RestToken {
  const expires = now + token.ttlMs;
  return token.refresh && expires - token.expires >= thresholdMs ? { ...token, expires } : token;
}

interface NewKey extends PublicKey {
  /** The private key, shown once and never stored. */
  readonly secret: string;
}

/** Generates a key pair on the P-256 curve, as JWK members. */
export function newKey(): NewKey {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '', d = '' } = privateKey.export({ format: 'jwk' });
  return { x, y, secret: d };
}
