/**
 * Sign-in state that survives a redirect. Each tab stores the values of one request, which can be
 * used only once, and the reason for a sign-in. The browser stores the last user, the current user,
 * and whether the user has signed out. The state contains no credentials.
 */
import { texts } from '../texts.js';

/** A request to the provider that has not been answered yet. */
export interface PendingRequest {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly redirectUri: string;
  /** Query string and fragment of the requested page; never names another host. */
  readonly returnTo: string;
  /** True if the provider must not prompt the user. */
  readonly silent: boolean;
}

const REQUEST = 'tidemark.sign-in.request';
const ATTEMPTS = 'tidemark.sign-in.attempts';
const LAST_USER = 'tidemark.sign-in.last-user';
/** The key contains the path, because one origin may host several servers at different paths. */
const LEFT = `tidemark.sign-in.left ${location.pathname}`;
const USER = `tidemark.sign-in.user ${location.pathname}`;
const NOTICE = 'tidemark.sign-in.notice';
/** Entries that survive a sign-out: appearance settings and sign-in state. */
const RETAINED = [LAST_USER, LEFT, USER, REQUEST, ATTEMPTS, 'tidemark.theme', 'tidemark.zone'];
/** Matches the console's storage keys. Earlier versions stored `active-tab` without the prefix. */
const OWN_NAME = /^tidemark\.|^active-tab$/;
/**
 * Maximum number of automatic redirects without success. After that, only the user can start one.
 */
const MAX_ATTEMPTS = 3;

/** True if the user signed out in this window. */
let hasLeftHere = false;

export function rememberRequest(request: PendingRequest): void {
  sessionStorage.setItem(REQUEST, JSON.stringify(request));
}

/** Returns the pending request and removes it, so that it can be used only once. */
export function takeRequest(): PendingRequest | undefined {
  const text = sessionStorage.getItem(REQUEST);
  sessionStorage.removeItem(REQUEST);
  return text === null ? undefined : (JSON.parse(text) as PendingRequest);
}

/** Counts an automatic redirect and returns false if there were too many. */
export function mayTryAgain(): boolean {
  const attempts = Number(sessionStorage.getItem(ATTEMPTS) ?? 0);
  sessionStorage.setItem(ATTEMPTS, String(attempts + 1));
  return attempts < MAX_ATTEMPTS;
}

/** Records that the identity provider has authenticated `user`. */
export function succeeded(user: string): void {
  sessionStorage.removeItem(ATTEMPTS);
  localStorage.setItem(LAST_USER, user);
}

/** Records the signed-in user for all windows. */
export function entered(user: string): void {
  localStorage.removeItem(LEFT);
  localStorage.setItem(USER, user);
}

/** Records for all windows that no user is signed in. */
export function exited(): void {
  localStorage.removeItem(USER);
}

/** Returns the signed-in user that any window recorded last. */
export function signedInUser(): string | undefined {
  return localStorage.getItem(USER) ?? undefined;
}

/** Calls `listener` when another window may have changed the signed-in user. */
export function onUserChanged(listener: () => void): void {
  addEventListener('storage', ({ key }) => (key === null || key === USER) && listener());
  // A window that was suspended or restored from the browser's cache has missed the storage event.
  addEventListener('pageshow', listener);
  document.addEventListener('visibilitychange', listener);
}

/** Stores the reason for a sign-in, which the next page shows. */
export function leaveNotice(notice: string): void {
  sessionStorage.setItem(NOTICE, notice);
}

export function takeNotice(): string | undefined {
  const notice = sessionStorage.getItem(NOTICE) ?? undefined;
  sessionStorage.removeItem(NOTICE);
  return notice;
}

/**
 * Removes a user's data from local and session storage, except for entries whose names begin with
 * `encrypted`.
 */
export function forgetUser(encrypted: string): void {
  for (const storage of [localStorage, sessionStorage]) {
    for (const name of Object.keys(storage)) {
      const isRetained = RETAINED.includes(name) || name.startsWith(encrypted);
      if (OWN_NAME.test(name) && !isRetained) {
        storage.removeItem(name);
      }
    }
  }
}

export function lastUser(): string | undefined {
  return localStorage.getItem(LAST_USER) ?? undefined;
}

/** True if the user has signed out. Users who signed out are signed in only on request. */
export function hasLeft(): boolean {
  return localStorage.getItem(LEFT) !== null;
}

export function left(): void {
  localStorage.setItem(LEFT, '1');
  hasLeftHere = true;
}

/** Returns the reason why the user is no longer signed in. */
export function whySignedOut(): string {
  if (!hasLeft()) {
    return texts.signIn.sessionEnded;
  }
  return hasLeftHere ? texts.signIn.signedOut : texts.signIn.signedOutElsewhere;
}
