/**
 * What outlives a redirect. In the tab: the values of one request, used once, and why the page asks
 * for a sign-in. In the browser: who signed in last, who is signed in now, and that a user signed
 * out; none of them is a credential.
 */

/** One request to the provider, until its answer comes. */
export interface PendingRequest {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly redirectUri: string;
  /** Query and fragment of the page that was asked for: never another host. */
  readonly returnTo: string;
  /** The user was to be asked nothing. */
  readonly silent: boolean;
}

const REQUEST = 'tidemark.sign-in.request';
const ATTEMPTS = 'tidemark.sign-in.attempts';
const LAST_USER = 'tidemark.sign-in.last-user';
/** Of this server: others may be below other paths of the same origin. */
const LEFT = `tidemark.sign-in.left ${location.pathname}`;
const USER = `tidemark.sign-in.user ${location.pathname}`;
const NOTICE = 'tidemark.sign-in.notice';
/** What the browser keeps at a sign-out: appearance, and how to sign in. */
const RETAINED = [LAST_USER, LEFT, USER, REQUEST, ATTEMPTS, 'tidemark.theme', 'tidemark.zone'];
/** Earlier consoles stored names without it. */
const OWN_NAME = /^tidemark\.|^active-tab$/;
/** Redirects without a success in between, before people have to ask for the next. */
const MAX_ATTEMPTS = 3;

/** Whether the user signed out in this window. */
let hasLeftHere = false;

export function rememberRequest(request: PendingRequest): void {
  sessionStorage.setItem(REQUEST, JSON.stringify(request));
}

/** The request whose answer is here; it counts once. */
export function takeRequest(): PendingRequest | undefined {
  const text = sessionStorage.getItem(REQUEST);
  sessionStorage.removeItem(REQUEST);
  return text === null ? undefined : (JSON.parse(text) as PendingRequest);
}

/** Counts a redirect the user did not ask for; false when there were too many. */
export function mayTryAgain(): boolean {
  const attempts = Number(sessionStorage.getItem(ATTEMPTS) ?? 0);
  sessionStorage.setItem(ATTEMPTS, String(attempts + 1));
  return attempts < MAX_ATTEMPTS;
}

/** The identity provider has answered for `user`. */
export function succeeded(user: string): void {
  sessionStorage.removeItem(ATTEMPTS);
  localStorage.setItem(LAST_USER, user);
}

/** Notes for all windows who is signed in. */
export function entered(user: string): void {
  localStorage.removeItem(LEFT);
  localStorage.setItem(USER, user);
}

/** Notes for all windows that the user has signed out. */
export function exited(): void {
  localStorage.removeItem(USER);
}

/** Who is signed in, as the window says that changed it last. */
export function signedInUser(): string | undefined {
  return localStorage.getItem(USER) ?? undefined;
}

/** Calls `listener` when another window may have changed who is signed in. */
export function onUserChanged(listener: () => void): void {
  addEventListener('storage', ({ key }) => (key === null || key === USER) && listener());
  // A window that was suspended, or comes back from the browser's cache, has missed the event.
  addEventListener('pageshow', listener);
  document.addEventListener('visibilitychange', listener);
}

/** Why the page asks for a sign-in, for the page that is loaded next. */
export function leaveNotice(notice: string): void {
  sessionStorage.setItem(NOTICE, notice);
}

export function takeNotice(): string | undefined {
  const notice = sessionStorage.getItem(NOTICE) ?? undefined;
  sessionStorage.removeItem(NOTICE);
  return notice;
}

/**
 * Removes what belongs to a user from the storage of the browser and of the tab, except for names
 * that begin with `encrypted`.
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

/** After signing out a user is signed in on request alone. */
export function hasLeft(): boolean {
  return localStorage.getItem(LEFT) !== null;
}

export function left(): void {
  localStorage.setItem(LEFT, '1');
  hasLeftHere = true;
}

/** Why the user is not signed in any more. */
export function whySignedOut(): string {
  if (!hasLeft()) {
    return 'Your session has ended. Sign in again.';
  }
  return hasLeftHere ? 'You are signed out.' : 'You signed out in another window.';
}
