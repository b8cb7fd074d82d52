/** Public keys of senders, from a file as QuestDB's `line.tcp.auth.db.path` has it. */
import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto';

/** The only kind of key that there is. */
const KIND = 'ec-p-256-sha256';
/** Of a signature that is not DER: two numbers of 256 bits. */
const PLAIN_SIGNATURE_BYTES = 64;
const COORDINATE = /^[\w-]{42,43}={0,1}$/;

/** A file of keys cannot be used; the message says which line is wrong. */
export class KeyFileError extends Error {
  override readonly name = 'KeyFileError';
}

export class KeyBook {
  readonly #keys: ReadonlyMap<string, KeyObject>;
  /** For names that are not known: their senders must not notice it. */
  readonly #other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey;

  /** `text`: lines `name ec-p-256-sha256 x y`; `#` begins a comment. Throws `KeyFileError`. */
  constructor(text: string) {
    const keys = new Map<string, KeyObject>();
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
        keys.set(name, createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' }));
      } catch (error) {
        const detail = error instanceof Error ? error.message : String(error);
        throw problem(`x and y are no point of the curve: ${detail}`);
      }
    }
    this.#keys = keys;
  }

  get size(): number {
    return this.#keys.size;
  }

  /** Whether the owner of the key `name` signed `challenge`; takes as long for unknown names. */
  proves(name: string, challenge: Buffer, signature: Buffer): boolean {
    const known = this.#keys.get(name);
    const key = known ?? this.#other;
    const dsaEncoding = signature.length === PLAIN_SIGNATURE_BYTES ? 'ieee-p1363' : 'der';
    try {
      return verify('sha256', challenge, { key, dsaEncoding }, signature) && known !== undefined;
    } catch {
      return false; // no signature at all
    }
  }
}
