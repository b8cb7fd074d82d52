/** Single sign-on through a provider in Chromium, end to end. */
import { setTimeout as sleep } from 'node:timers/promises';

import type { ExecutionContext } from 'ava';

import type { TestServer } from '../golden/server.js';
import { TestProvider } from '../oidc/provider.js';
import { until } from '../until.js';
import { browserTest, openBrowser, BrowserUser, serverFor } from './user.js';

openBrowser();

const ADMIN = { Authorization: `Basic ${btoa('admin:quest')}` };

/** Starts an identity provider, and a server on which members of `writers` may read. */
async function startServers(
  t: ExecutionContext,
  options: { readonly accessTokenSeconds?: number; readonly set?: readonly string[] } = {},
): Promise<{ provider: TestProvider; server: TestServer }> {
  const provider = await TestProvider.start(options);
  t.teardown(() => provider.close());
  provider.addPerson('jo', { groups: ['writers'] });
  provider.addPerson('al');
  const set = [
    'acl.enabled=true',
    ...provider.settings('acl.oidc.cache.ttl=1s', ...(options.set ?? [])),
  ];
  const server = await serverFor(t, set);
  await provider.allowRedirects([`${server.url}/`]);
  for (const statement of [
    'create table prices (x int)',
    'insert into prices values (7)',
    "create group readers with external alias 'writers'",
    'grant http to readers',
    'grant select on all tables to readers',
  ]) {
    const address = `${server.url}/exec?query=${encodeURIComponent(statement)}`;
    const response = await fetch(address, { headers: ADMIN });
    t.is(response.status, 200, `${statement}: ${await response.text()}`);
  }
  return { provider, server };
}

browserTest('signing on redirects to the provider, redeems the code and shows data', async (t) => {
  const { provider, server } = await startServers(t);
  const jo = await BrowserUser.arrive(t);
  await jo.page.goto(`${server.url}/?shared=query#sql`);
  await jo.isOut();
  await jo.page.locator('[data-action=sso]').click();
  await jo.logIn('jo');
  await jo.isIn('jo');

  const parameters = jo.requests.find(({ pathname }) => pathname === '/auth')?.searchParams;
  t.is(parameters?.get('response_type'), 'code');
  t.is(parameters?.get('code_challenge_method'), 'S256');
  t.is(parameters?.get('redirect_uri'), `${server.url}/`);
  for (const name of ['state', 'nonce', 'code_challenge']) {
    t.regex(parameters?.get(name) ?? '', /^[\w-]{43}$/, name);
  }
  t.is(
    jo.page.url(),
    `${server.url}/?shared=query#sql`,
    'the code was removed from the URL, and the original URL restored',
  );
  t.is(await jo.query('select x from prices'), 'done');
  t.true(provider.count('/me') > 0);
  const stored = await jo.stored();
  t.notRegex(stored, /verifier|nonce|token|eyJ/, stored);

  // The provider removes the group. The server notices once its cached response expires.
  provider.setGroups('jo', []);
  await until(
    async () => (await jo.query('select x from prices')) === 'failed',
    'the query is refused',
  );
  t.is(await jo.query('select x from prices'), 'failed');
  provider.setGroups('jo', ['writers']);
  await until(
    async () => (await jo.query('select x from prices')) === 'done',
    'the user has access again',
  );
  t.is(await jo.query('select x from prices'), 'done');

  await jo.page.locator('[data-action=sign-out]').click();
  await jo.page.getByRole('button', { name: /sign me out/i }).click();
  await jo.isOut();
  await jo.page.reload();
  await jo.isOut();
  t.is(await jo.page.locator('[data-action=sso]').innerText(), 'Continue as jo');
  t.deepEqual(jo.complaints, []);
});

