/** The way out: of this server, of this page, and of the provider where it says how. */
import { credentialHeaders } from '../api/credentials.js';
import { forgetResults } from '../state/kept-results.js';
import { endSession } from './login.js';
import { left } from './memory.js';
import { hasProvider, readProvider } from './provider.js';
import { signedOut } from './state.js';
import { forgetTokens } from './tokens.js';

export async function signOut(config: Readonly<Record<string, unknown>>): Promise<void> {
  left();
  await forgetResults();
  await endSession(await credentialHeaders());
  const hint = forgetTokens();
  signedOut('You are signed out.');
  if (hint === undefined || !hasProvider(config)) {
    return;
  }
  const { endSessionEndpoint, clientId, redirectUri } = readProvider(config);
  if (endSessionEndpoint !== undefined) {
    const address = new URL(endSessionEndpoint);
    address.searchParams.set('id_token_hint', hint);
    address.searchParams.set('client_id', clientId);
    address.searchParams.set('post_logout_redirect_uri', redirectUri);
    location.assign(address);
  }
}
