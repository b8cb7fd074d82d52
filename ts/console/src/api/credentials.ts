/**
 * Credentials for the page's requests. Tokens are held only in memory and are lost on reload.
 *
 * After a password login, the browser sends a session cookie and this module holds no credentials.
 * Without HTTPS the cookie does not work, so this module holds the `Authorization` header instead.
 */

/**
 * Returns the current value of the `Authorization` header. A token is renewed shortly before it
 * expires.
 */
type TokenSource = () => Promise<string>;

let tokens: TokenSource | undefined;
let isRefused = false;
const listeners = new Set<() => void>();
const forgotten = new Set<() => void>();

/** Sets the token source. `undefined` discards the credentials and ends open streams. */
export function useTokens(source: TokenSource | undefined): void {
  tokens = source;
  if (source === undefined) {
    for (const listener of forgotten) {
      listener();
    }
  }
}

/** Calls `listener` when the credentials are discarded. Returns a function that unsubscribes. */
export function onLoginForgotten(listener: () => void): () => void {
  forgotten.add(listener);
  return () => forgotten.delete(listener);
}

export function hasTokens(): boolean {
  return tokens !== undefined;
}

/** Returns the headers that authenticate the user. Every request to the server includes them. */
export async function credentialHeaders(): Promise<Record<string, string>> {
  return tokens === undefined ? {} : { Authorization: await tokens() };
}

/** True if the user must log in first. Until then, the server would refuse every statement. */
export function awaitsLogin(): boolean {
  return isRefused;
}

export function loginAccepted(): void {
  isRefused = false;
}

/** Called for every response with status 401. */
export function loginRefused(): void {
  isRefused = true;
  for (const listener of listeners) {
    listener();
  }
}

/** Calls `listener` whenever the server requires a login. Returns a function that unsubscribes. */
export function onLoginRefused(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