browserTest('exports use the access token, and after a reload the session', async (t) => {
  const { server } = await startServers(t);
  const jo = await BrowserUser.arrive(t);
  await jo.page.goto(`${server.url}/#sql`);
  await jo.page.locator('[data-action=sso]').click();
  await jo.logIn('jo');
  await jo.isIn('jo');
  await jo.page.evaluate('delete globalThis.showSaveFilePicker');
  for (const credential of ['token', 'session']) {
    t.is(await jo.query('select x from prices'), 'done');
    t.is((await jo.export('CSV')).toString(), '"x"\r\n7\r\n', credential);
    t.like(JSON.parse((await jo.export('JSON')).toString()), { dataset: [[7]] }, credential);
    t.is((await jo.export('Parquet')).subarray(0, 4).toString(), 'PAR1', credential);
    await jo.page.reload();
    await jo.isIn('jo');
    await jo.page.evaluate('delete globalThis.showSaveFilePicker');
  }
  t.false(jo.requests.some(({ search }) => /token|eyJ/.test(search.replace(/code=[^&]*/, ''))));
  t.deepEqual(jo.complaints, []);
});

browserTest('an imported table is owned by the chosen group', async (t) => {
  const { server } = await startServers(t);
  for (const statement of ['grant create table to readers', 'grant select, insert on readers']) {
    await fetch(`${server.url}/exec?query=${encodeURIComponent(statement)}`, { headers: ADMIN });
  }
  const jo = await BrowserUser.arrive(t);
  await jo.page.goto(`${server.url}/#import`);
  await jo.page.locator('[data-action=sso]').click();
  await jo.logIn('jo');
  await jo.isIn('jo');
  const buffer = Buffer.from('city,v\nOslo,1\nRome,2\nBern,3\n');
  const file = { name: 'few.csv', mimeType: 'text/csv', buffer };
  await jo.page.locator('input[type="file"]').setInputFiles(file);
  await jo.page.locator('[data-action="import"]').click();
  await jo.page.locator('.import-note', { hasText: 'missing owner' }).waitFor();
  await jo.page.getByLabel('Owner').fill('readers');
  await jo.page.locator('[data-action="import"]').click();
  await jo.page.getByRole('heading', { name: 'few.csv was imported' }).waitFor();
  await jo.page.getByRole('button', { name: 'Show rows' }).click();
  await jo.page.locator('.summary[data-state="done"]').waitFor();
  t.deepEqual(jo.complaints, []);
});

browserTest(
  'a shared link survives the sign-on; an expired session does not redirect',
  async (t) => {
    const { provider, server } = await startServers(t);
    const jo = await BrowserUser.arrive(t);
    await jo.page.goto(`${server.url}/#query=select%20x%20from%20prices`);
    await jo.page.locator('[data-action=sso]').click();
    await jo.logIn('jo');
    await jo.isIn('jo');
    t.is(await jo.page.locator('.cm-content').innerText(), 'select x from prices');
    await jo.page.locator('.summary[data-state="done"]').waitFor();
    const authRequests = provider.count('/auth');
    await jo.page.route('**/exec?*', (route) => route.fulfill({ status: 401, body: '{}' }));
    await jo.page.locator('.cm-content').click();
    await jo.page.keyboard.press('Control+Enter');
    await jo.isOut();
    t.regex(await jo.problem(), /session has ended/);
    t.is(await jo.page.locator('.cm-content').count(), 0);
    await jo.page.waitForLoadState('networkidle');
    t.is(provider.count('/auth'), authRequests);
  },
);

browserTest('tokens are renewed only once, before they expire', async (t) => {
  const { provider, server } = await startServers(t, { accessTokenSeconds: 10 });
  const jo = await BrowserUser.arrive(t);
  await jo.page.goto(`${server.url}/#sql`);
  await jo.page.locator('[data-action=sso]').click();
  await jo.logIn('jo');
  await jo.isIn('jo');
  const first = provider.count('/token');
  t.is(first, 1);
  const end = Date.now() + 60_000;
  while (provider.count('/token') < 3 && Date.now() < end) {
    t.is(await jo.query('select x from prices'), 'done');
    await sleep(200);
  }
  t.is(provider.count('/token'), 3);
  await jo.isIn('jo');
});

browserTest('a reload does not require a new sign-on', async (t) => {
  const { provider, server } = await startServers(t);
  const jo = await BrowserUser.arrive(t);
  await jo.page.goto(`${server.url}/#sql`);
  await jo.page.locator('[data-action=sso]').click();
  await jo.logIn('jo');
  await jo.isIn('jo');
  await jo.page.reload();
  await jo.isIn('jo');
  t.is(provider.count('/auth'), 1, 'the session of this server continues');
  await jo.forgetServer(`${server.url}/?again#sql`);
  await jo.isIn('jo');
  const silent = jo.requests.filter(({ pathname }) => pathname === '/auth').at(-1);
  t.is(silent?.searchParams.get('prompt'), 'none');
});

