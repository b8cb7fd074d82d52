/**
 * Completes a sign-in after the redirect: exchanges the provider's authorization code for tokens
 * and starts a session.
 */
import { settings } from '../api/client.js';
import { beginSession, endSession } from './login.js';
import { succeeded, takeRequest } from './memory.js';
import { readProvider } from './provider.js';
import { signedIn, signedOut } from './state.js';
import { Tokens } from './tokens.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** The identity provider's response, read from the URL. */
export interface RedirectAnswer {
  readonly state: string;
  readonly code: string | undefined;
  readonly error: string | undefined;
  readonly description: string | undefined;
  /** Issuer of the response (RFC 9207). */
  readonly issuer: string | undefined;
}

/** Errors that a provider returns if it may not prompt the user but would have to. */
const NEEDS_USER = [
  'login_required',
  'interaction_required',
  'consent_required',
  'account_selection_required',
];

/**
 * Signs the user in, or marks the user as signed out if a silent sign-in is impossible. Throws
 * user-readable errors.
 */
export async function complete(answer: RedirectAnswer): Promise<void> {
  const request = takeRequest();
  if (request?.state !== answer.state) {
    throw new Error(texts.signIn.notRequested);
  }
  restoreAddress(request.returnTo);
  const provider = readProvider((await settings()).config);
  if (answer.issuer !== undefined && provider.issuer && answer.issuer !== provider.issuer) {
    throw new Error(texts.signIn.otherProvider);
  }
  if (answer.code === undefined) {
    if (request.silent && NEEDS_USER.includes(answer.error ?? '')) {
      // An empty notice prevents another automatic attempt.
      signedOut('');
      return;
    }
    const reason = answer.description ?? answer.error ?? texts.common.noReasonGiven;
    throw new Error(fill(texts.signIn.providerRefused, { reason }));
  }
  const tokens = await Tokens.ofCode(provider, answer.code, request);
  const user = await beginSession(tokens.authorization);
  if (tokens.name !== undefined && user !== undefined && tokens.name !== user) {
    await endSession({ Authorization: tokens.authorization });
    throw new Error(texts.signIn.userNamesDiffer);
  }
  tokens.use();
  const name = user ?? tokens.name ?? texts.signIn.unknownUser;
  succeeded(name);
  signedIn(name, true);
}

/** Restores the query string and fragment from before the redirect. The path never changes. */
function restoreAddress(returnTo: string): void {
  if (/^(?:\?[^#]*)?(?:#.*)?$/s.test(returnTo)) {
    history.replaceState(null, '', location.pathname + returnTo);
    // Replacing the URL does not trigger the event that activates the page.
    dispatchEvent(new HashChangeEvent('hashchange'));
  }
}
