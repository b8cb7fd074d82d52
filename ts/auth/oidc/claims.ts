/** Converts claims into an identity: the display name and the groups. */
import type { Identity } from '../identity.js';

export type Claims = Readonly<Record<string, unknown>>;

interface ClaimNames {
  readonly subClaim: string;
  readonly groupsClaim: string;
}

const MAX_NAME_LENGTH = 255;
const MAX_GROUP_LENGTH = 256;
const MAX_GROUPS = 1000;
/**
 * Lone surrogates, control characters and line separators, which would make a log or terminal show
 * a different name.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/**
 * Returns `null` if the claims contain no usable name. A groups claim in an unsupported form yields
 * no groups. `issuer` takes precedence over the `iss` claim.
 */
export function identityOf(
  claims: Claims,
  names: ClaimNames,
  issuer: string | null = null,
): Identity | null {
  const subject = textClaim(claims, 'sub');
  const shown = claim(claims, names.subClaim);
  const name = textClaim(claims, names.subClaim) ?? subject;
  // A name with unprintable characters is refused; no other claim is used instead.
  const isUnprintable = typeof shown === 'string' && UNPRINTABLE.test(shown);
  if (subject === null || name === null || isUnprintable) {
    return null;
  }
  return {
    kind: 'external',
    name,
    issuer: issuer ?? textClaim(claims, 'iss') ?? '',
    subject,
    externalGroups: groupsOf(claim(claims, names.groupsClaim)),
  };
}

/**
 * Returns the groups. A string is one group and is never split, because directory names contain
 * commas.
 */
function groupsOf(value: unknown): readonly string[] {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  const groups = all.filter((group): group is string => typeof group === 'string' && group !== '');
  const fits =
    all.length <= MAX_GROUPS &&
    all.every((group) => typeof group === 'string' && group.length <= MAX_GROUP_LENGTH);
  return fits ? [...new Set(groups)] : [];
}

function textClaim(claims: Claims, name: string): string | null {
  const value = claim(claims, name);
  const fits = typeof value === 'string' && value !== '' && value.length <= MAX_NAME_LENGTH;
  return fits && !UNPRINTABLE.test(value) ? value : null;
}

/** Reads own properties only, so that `constructor` is an ordinary claim. */
function claim(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : undefined;
}

/** Parses a body into claims; returns `null` unless it is a JSON object. */
export function parseClaims(text: string): Claims | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Claims) : null;
  } catch {
    return null;
  }
}

/** Returns the header and claims of a JWT without verifying them; `null` for opaque tokens. */
export function peekToken(
  token: string,
): { readonly header: Claims; readonly claims: Claims } | null {
  const segments = token.split('.');
  if (segments.length !== 3) {
    return null;
  }
  const decode = (segment = ''): Claims | null =>
    parseClaims(Buffer.from(segment, 'base64url').toString('utf8'));
  const [header, claims] = [decode(segments[0]), decode(segments[1])];
  return header === null || claims === null ? null : { header, claims };
}