browserTest('a user without groups is signed in without rights, with a notice', async (t) => {
  const { server } = await startServers(t);
  const al = await BrowserUser.arrive(t);
  await al.page.goto(server.url);
  await al.page.locator('[data-action=sso]').click();
  await al.logIn('al');
  await al.isOut();
  t.regex(await al.problem(), /do not have permission to use this server.*Access denied \[HTTP\]/);
});

browserTest('an authorization response that was not requested is refused', async (t) => {
  const { provider, server } = await startServers(t);
  const eve = await BrowserUser.arrive(t);
  await eve.page.goto(`${server.url}/?code=stolen&state=guessed&iss=${provider.issuer}`);
  await eve.isOut();
  t.regex(await eve.problem(), /did not request the response/);
  t.is(eve.page.url(), `${server.url}/`);
  t.is(provider.count('/token'), 0);
});

browserTest('an authorization response from a different provider is refused', async (t) => {
  const { provider, server } = await startServers(t);
  const jo = await BrowserUser.arrive(t);
  await jo.page.goto(server.url);
  provider.rewriteLocation = (location) =>
    location.replace(encodeURIComponent(provider.issuer), 'https%3A%2F%2Fevil.example');
  await jo.page.locator('[data-action=sso]').click();
  await jo.logIn('jo');
  await jo.isOut();
  t.regex(await jo.problem(), /A different identity provider responded/);
  t.is(provider.count('/token'), 0);
});

browserTest('a provider without S256 is refused', async (t) => {
  const provider = await TestProvider.start();
  t.teardown(() => provider.close());
  const document = (await (await fetch(provider.discoveryUrl)).json()) as object;
  const body = JSON.stringify({ ...document, code_challenge_methods_supported: ['plain'] });
  const path = '/.well-known/openid-configuration';
  provider.faults.set(path, { kind: 'answer', status: 200, type: 'application/json', body });
  const server = await serverFor(t, ['acl.enabled=true', ...provider.settings()]);
  const jo = await BrowserUser.arrive(t);
  await jo.page.goto(server.url);
  await jo.page.locator('[data-action=sso]').click();
  await jo.page.locator('.signin-problem', { hasText: 'does not support PKCE' }).waitFor();
  t.is(provider.count('/auth'), 0);
});

browserTest('a redirect loop stops', async (t) => {
  const { provider, server } = await startServers(t);
  const jo = await BrowserUser.arrive(t);
  await jo.page.goto(server.url);
  await jo.page.evaluate('localStorage.setItem("tidemark.sign-in.last-user", "jo")');
  for (let round = 0; round < 5; round += 1) {
    await jo.page.reload();
    await jo.isOut();
    await jo.page.waitForLoadState('networkidle');
  }
  t.true(provider.count('/auth') <= 3, String(provider.count('/auth')));
});

browserTest('a session ends when the provider ends it', async (t) => {
  const { provider, server } = await startServers(t, { accessTokenSeconds: 5 });
  const jo = await BrowserUser.arrive(t);
  await jo.page.goto(`${server.url}/#sql`);
  await jo.page.locator('[data-action=sso]').click();
  await jo.logIn('jo');
  await jo.isIn('jo');
  // A provider's response to a reused refresh token.
  const body = '{"error":"invalid_grant"}';
  provider.faults.set('/token', { kind: 'answer', status: 400, type: 'application/json', body });
  // The page polls the server status every few seconds and renews its token to do so.
  await jo.isOut();
  t.regex(await jo.problem(), /has ended/);
});

browserTest('a sign-on is refused if token and user info have different names', async (t) => {
  const { provider, server } = await startServers(t);
  const body = '{"sub":"somebody else","groups":["writers"]}';
  provider.faults.set('/me', { kind: 'answer', status: 200, type: 'application/json', body });
  const jo = await BrowserUser.arrive(t);
  await jo.page.goto(server.url);
  await jo.page.locator('[data-action=sso]').click();
  await jo.logIn('jo');
  await jo.isOut();
  t.regex(await jo.problem(), /received different user names/);
  await jo.page.reload();
  await jo.isOut();
});
