/**
 * What is kept of a password: the verifier of SCRAM-SHA-256 (RFC 5802, RFC 7677), from which the
 * password cannot be read. The wire protocol's exchange and HTTP's Basic login use the same one.
 */
import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

/** Every login pays this; with SCRAM on the client's side. */
export const SCRAM_ITERATIONS = 16_384;
const SALT_BYTES = 16;
const KEY_BYTES = 32;

/** What the server keeps of a password. */
export interface ScramVerifier {
  readonly salt: Buffer;
  readonly iterations: number;
  readonly storedKey: Buffer;
  readonly serverKey: Buffer;
}

const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const hash = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest();

export async function scramVerifier(
  password: string,
  salt: Buffer = randomBytes(SALT_BYTES),
  iterations = SCRAM_ITERATIONS,
): Promise<ScramVerifier> {
  const text = password.normalize('NFKC');
  const salted = await promisify(pbkdf2)(text, salt, iterations, KEY_BYTES, 'sha256');
  const storedKey = hash(hmac(salted, 'Client Key'));
  return { salt, iterations, storedKey, serverKey: hmac(salted, 'Server Key') };
}

/** Whether the verifier is this password's; takes as long for every password. */
export async function fitsVerifier(verifier: ScramVerifier, password: string): Promise<boolean> {
  const { salt, iterations, storedKey } = verifier;
  const tried = await scramVerifier(password, salt, iterations);
  return timingSafeEqual(tried.storedKey, storedKey);
}

const MOCK_KEY = randomBytes(32);

/** A verifier no password fits; the salt of a name is always the same. */
export function mockVerifier(user: string, iterations = SCRAM_ITERATIONS): ScramVerifier {
  const salt = hmac(MOCK_KEY, `salt ${user}`).subarray(0, SALT_BYTES);
  const storedKey = hmac(MOCK_KEY, `stored ${user}`);
  return { salt, iterations, storedKey, serverKey: hmac(MOCK_KEY, `server ${user}`) };
}
