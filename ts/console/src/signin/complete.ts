/** The way back from the identity provider: its answer becomes tokens and a session. */
import { settings } from '../api/client.js';
import { beginSession, endSession } from './login.js';
import { succeeded, takeRequest } from './memory.js';
import { readProvider } from './provider.js';
import { signedIn, signedOut } from './state.js';
import { Tokens } from './tokens.js';

/** The answer of the provider, as it stood in the address. */
export interface RedirectAnswer {
  readonly state: string;
  readonly code: string | undefined;
  readonly error: string | undefined;
  readonly description: string | undefined;
  /** Who answers (RFC 9207). */
  readonly issuer: string | undefined;
}

/** What a provider says that may not ask the user. */
const NEEDS_PEOPLE = [
  'login_required',
  'interaction_required',
  'consent_required',
  'account_selection_required',
];

/** Ends signed in, or signed out with nothing to say; throws what people should read. */
export async function complete(answer: RedirectAnswer): Promise<void> {
  const request = takeRequest();
  if (request?.state !== answer.state) {
    throw new Error('The answer of the identity provider was not asked for by this tab.');
  }
  restoreAddress(request.returnTo);
  const provider = readProvider((await settings()).config);
  if (answer.issuer !== undefined && provider.issuer && answer.issuer !== provider.issuer) {
    throw new Error('Another identity provider has answered: you are not signed in.');
  }
  if (answer.code === undefined) {
    if (request.silent && NEEDS_PEOPLE.includes(answer.error ?? '')) {
      // Handled, without a notice: it is not tried again by itself.
      signedOut('');
      return;
    }
    const said = answer.description ?? answer.error ?? 'no reason given';
    throw new Error(`The identity provider refused: ${said}.`);
  }
  const tokens = await Tokens.ofCode(provider, answer.code, request);
  const user = await beginSession(tokens.authorization);
  if (tokens.name !== undefined && user !== undefined && tokens.name !== user) {
    await endSession({ Authorization: tokens.authorization });
    throw new Error('The server was told another name than this page: you are not signed in.');
  }
  tokens.use();
  const name = user ?? tokens.name ?? 'unknown';
  succeeded(name);
  signedIn(name, true);
}

/** What the page was asked for before it left: same page, only query and fragment. */
function restoreAddress(returnTo: string): void {
  if (/^(?:\?[^#]*)?(?:#.*)?$/s.test(returnTo)) {
    history.replaceState(null, '', location.pathname + returnTo);
    // The page in front follows, which a replaced address alone does not trigger.
    dispatchEvent(new HashChangeEvent('hashchange'));
  }
}
