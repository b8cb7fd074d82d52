/**
 * Senders' public keys: those of stored users, and those from the file in `line.tcp.auth.db.path`.
 */
import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto';

import type { PublicKey } from '../auth/index.js';

/** The only supported key type. */
const KIND = 'ec-p-256-sha256';
/** Size in bytes of a signature in plain form, which is two 256-bit numbers instead of DER. */
const PLAIN_SIGNATURE_BYTES = 64;
const COORDINATE = /^[\w-]{42,43}={0,1}$/;

/** Reports an invalid key file; the message names the line. */
export class KeyFileError extends Error {
  override readonly name = 'KeyFileError';
}

/** Parses lines `name ec-p-256-sha256 x y`; `#` starts a comment. Throws `KeyFileError`. */
export function readKeys(text: string): ReadonlyMap<string, PublicKey> {
  const keys = new Map<string, PublicKey>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const content = line.replace(/#.*$/, '').trim();
    if (content === '') {
      continue;
    }
    const [name = '', kind, x = '', y = '', ...more] = content.split(/\s+/);
    const problem = (reason: string): KeyFileError =>
      new KeyFileError(`line ${index + 1}: ${reason}`);
    if (kind !== KIND || more.length > 0 || !COORDINATE.test(x) || !COORDINATE.test(y)) {
      throw problem(`expected 'name ${KIND} x y' with x and y in base64url`);
    }
    if (keys.has(name)) {
      throw problem(`duplicate name '${name}'`);
    }
    try {
      keyObject({ x, y });
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error);
      throw problem(`x and y are not a point on the curve: ${detail}`);
    }
    keys.set(name, { x, y });
  }
  return keys;
}

/** Looks up the key for a name. */
type KeySource = (name: string) => PublicKey | null;

export class KeyStore {
  readonly #sources: readonly KeySource[];
  /** A random key for unknown names, so that senders cannot detect whether a name exists. */
  readonly #decoyKey = newPublicKey();

  constructor(...sources: readonly KeySource[]) {
    this.#sources = sources;
  }

  /**
   * Returns the key of `name` that signed `challenge`, if any. Takes the same time for unknown
   * names.
   */
  proves(name: string, challenge: Buffer, signature: Buffer): PublicKey | null {
    let proved: PublicKey | null = null;
    for (const keyOf of this.#sources) {
      const known = keyOf(name);
      const isRight = fits(known ?? this.#decoyKey, challenge, signature);
      proved = isRight && known !== null ? known : proved;
    }
    return proved;
  }

  /** Whether `key` is still a key of `name`. */
  has(name: string, key: PublicKey): boolean {
    return this.#sources.some((keyOf) => {
      const now = keyOf(name);
      return now?.x === key.x && now.y === key.y;
    });
  }
}

function fits(key: PublicKey, challenge: Buffer, signature: Buffer): boolean {
  const dsaEncoding = signature.length === PLAIN_SIGNATURE_BYTES ? 'ieee-p1363' : 'der';
  try {
    return verify('sha256', challenge, { key: keyObject(key), dsaEncoding }, signature);
  } catch {
    return false; // no signature at all
  }
}

function keyObject({ x, y }: PublicKey): KeyObject {
  return createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' });
}

function newPublicKey(): PublicKey {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  return { x, y };
}
