/**
 * A signed-out page does not contain any of its user's data, whether in the DOM, in storage or in
 * memory. At the next sign-in, users get their own workspace.
 */
import type { ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';

import type { TestServer } from '../golden/server.js';
import { TestProvider } from '../oidc/provider.js';
import { browserTest, openBrowser, BrowserUser, serverFor } from './user.js';

openBrowser();

const ADMIN = { Authorization: `Basic ${btoa('admin:quest')}` };

/**
 * Terms to search for, each planted separately. A result contains its term only once the result has
 * been computed.
 */
const PLANTED = [
  'plantedsql',
  'PLANTEDROW',
  'plantedtab',
  'planteddraft',
  'plantedcell',
  'plantederror',
  'plantedfile',
] as const;

async function run({ url }: TestServer, statements: readonly string[]): Promise<void> {
  for (const statement of statements) {
    const address = `${url}/exec?query=${encodeURIComponent(statement)}`;
    const response = await fetch(address, { headers: ADMIN });
    if (!response.ok) {
      throw new Error(`${statement}: ${await response.text()}`);
    }
  }
}

async function twoUsers(t: ExecutionContext, set: readonly string[] = []): Promise<TestServer> {
  const server = await serverFor(t, ['acl.enabled=true', ...set]);
  await run(server, [
    'create table quotes (ts timestamp, note varchar, price double) timestamp(ts) partition by day',
    "insert into quotes values ('2026-01-01', 'rowa', 1), ('2026-01-02', 'rowb', 2)",
    "create user bob with password 'pass'",
    'grant http to bob',
  ]);
  return server;
}

/** The administrator, signed in on a separate server. */
async function signedIn(
  t: ExecutionContext,
): Promise<{ server: TestServer; user: BrowserUser; page: Page }> {
  const server = await twoUsers(t);
  const user = await BrowserUser.arrive(t);
  const { page } = user;
  await page.goto(`${server.url}/#sql`);
  await user.signIn('admin', 'quest');
  return { server, user, page };
}

/** Plants a trace of each kind in the page. */
async function plant(user: BrowserUser): Promise<void> {
  const { page } = user;
  const statement = "select ts, upper('planted' || note) plantedsql, price from quotes";
  if ((await user.query(statement)) !== 'done') {
    throw new Error('the query failed');
  }
  await page.locator('.grid-cell', { hasText: 'PLANTEDROWA' }).waitFor();
  await page.locator('.tab').first().dblclick();
  await page.keyboard.insertText('plantedtab');
  await page.keyboard.press('Enter');
  await user.query('select plantederror from quotes');
  await page.keyboard.press('Alt+T');
  await page.locator('.cm-content').click();
  await page.keyboard.insertText('planteddraft');
  await page.keyboard.press('Alt+T');
  await page.getByRole('button', { name: /notebook or dashboard/ }).click();
  await page.locator('.cell .cm-content').first().click();
  await page.keyboard.insertText('select 1 plantedcell');
  await page.goto(`${page.url().replace(/#.*$/, '')}#import`);
  await page.locator('input[type="file"]').setInputFiles({
    name: 'plantedfile.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from('city,v\nplantedfile,1\nRome,2\n'),
  });
  await page.locator('[data-action="import"]').waitFor();
  await page.goto(`${page.url().replace(/#.*$/, '')}#tables/quotes`);
  await page.getByRole('heading', { level: 1 }).first().waitFor();
}

/** Returns everything in the page, its storage and its memory. */
async function remains(page: Page): Promise<string> {
  const inPage = await page.evaluate<string>(`(async () => {
    const records = [];
    for (const { name } of await indexedDB.databases()) {
      const opened = await new Promise((resolve, reject) => {
        const request = indexedDB.open(name);
        request.onsuccess = () => resolve(request.result);
        request.onerror = reject;
      });
      for (const store of opened.objectStoreNames) {
        const all = opened.transaction(store).objectStore(store);
        for (const request of [all.getAllKeys(), all.getAll()]) {
          records.push(await new Promise((resolve) => {
            request.onsuccess = () => resolve(request.result);
          }));
        }
      }
      opened.close();
    }
    return JSON.stringify([
      document.documentElement.outerHTML, document.title, location.href, history.state,
      { ...localStorage }, { ...sessionStorage }, document.cookie, records,
      await caches.keys(), (await navigator.serviceWorker.getRegistrations()).length,
    ]);
  })()`);
  const client = await page.context().newCDPSession(page);
  const chunks: string[] = [];
  client.on('HeapProfiler.addHeapSnapshotChunk', ({ chunk }) => chunks.push(chunk));
  await client.send('HeapProfiler.collectGarbage');
  await client.send('HeapProfiler.takeHeapSnapshot', { reportProgress: false });
  await client.detach();
  return inPage + chunks.join('');
}

async function assertNothingStored(t: ExecutionContext, page: Page, when: string): Promise<void> {
  const text = (await remains(page)).toLowerCase();
  const found = PLANTED.filter((secret) => text.includes(secret.toLowerCase()));
  t.deepEqual(found, [], when);
}

async function names(page: Page): Promise<string[]> {
  return await page.locator('.tab bdi').allInnerTexts();
}

browserTest('a signed-out page contains no user data; the tabs return after sign-in', async (t) => {
  const { server, user, page } = await signedIn(t);
  await plant(user);
  const before = (await remains(page)).toLowerCase();
  const unseen = PLANTED.filter((secret) => !before.includes(secret.toLowerCase()));
  t.deepEqual(unseen, [], 'every planted term was present before');
  await page.locator('[data-action=sign-out]').click();
  await user.isOut();
  t.is(new URL(page.url()).hash, '');
  await assertNothingStored(t, page, 'signed out');

  await user.signIn('bob', 'pass');
  await page.goto(`${server.url}/#sql`);
  await page.locator('.cm-content').waitFor();
  await assertNothingStored(t, page, 'the next user');
  t.deepEqual(await names(page), ['Query 1']);
  t.is(await user.query('select 1 bobs'), 'done');
  await page.locator('[data-action=sign-out]').click();

  await user.signIn('admin', 'quest');
  await page.goto(`${server.url}/#sql`);
  await page.locator('.tab', { hasText: 'plantedtab' }).waitFor();
  t.deepEqual((await names(page)).slice(0, 2), ['plantedtab', 'Query 2']);
  const after = await remains(page);
  t.true(after.includes('planteddraft') && after.includes('plantedcell'));
  t.false(after.includes('bobs'));
  await page.keyboard.press('Alt+4');
  await page.locator('.log-row, .log li, .log tr', { hasText: 'plantedsql' }).first().waitFor();
  t.deepEqual(user.complaints, []);
});

browserTest('an expired session leaves no data; unsaved text returns after sign-in', async (t) => {
  const { server, user, page } = await signedIn(t);
  await plant(user);
  await page.goto(`${server.url}/#sql`);
  await page.locator('.tab').first().click();
  await user.forgetSession();
  await page.locator('.cm-content').click();
  await page.keyboard.insertText('plantedsql typed last');
  await page.keyboard.press('Control+Enter');
  await user.isOut();
  await assertNothingStored(t, page, 'the session has ended');
  await user.signIn('bob', 'pass');
  await assertNothingStored(t, page, 'the next user');
  await page.locator('[data-action=sign-out]').click();
  await user.signIn('admin', 'quest');
  await page.locator('.tab', { hasText: 'plantedtab' }).click();
  await page.locator('.cm-content', { hasText: 'plantedsql typed last' }).waitFor();
  t.deepEqual(user.complaints, []);
});

browserTest('all windows of a browser sign out together and switch to the next user', async (t) => {
  const { server, user, page } = await signedIn(t);
  await plant(user);
  const other = await page.context().newPage();
  await other.goto(`${server.url}/#sql`);
  await other.locator('.tab', { hasText: 'plantedtab' }).waitFor();
  await page.locator('[data-action=sign-out]').click();
  await other.locator('.signin-card').waitFor();
  t.regex(await other.locator('.signin-problem').innerText(), /another window/);
  await assertNothingStored(t, other, 'the other window');
  t.deepEqual(user.complaints, []);
});

browserTest('a suspended window switches to the next user', async (t) => {
  const { server, user, page } = await signedIn(t);
  await plant(user);
  const other = await page.context().newPage();
  await other.addInitScript(
    "addEventListener('storage', (event) => event.stopImmediatePropagation())",
  );
  await other.goto(`${server.url}/#sql`);
  await other.locator('.tab', { hasText: 'plantedtab' }).click();
  // Blocks requests from the suspended window, because a request without a login would end the
  // window's session.
  await other.route('**', (route) => route.abort());
  await page.locator('[data-action=sign-out]').click();
  await user.signIn('bob', 'pass');
  await other.unroute('**');
  // A draft that the previous user wrote must not be saved for the next user.
  await other.locator('.cm-content').click();
  await other.keyboard.insertText('typed later');
  await other.waitForResponse((response) => response.url().includes('/workspace?'));
  await other.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
  await other.locator('.account', { hasText: 'bob' }).waitFor();
  t.deepEqual(await names(other), ['Query 1']);
  await assertNothingStored(t, other, 'the next user');
  await page.reload();
  await user.isIn('bob');
  t.deepEqual(await names(page), ['Query 1']);
});

browserTest('a sign-out that does not reach the server is effective after a reload', async (t) => {
  const { user, page } = await signedIn(t);
  await page.route('**/exec?*session=false*', (route) => route.abort());
  await page.locator('[data-action=sign-out]').click();
  await user.isOut();
  await page.unroute('**/exec?*session=false*');
  await page.reload();
  await user.isOut();
  t.deepEqual(await user.cookies(), []);
});

browserTest('signing out at the provider leaves no data', async (t) => {
  const provider = await TestProvider.start();
  t.teardown(() => provider.close());
  provider.addPerson('jo', { groups: ['writers'] });
  const server = await twoUsers(t, provider.settings());
  await provider.allowRedirects([`${server.url}/`]);
  await run(server, [
    "create group readers with external alias 'writers'",
    'grant http to readers',
    'grant create table to readers',
    'grant select on all tables to readers',
  ]);
  const jo = await BrowserUser.arrive(t);
  const { page } = jo;
  await page.goto(`${server.url}/#sql`);
  await page.locator('[data-action=sso]').click();
  await jo.logIn('jo');
  await jo.isIn('jo');
  await plant(jo);
  await page.locator('[data-action=sign-out]').click();
  await page.getByRole('button', { name: /sign me out/i }).click();
  await jo.isOut();
  await assertNothingStored(t, page, 'signed out');
  await page.goBack().catch(() => null);
  await assertNothingStored(t, page, 'one page back');
  await page.goto(server.url);
  await jo.signIn('bob', 'pass');
  await assertNothingStored(t, page, 'the next user');
  t.deepEqual(jo.complaints, []);
});
