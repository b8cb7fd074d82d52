/**
 * Validates an ID token. The token comes directly from the token endpoint over TLS, which replaces
 * the signature check (OpenID Connect Core, 3.1.3.7). The server checks the signature of every
 * token that it receives.
 */
import { decodeText, digest, encodeBytes } from './random.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export type Claims = Readonly<Record<string, unknown>>;

export interface Expected {
  readonly issuer: string | undefined;
  readonly clientId: string;
  /** Nonce of the request; `undefined` for a token refresh. */
  readonly nonce: string | undefined;
  readonly accessToken: string;
  /** Current time in seconds since 1970. */
  readonly now: number;
}

const SKEW_SECONDS = 30;

/** Returns the claims of a valid token. Throws an error with the reason if the token is invalid. */
export async function readIdToken(token: string, expected: Expected): Promise<Claims> {
  const [head = '', body = '', signature] = token.split('.');
  let header: Claims;
  let claims: Claims;
  try {
    header = JSON.parse(decodeText(head)) as Claims;
    claims = JSON.parse(decodeText(body)) as Claims;
  } catch (cause) {
    throw refused(texts.signIn.tokenMalformed, cause);
  }
  if (signature === undefined || signature === '' || header['alg'] === 'none') {
    throw refused(texts.signIn.tokenNotSigned);
  }
  checkClaims(claims, expected);
  const hash = claims['at_hash'];
  if (hash !== undefined && hash !== (await halfDigest(header['alg'], expected.accessToken))) {
    throw refused(texts.signIn.tokenOfOtherAccessToken);
  }
  return claims;
}

function checkClaims(claims: Claims, { issuer, clientId, nonce, now }: Expected): void {
  if (issuer !== undefined && claims['iss'] !== issuer) {
    throw refused(texts.signIn.tokenOfOtherIssuer);
  }
  const audience = [claims['aud']].flat();
  const party = claims['azp'];
  if (!audience.includes(clientId) || (party !== undefined && party !== clientId)) {
    throw refused(texts.signIn.tokenForOtherApplication);
  }
  if (typeof claims['sub'] !== 'string' || claims['sub'] === '') {
    throw refused(texts.signIn.tokenNamesNoUser);
  }
  const expires = claims['exp'];
  if (typeof expires !== 'number' || expires + SKEW_SECONDS <= now) {
    throw refused(texts.signIn.tokenExpired);
  }
  if (nonce !== undefined && claims['nonce'] !== nonce) {
    throw refused(texts.signIn.tokenOfOtherRequest);
  }
}

async function halfDigest(algorithm: unknown, text: string): Promise<string> {
  const size = /(?:256|384|512)$/.exec(String(algorithm))?.[0] ?? '512';
  const bytes = await digest(`SHA-${size}`, text);
  return encodeBytes(bytes.slice(0, bytes.length / 2));
}

function refused(what: string, cause?: unknown): Error {
  return new Error(fill(texts.signIn.tokenRefused, { reason: what }), { cause });
}
