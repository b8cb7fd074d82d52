/** Public keys of senders: of users, and from a file as `line.tcp.auth.db.path` names it. */
import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto';

import type { PublicKey } from '../auth/index.js';

/** The only kind of key that there is. */
const KIND = 'ec-p-256-sha256';
/** Of a signature that is not DER: two numbers of 256 bits. */
const PLAIN_SIGNATURE_BYTES = 64;
const COORDINATE = /^[\w-]{42,43}={0,1}$/;

/** A file of keys cannot be used; the message says which line is wrong. */
export class KeyFileError extends Error {
  override readonly name = 'KeyFileError';
}

/** `text`: lines `name ec-p-256-sha256 x y`; `#` begins a comment. Throws `KeyFileError`. */
export function readKeys(text: string): ReadonlyMap<string, PublicKey> {
  const keys = new Map<string, PublicKey>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const words = line.replace(/#.*$/, '').trim();
    if (words === '') {
      continue;
    }
    const [name = '', kind, x = '', y = '', ...more] = words.split(/\s+/);
    const problem = (reason: string): KeyFileError =>
      new KeyFileError(`line ${index + 1}: ${reason}`);
    if (kind !== KIND || more.length > 0 || !COORDINATE.test(x) || !COORDINATE.test(y)) {
      throw problem(`expected 'name ${KIND} x y' with x and y in base64url`);
    }
    if (keys.has(name)) {
      throw problem(`the name '${name}' is there twice`);
    }
    try {
      keyObject({ x, y });
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error);
      throw problem(`x and y are no point of the curve: ${detail}`);
    }
    keys.set(name, { x, y });
  }
  return keys;
}

/** Where the key of a name is looked up. */
type KeySource = (name: string) => PublicKey | null;

export class KeyBook {
  readonly #sources: readonly KeySource[];
  /** For names that are not known: their senders must not notice it. */
  readonly #other = newPublicKey();

  constructor(...sources: readonly KeySource[]) {
    this.#sources = sources;
  }

  /** With which key of `name` `challenge` was signed; takes as long for unknown names. */
  proves(name: string, challenge: Buffer, signature: Buffer): PublicKey | null {
    let proved: PublicKey | null = null;
    for (const keyOf of this.#sources) {
      const known = keyOf(name);
      const isRight = fits(known ?? this.#other, challenge, signature);
      proved = isRight && known !== null ? known : proved;
    }
    return proved;
  }

  /** Whether `key` still is one of `name`. */
  holds(name: string, key: PublicKey): boolean {
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
