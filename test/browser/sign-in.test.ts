/** Signing in with a name and a password, in Chromium. */
import { seriousViolations } from './axe.js';
import { browserTest, openBrowser, Person, serverFor } from './person.js';
import { picture, THEMES } from './suite.js';

openBrowser();

browserTest('a name and a password sign in, and nothing is kept of them', async (t) => {
  const server = await serverFor(t, ['http.user=joe', 'http.password=s3cret']);
  const joe = await Person.arrive(t);
  await joe.page.goto(`${server.url}/#sql`);
  await joe.isOut();
  t.is(await joe.page.locator('[data-action=sso]').count(), 0);
  await joe.page.getByLabel('User', { exact: true }).fill('joe');
  await joe.page.getByLabel('Password').fill('guess');
  await joe.page.getByRole('button', { name: 'Sign in' }).click();
  await joe.page.locator('.signin-problem', { hasText: 'wrong name or password' }).waitFor();
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

browserTest(
  'without HTTPS the page sends what was typed, and keeps it in memory alone',
  async (t) => {
    const server = await serverFor(t, ['http.user=joe', 'http.password=s3cret']);
    const joe = await Person.arrive(t);
    // A page of this machine counts as secure; one of another over HTTP does not.
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
  },
);

browserTest('the sign-in page in every theme, as axe sees it', async (t) => {
  const server = await serverFor(t, ['http.user=joe', 'http.password=s3cret']);
  const joe = await Person.arrive(t);
  await joe.page.goto(server.url);
  await joe.page.getByLabel('User', { exact: true }).fill('joe');
  await joe.page.getByLabel('Password').fill('guess');
  await joe.page.keyboard.press('Enter');
  await joe.page.locator('.signin-problem', { hasText: 'wrong' }).waitFor();
  for (const theme of THEMES) {
    await joe.page.evaluate(`document.documentElement.dataset.theme = '${theme}'`);
    t.deepEqual(await seriousViolations(joe.page), [], theme);
    await joe.page.screenshot({ path: picture(`screen-sign-in-${theme}`), caret: 'initial' });
  }
});
