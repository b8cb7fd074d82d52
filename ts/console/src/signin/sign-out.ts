/** Signs the user out of the server, this page and, if supported, the identity provider. */
import { credentialHeaders } from '../api/credentials.js';
import { endPage, saveInTime } from './end.js';
import { endSession } from './login.js';
import { left, whySignedOut } from './memory.js';
import { hasProvider, readProvider } from './provider.js';
import { forgetTokens } from './tokens.js';
import type { Workspace } from '../state/workspace.js';
import type { Server } from '../state/server.js';

export async function signOut(workspace: Workspace, server: Server, user: string): Promise<void> {
  left();
  await saveInTime(workspace);
  await endSession(await credentialHeaders());
  const address = providerSignOutUrl(server.settings()?.config ?? {}, forgetTokens());
  const ending = { workspace, user, notice: whySignedOut() };
  await endPage(address ? { ...ending, address } : ending);
}

/** Returns the URL at which the provider ends its session and redirects back to the console. */
function providerSignOutUrl(
  config: Readonly<Record<string, unknown>>,
  hint: string | undefined,
): URL | undefined {
  if (hint === undefined || !hasProvider(config)) {
    return undefined;
  }
  const { endSessionEndpoint, clientId, redirectUri } = readProvider(config);
  if (endSessionEndpoint === undefined) {
    return undefined;
  }
  const address = new URL(endSessionEndpoint);
  address.searchParams.set('id_token_hint', hint);
  address.searchParams.set('client_id', clientId);
  address.searchParams.set('post_logout_redirect_uri', redirectUri);
  return address;
}
