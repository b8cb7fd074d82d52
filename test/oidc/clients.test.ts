/** A client program that signs on with its own OpenID library, obtains a token, and reads data. */
import test from 'ava';
import {
  allowInsecureRequests,
  discovery,
  fetchProtectedResource,
  genericGrantRequest,
  None,
} from 'openid-client';

import { createAuthenticator, IdentityProvider } from '../../ts/auth/index.js';
import { SILENT } from '../silent.js';
import { startHarness } from '../http/harness.js';
import { FakeDirectory, settingsOf } from './fakes.js';
import { CLIENT_ID, TestProvider } from './provider.js';

test('openid-client gets data with a valid token and the RFC error with a bad one', async (t) => {
  const provider = await TestProvider.start();
  provider.addPerson('jo', { groups: ['writers'] });
  const signOn = new IdentityProvider(settingsOf(...provider.settings()), SILENT);
  const harness = await startHarness({
    authenticator: createAuthenticator({ directory: new FakeDirectory(), provider: signOn }),
  });
  t.teardown(async () => {
    await harness.server.close();
    await provider.close();
  });
  const execute = [allowInsecureRequests];
  const issuer = new URL(provider.issuer);
  const client = await discovery(issuer, CLIENT_ID, undefined, None(), { execute });
  const tokens = await genericGrantRequest(client, 'password', {
    username: 'jo',
    password: 'secret',
    scope: 'openid',
  });
  t.is(tokens.token_type, 'bearer');
  const data = new URL('/exec?query=rows+1', harness.url);
  const answer = await fetchProtectedResource(client, tokens.access_token, data, 'GET');
  t.is(answer.status, 200);
  await answer.text();
  const error = await t.throwsAsync<Error & { cause?: unknown; status?: number }>(
    fetchProtectedResource(client, 'nonsense', data, 'GET'),
  );
  t.is(error.status, 401);
  t.like(error.cause, [{ scheme: 'bearer', parameters: { error: 'invalid_token' } }]);
});
