/**
 * A sender's login. The sender names its key, signs a challenge, and continues with lines. The
 * challenge is the only reply; if the signature is wrong, the connection is closed.
 */
import { randomBytes } from 'node:crypto';

import type { PublicKey } from '../auth/index.js';
import type { KeyStore } from './key-store.js';

/** Number of random bytes, which become 512 characters in base64. */
const CHALLENGE_BYTES = 384;
const MAX_NAME_BYTES = 256;
const MAX_SIGNATURE_BYTES = 256;
const LINE_FEED = 0x0a;

/** The sender's name, and the key that signed the challenge. */
export interface Proof {
  readonly name: string;
  readonly key: PublicKey;
}

/** The state after the received bytes; `remainder` contains the bytes after the login. */
type LoginStep =
  | { readonly state: 'more'; readonly send?: Buffer }
  | { readonly state: 'entered'; readonly proof: Proof; readonly remainder: Buffer }
  | { readonly state: 'refused'; readonly name: string; readonly reason: string };

export class KeyLogin {
  readonly #keys: KeyStore;
  readonly #challenge = Buffer.from(randomBytes(CHALLENGE_BYTES).toString('base64'), 'latin1');
  #name: string | null = null;
  #pending: Buffer = Buffer.alloc(0);

  constructor(keys: KeyStore) {
    this.#keys = keys;
  }

  receive(chunk: Buffer): LoginStep {
    const bytes = Buffer.concat([this.#pending, chunk]);
    const end = bytes.indexOf(LINE_FEED);
    const length = end < 0 ? bytes.length : end;
    if (length > (this.#name === null ? MAX_NAME_BYTES : MAX_SIGNATURE_BYTES)) {
      const what = this.#name === null ? 'key name' : 'signature';
      return this.#refused(`the ${what} is too long, or the sender did not log in`);
    }
    if (end < 0) {
      this.#pending = bytes;
      return { state: 'more' };
    }
    const word = bytes.toString('utf8', 0, end).replace(/\r$/, '');
    const remainder = bytes.subarray(end + 1);
    if (this.#name !== null) {
      return this.#judge(Buffer.from(word, 'base64'), remainder);
    }
    if (remainder.length > 0) {
      return this.#refused('data was sent before the challenge');
    }
    this.#name = word;
    this.#pending = Buffer.alloc(0);
    return { state: 'more', send: Buffer.concat([this.#challenge, Buffer.from('\n')]) };
  }

  #judge(signature: Buffer, remainder: Buffer): LoginStep {
    const name = this.#name ?? '';
    const key = this.#keys.proves(name, this.#challenge, signature);
    return key === null
      ? this.#refused('wrong signature or unknown key')
      : { state: 'entered', proof: { name, key }, remainder };
  }

  #refused(reason: string): LoginStep {
    return { state: 'refused', name: this.#name ?? '', reason };
  }
}
