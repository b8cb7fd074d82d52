/**
 * Credentials of this page's requests. Tokens exist only in this module's memory: they are not
 * stored, and are lost on reload. After a password login the browser sends the session cookie, and
 * this module holds no credentials. Without HTTPS the cookie does not work, and this module holds
 * the password's `Authorization` header instead.
 */

/** Returns the current `Authorization` value, renewed shortly before it expires. */
type TokenSource = () => Promise<string>;

let tokens: TokenSource | undefined;
let isRefused = false;
const listeners = new Set<() => void>();
const forgotten = new Set<() => void>();

/** Sets the token source; `undefined` forgets the credentials and ends long-lived streams. */
export function useTokens(source: TokenSource | undefined): void {
  tokens = source;
  if (source === undefined) {
    for (const listener of forgotten) {
      listener();
    }
  }
}

/** Calls `listener` when the login is forgotten; returns a function that unsubscribes. */
export function onLoginForgotten(listener: () => void): () => void {
  forgotten.add(listener);
  return () => forgotten.delete(listener);
}

export function hasTokens(): boolean {
  return tokens !== undefined;
}

/** Headers that authenticate the user; every request to the server carries them. */
export async function credentialHeaders(): Promise<Record<string, string>> {
  return tokens === undefined ? {} : { Authorization: await tokens() };
}

/** Whether a login is pending: until then the server would refuse every statement. */
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

/** Calls `listener` whenever the server requests a login; returns a function that unsubscribes. */
export function onLoginRefused(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
