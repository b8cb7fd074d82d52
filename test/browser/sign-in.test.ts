/** Signing in with name and password in Chromium. */
import type { Request } from 'playwright-core';

import { until } from '../until.js';
import { seriousViolations } from './axe.js';
import { statementOf, leavePicture } from './console-page.js';
import { browserTest, openBrowser, BrowserUser, serverFor } from './user.js';
import { picture, THEMES } from './suite.js';

openBrowser();

browserTest('a user signs in, and neither name nor password is stored', async (t) => {
  const server = await serverFor(t, ['http.user=joe', 'http.password=s3cret']);
  const joe = await BrowserUser.arrive(t);
  await joe.page.goto(`${server.url}/#sql`);
  await joe.isOut();
  t.is(await joe.page.locator('[data-action=sso]').count(), 0);
  await joe.page.getByLabel('User', { exact: true }).fill('joe');
  await joe.page.getByLabel('Password').fill('guess');
  await joe.page.getByRole('button', { name: 'Sign in' }).click();
  await joe.page.locator('.signin-problem', { hasText: 'Wrong user name or password' }).waitFor();
  await joe.page.getByLabel('Password').fill('s3cret');
  await joe.page.keyboard.press('Enter');
  await joe.isIn('joe');
  t.is(await joe.query('select 1'), 'done');
  t.false((await joe.stored()).includes('s3cret'));
  t.like((await joe.cookies())[0], { name: 'qdb_session', httpOnly: true, sameSite: 'Strict' });
  await joe.page.reload();
  await joe.isIn('joe');
  await joe.page.locator('[data-action=sign-out]').click();
  await joe.isOut();
  await joe.page.reload();
  await joe.isOut();
  t.deepEqual(joe.complaints, []);
});

browserTest('without HTTPS the password stays in memory and is sent each time', async (t) => {
  const server = await serverFor(t, ['http.user=joe', 'http.password=s3cret']);
  const joe = await BrowserUser.arrive(t);
  // A page on localhost counts as secure; an HTTP page on another machine does not.
  await joe.page.addInitScript(
    'Object.defineProperty(window, "isSecureContext", { value: false })',
  );
  const sent: (string | undefined)[] = [];
  await joe.page.goto(`${server.url}/#sql`);
  await joe.page.getByLabel('User', { exact: true }).fill('joe');
  await joe.page.getByLabel('Password').fill('s3cret');
  await joe.page.keyboard.press('Enter');
  await joe.isIn('joe');
  joe.page.on('request', (request) => sent.push(request.headers()['authorization']));
  t.is(await joe.query('select 1'), 'done');
  t.true(sent.includes(`Basic ${btoa('joe:s3cret')}`));
  t.notRegex(await joe.stored(), /s3cret|am9l/);
  // Links carry no credentials, so the page itself downloads files, into memory or to disk.
  await joe.page.evaluate('delete globalThis.showSaveFilePicker');
  t.is((await joe.export('CSV')).toString(), '"1"\r\n1\r\n');
  await joe.page.evaluate(`globalThis.showSaveFilePicker = async ({ suggestedName }) => {
      const folder = await navigator.storage.getDirectory();
      return globalThis.chosen = await folder.getFileHandle(suggestedName, { create: true });
    }`);
  await joe.page.getByRole('button', { name: 'Export rows' }).click();
  await joe.page.getByRole('menuitem', { name: 'All rows as CSV' }).click();
  const size = 'globalThis.chosen?.getFile().then((file) => file.size) ?? 0';
  while ((await joe.page.evaluate<number>(size)) === 0) {
    await joe.page.waitForTimeout(50);
  }
  const text = 'globalThis.chosen.getFile().then((file) => file.text())';
  t.is(await joe.page.evaluate<string>(text), '"1"\r\n1\r\n');
  t.deepEqual(joe.complaints, []);
});

