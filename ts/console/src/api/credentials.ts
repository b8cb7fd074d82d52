/**
 * What requests of this page are sent with. Tokens live in this module's memory alone: nothing is
 * stored, a reload forgets them. After a login with a password the session's cookie goes along by
 * itself, and there is nothing to hold; without HTTPS it does not count, and the password's header
 * is held instead.
 */

/** Answers the `Authorization` value that counts now, renewed if it is about to end. */
type TokenSource = () => Promise<string>;

let tokens: TokenSource | undefined;
let isRefused = false;
const listeners = new Set<() => void>();
const forgotten = new Set<() => void>();

/** `undefined` forgets what was held, and ends what lasts longer than a request. */
export function useTokens(source: TokenSource | undefined): void {
  tokens = source;
  if (source === undefined) {
    for (const listener of forgotten) {
      listener();
    }
  }
}

/** Calls `listener` when the login is forgotten; the result ends that. */
export function onLoginForgotten(listener: () => void): () => void {
  forgotten.add(listener);
  return () => forgotten.delete(listener);
}

export function holdsTokens(): boolean {
  return tokens !== undefined;
}

/** The headers that say who asks; every request to the server carries them. */
export async function credentialHeaders(): Promise<Record<string, string>> {
  return tokens === undefined ? {} : { Authorization: await tokens() };
}

/** Whether the server waits for a login: until then statements would be refused one by one. */
export function awaitsLogin(): boolean {
  return isRefused;
}

export function loginTaken(): void {
  isRefused = false;
}

/** A sender of requests reports an answer 401 here. */
export function loginRefused(): void {
  isRefused = true;
  for (const listener of listeners) {
    listener();
  }
}

/** Calls `listener` whenever the server asked for a login; the result ends that. */
export function onLoginRefused(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
