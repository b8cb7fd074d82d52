/** Creates unguessable random values and their digests, encoded as base64url. */

const RANDOM_BYTES = 32;

/** Returns 256 random bits as 43 characters. */
export function randomText(): string {
  return encodeBytes(crypto.getRandomValues(new Uint8Array(RANDOM_BYTES)));
}

/** Returns the PKCE challenge for a verifier (method S256). */
export async function challengeOf(verifier: string): Promise<string> {
  return encodeBytes(await digest('SHA-256', verifier));
}

export async function digest(algorithm: string, text: string): Promise<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  return new Uint8Array(await crypto.subtle.digest(algorithm, bytes));
}

/** Encodes bytes as base64url without padding. */
export function encodeBytes(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

export function decodeText(encoded: string): string {
  const text = atob(encoded.replaceAll('-', '+').replaceAll('_', '/'));
  return new TextDecoder().decode(Uint8Array.from(text, (char) => char.charCodeAt(0)));
}