browserTest('under a path prefix everything works, and the cookie is limited to it', async (t) => {
  const login = ['http.user=joe', 'http.password=s3cret'];
  const server = await serverFor(t, ['http.context.web.console=/x', ...login]);
  const joe = await BrowserUser.arrive(t);
  await joe.page.goto(`${server.url}/x/#sql`);
  await joe.signIn('joe', 's3cret');
  t.is((await joe.cookies())[0]?.path, '/x/');
  t.is(await joe.query('SELECT 1 AS one, nonesuch'), 'failed');
  t.is(await joe.query('SELECT 1 AS one'), 'done');
  await joe.page.evaluate('delete globalThis.showSaveFilePicker');
  t.is((await joe.export('CSV')).toString(), '"one"\r\n1\r\n');
  await joe.page.getByRole('navigation', { name: 'Main' }).getByLabel('Import').click();
  const buffer = Buffer.from('city,v\nOslo,1\nRome,2\nBern,3\n');
  const file = { name: 'few.csv', mimeType: 'text/csv', buffer };
  await joe.page.locator('input[type="file"]').setInputFiles(file);
  await joe.page.locator('[data-action="import"]').click();
  await joe.page.getByRole('heading', { name: 'few.csv was imported' }).waitFor();
  await joe.page.getByRole('button', { name: 'Show rows' }).click();
  await joe.page.locator('.summary[data-state="done"]').waitFor();
  await joe.page.reload();
  await joe.isIn('joe');
  const outside = joe.requests.filter(({ pathname }) => !pathname.startsWith('/x/'));
  t.deepEqual(outside, []);
  t.deepEqual(joe.complaints, []);
});

browserTest('an expired session asks for a login once, and the text is kept', async (t) => {
  const server = await serverFor(t, ['http.user=joe', 'http.password=s3cret']);
  const joe = await BrowserUser.arrive(t);
  const requested = new Set<Request>();
  joe.page.on('request', (request) => requested.add(request));
  joe.page.on('requestfinished', (request) => requested.delete(request));
  joe.page.on('requestfailed', (request) => requested.delete(request));
  await joe.page.goto(`${server.url}/#sql`);
  await joe.signIn('joe', 's3cret');
  t.is(await joe.query('SELECT 42 AS answer'), 'done');
  // Waits for the live stream, which never ends. If the stream started later, its request would be
  // the first to be refused.
  const isStream = (request: Request): boolean => request.url().endsWith('/live');
  await until(() => [...requested].some(isStream), 'the stream has started');
  // Delays the page's own requests, because the first request to be refused triggers the sign-in
  // prompt.
  let refused = (): void => undefined;
  const refusal = new Promise<void>((resolve) => (refused = resolve));
  const questions = /\/(?:exec\?|api\/v1\/)/;
  await joe.page.route(questions, async (route) => {
    if (statementOf(route.request()) !== 'SELECT 43 AS answer') {
      await refusal;
    }
    await route.continue();
  });
  const sent = [...requested].filter((request) => !isStream(request));
  await until(
    () => sent.every((request) => !requested.has(request)),
    'all earlier requests are answered',
  );
  await joe.forgetSession();
  await joe.page.locator('.cm-content').click();
  await joe.page.keyboard.press('Control+A');
  await joe.page.keyboard.insertText('SELECT 43 AS answer');
  const answered = joe.page.waitForResponse(
    (response) => statementOf(response.request()) === 'SELECT 43 AS answer',
  );
  await joe.page.keyboard.press('Control+Enter');
  await answered;
  refused();
  await joe.isOut();
  await joe.page.unroute(questions);
  t.regex(await joe.problem(), /session has ended/);
  t.is(await joe.page.locator('.cm-content').count(), 0);
  // While the sign-in prompt is open, the page does not send requests or sign in a user
  // automatically.
  const before = joe.requests.length;
  await joe.page.waitForLoadState('networkidle');
  t.is(joe.requests.length, before);
  await joe.signIn('joe', 's3cret');
  t.is(await joe.page.locator('.cm-content').innerText(), 'SELECT 43 AS answer');
  t.is(await joe.query('SELECT 44 AS answer'), 'done');
  t.deepEqual(joe.complaints, []);
});

browserTest('the sign-in page passes axe in every theme', async (t) => {
  const server = await serverFor(t, ['http.user=joe', 'http.password=s3cret']);
  const joe = await BrowserUser.arrive(t);
  await joe.page.goto(server.url);
  await joe.page.getByLabel('User', { exact: true }).fill('joe');
  await joe.page.getByLabel('Password').fill('guess');
  await joe.page.keyboard.press('Enter');
  await joe.page.locator('.signin-problem', { hasText: 'wrong' }).waitFor();
  for (const theme of THEMES) {
    await joe.page.evaluate(`document.documentElement.dataset.theme = '${theme}'`);
    t.deepEqual(await seriousViolations(joe.page), [], theme);
    await leavePicture(joe.page, picture(`screen-sign-in-${theme}`));
  }
});
