/**
 * What outlives a redirect. In the tab: the values of one request, used once. In the browser: who
 * signed in last, and that a user signed out; neither is a credential.
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
const LEFT = 'tidemark.sign-in.left';
/** Redirects without a success in between, before people have to ask for the next. */
const MOST_ATTEMPTS = 3;

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
  return attempts < MOST_ATTEMPTS;
}

export function succeeded(user: string): void {
  sessionStorage.removeItem(ATTEMPTS);
  localStorage.removeItem(LEFT);
  localStorage.setItem(LAST_USER, user);
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
}
