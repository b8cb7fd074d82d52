/**
 * The stored form of a password: a SCRAM-SHA-256 verifier (RFC 5802, RFC 7677), from which the
 * password cannot be recovered. It is used for SCRAM on the wire protocol and for Basic
 * authentication over HTTP.
 */
import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

import { type Caller, hashPool } from './hash-pool.js';

/**
 * Default number of hash iterations. They are computed at every login: by the client with SCRAM,
 * otherwise by the server.
 */
const SCRAM_ITERATIONS = 16_384;
const SALT_BYTES = 16;
const KEY_BYTES = 32;

/** The stored verifier. */
export interface ScramVerifier {
  readonly salt: Buffer;
  readonly iterations: number;
  readonly storedKey: Buffer;
  readonly serverKey: Buffer;
}

const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const hash = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest();

/**
 * Creates a verifier for a password that the server sets. Passwords that clients send are checked
 * with `fitsVerifier`.
 */
export async function scramVerifier(
  password: string,
  salt: Buffer = randomBytes(SALT_BYTES),
  iterations = SCRAM_ITERATIONS,
): Promise<ScramVerifier> {
  const text = password.normalize('NFKC');
  const salted = await promisify(pbkdf2)(text, salt, iterations, KEY_BYTES, 'sha256');
  return verifierOf(salted, salt, iterations);
}

function verifierOf(salted: Buffer, salt: Buffer, iterations: number): ScramVerifier {
  const storedKey = hash(hmac(salted, 'Client Key'));
  return { salt, iterations, storedKey, serverKey: hmac(salted, 'Server Key') };
}

/**
 * Returns whether the password matches the verifier; takes the same time for every password.
 * Rejects with `LoginsBusy` or `CallerDisconnected`.
 */
export async function fitsVerifier(
  { salt, iterations, storedKey }: ScramVerifier,
  password: string,
  caller: Caller,
): Promise<boolean> {
  const request = { password: password.normalize('NFKC'), salt, iterations, keyBytes: KEY_BYTES };
  const salted = await hashPool.hash(request, caller);
  return timingSafeEqual(verifierOf(salted, salt, iterations).storedKey, storedKey);
}

/**
 * Returns salts that are derived from the name and a secret, whether or not a user with this name
 * exists. The salts never change, so a client that does not know the secret cannot tell whether the
 * user exists.
 */
export class NameSalts {
  readonly #secret: Buffer;

  constructor(secret: Buffer = randomBytes(KEY_BYTES)) {
    this.#secret = secret;
  }

  of(name: string): Buffer {
    return hmac(this.#secret, `salt ${name}`).subarray(0, SALT_BYTES);
  }

  /** Returns a verifier that no password matches. */
  mock(name: string, iterations = SCRAM_ITERATIONS): ScramVerifier {
    const storedKey = hmac(this.#secret, `stored ${name}`);
    const serverKey = hmac(this.#secret, `server ${name}`);
    return { salt: this.of(name), iterations, storedKey, serverKey };
  }

  /**
   * Returns one of `choices`, which must not be empty. A name always gets the same choice as long
   * as `choices` is unchanged.
   */
  choose(name: string, choices: readonly number[]): number {
    const at = hmac(this.#secret, `choice ${name}`).readUInt32BE(0) / 2 ** 32;
    return choices[Math.floor(at * choices.length)] ?? SCRAM_ITERATIONS;
  }
}
