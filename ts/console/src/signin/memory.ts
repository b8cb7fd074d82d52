/**
 * State that outlives a redirect. Per tab: the values of one request, which can be used once, and
 * the reason for a sign-in. Per browser: the last user, the current user, and whether a user has
 * signed out. None of it is a credential.
 */
import { texts } from '../texts.js';

/** One request to the provider, until its response arrives. */
export interface PendingRequest {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly redirectUri: string;
  /** Query and fragment of the requested page: never another host. */
  readonly returnTo: string;
  /** Whether the provider must not prompt the user. */
  readonly silent: boolean;
}

const REQUEST = 'tidemark.sign-in.request';
const ATTEMPTS = 'tidemark.sign-in.attempts';
const LAST_USER = 'tidemark.sign-in.last-user';
/**
 * The key is separate for each server, because one origin may have several servers at different
 * paths.
 */
const LEFT = `tidemark.sign-in.left ${location.pathname}`;
const USER = `tidemark.sign-in.user ${location.pathname}`;
const NOTICE = 'tidemark.sign-in.notice';
/** Entries that survive a sign-out: appearance and sign-in state. */
const RETAINED = [LAST_USER, LEFT, USER, REQUEST, ATTEMPTS, 'tidemark.theme', 'tidemark.zone'];
/** Earlier versions of the console stored names without the prefix. */
const OWN_NAME = /^tidemark\.|^active-tab$/;
/** Maximum number of redirects without success; after that, only the user can request one. */
const MAX_ATTEMPTS = 3;

/** Whether the user signed out in this window. */
let hasLeftHere = false;

export function rememberRequest(request: PendingRequest): void {
  sessionStorage.setItem(REQUEST, JSON.stringify(request));
}

/** Returns the request that the current response answers; can be used only once. */
export function takeRequest(): PendingRequest | undefined {
  const text = sessionStorage.getItem(REQUEST);
  sessionStorage.removeItem(REQUEST);
  return text === null ? undefined : (JSON.parse(text) as PendingRequest);
}

/** Counts a redirect that the user did not request; returns false if there were too many. */
export function mayTryAgain(): boolean {
  const attempts = Number(sessionStorage.getItem(ATTEMPTS) ?? 0);
  sessionStorage.setItem(ATTEMPTS, String(attempts + 1));
  return attempts < MAX_ATTEMPTS;
}

/** Called when the identity provider has authenticated `user`. */
export function succeeded(user: string): void {
  sessionStorage.removeItem(ATTEMPTS);
  localStorage.setItem(LAST_USER, user);
}

/** Records the signed-in user for all windows. */
export function entered(user: string): void {
  localStorage.removeItem(LEFT);
  localStorage.setItem(USER, user);
}

/** Records for all windows that the user has signed out. */
export function exited(): void {
  localStorage.removeItem(USER);
}

/** The signed-in user, as last recorded by any window. */
export function signedInUser(): string | undefined {
  return localStorage.getItem(USER) ?? undefined;
}

/** Calls `listener` when another window may have changed the signed-in user. */
export function onUserChanged(listener: () => void): void {
  addEventListener('storage', ({ key }) => (key === null || key === USER) && listener());
  // A window that was suspended, or restored from the browser's cache, has missed the event.
  addEventListener('pageshow', listener);
  document.addEventListener('visibilitychange', listener);
}

/** Stores the reason for a sign-in, to be shown by the next page. */
export function leaveNotice(notice: string): void {
  sessionStorage.setItem(NOTICE, notice);
}

export function takeNotice(): string | undefined {
  const notice = sessionStorage.getItem(NOTICE) ?? undefined;
  sessionStorage.removeItem(NOTICE);
  return notice;
}

/**
 * Removes a user's data from the browser's and the tab's storage, except for entries whose names
 * begin with `encrypted`.
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

/** Whether the user has signed out; afterwards, users are signed in only on request. */
export function hasLeft(): boolean {
  return localStorage.getItem(LEFT) !== null;
}

export function left(): void {
  localStorage.setItem(LEFT, '1');
  hasLeftHere = true;
}

/** Why the user is no longer signed in. */
export function whySignedOut(): string {
  if (!hasLeft()) {
    return texts.signIn.sessionEnded;
  }
  return hasLeftHere ? texts.signIn.signedOut : texts.signIn.signedOutElsewhere;
}
