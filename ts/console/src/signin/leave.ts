/**
 * Redirects to the identity provider, using the authorization code flow with PKCE, state and nonce.
 */
import { rememberRequest } from './memory.js';
import type { Provider } from './provider.js';
import { challengeOf, randomText } from './random.js';
import { texts } from '../texts.js';

/** `none` never prompts the user; `login` always prompts, even if the provider knows the user. */
export type Prompt = 'none' | 'login';

export async function redirectToProvider(provider: Provider, prompt?: Prompt): Promise<void> {
  if (!isSecureContext) {
    throw new Error(texts.signIn.needsHttps);
  }
  const request = {
    state: randomText(),
    nonce: randomText(),
    verifier: randomText(),
    redirectUri: provider.redirectUri,
    returnTo: location.search + location.hash,
    silent: prompt === 'none',
  };
  const address = new URL(provider.authorizationEndpoint);
  const parameters: Record<string, string> = {
    response_type: 'code',
    client_id: provider.clientId,
    redirect_uri: request.redirectUri,
    scope: provider.scope,
    state: request.state,
    nonce: request.nonce,
    ...(provider.pkce
      ? { code_challenge: await challengeOf(request.verifier), code_challenge_method: 'S256' }
      : {}),
    ...(prompt ? { prompt } : {}),
  };
  for (const [name, value] of Object.entries(parameters)) {
    address.searchParams.set(name, value);
  }
  rememberRequest(request);
  location.assign(address);
}
