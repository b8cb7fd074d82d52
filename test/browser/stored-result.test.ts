/** Results that a tab still shows after the page is reloaded. */
import { seriousViolations } from './axe.js';
import { type ConsolePage, statementOf } from './console-page.js';
import { openBrowser, BrowserUser, serverFor } from './user.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage } = browserSuite('results over a reload', { args: ['--demo'] });

openBrowser();

/** Keys of the results that the browser has stored. */
const STORED_KEYS = `new Promise((resolve, reject) => {
  const opened = indexedDB.open('tidemark');
  opened.onerror = reject;
  opened.onsuccess = () => {
    const keys = opened.result.transaction('workspace').objectStore('workspace').getAllKeys();
    keys.onsuccess = () => {
      opened.result.close();
      resolve(keys.result.filter((key) => String(key).startsWith('result/')));
    };
  };
})`;

browserTest('a saved result is shown after a reload without running the query', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    t.is(await shown.query('SELECT x * 3 AS v FROM long_sequence(2500)'), 'done');
    t.is(await shown.query('SELECT x * 3 AS v FROM long_sequence(2500)'), 'done');
    await page.waitForFunction(`${STORED_KEYS}.then((keys) => keys.length === 1)`);
    const sent: string[] = [];
    page.on('request', (request) => {
      // While a statement is typed, the page sends validation requests.
      if (new URL(request.url()).pathname === '/exec') {
        sent.push(statementOf(request));
      }
    });
    await shown.reload();
    const note = page.locator('.grid-note');
    await note
      .getByText(/^Result from .*, before the page was reloaded: the first 1,000 of 2,500 rows\./)
      .waitFor();
    t.deepEqual(await shown.row(3), ['9']);
    t.is(await page.locator('.grid').getAttribute('aria-rowcount'), '1001');
    t.is(await page.locator('.summary').count(), 0);
    t.false(sent.some((text) => text.includes('long_sequence')));
    await inEveryTheme(shown, async (theme) => {
      t.deepEqual(await seriousViolations(page), [], theme);
      await shown.screenshot(picture(`kept-result-${theme}`));
    });
    for (const width of [1024, 390]) {
      await shown.resize(width, 844);
      t.deepEqual(await seriousViolations(page), [], `${width}`);
      await shown.screenshot(picture(`kept-result-${width}`));
    }
    await note.getByRole('button', { name: 'Run again' }).click();
    await note.waitFor({ state: 'detached' });
    t.is(await page.locator('.grid').getAttribute('aria-rowcount'), '2501');
  });
});

browserTest('zone, chart, series and view of each tab survive a reload', async (t) => {
  const work = async (shown: ConsolePage): Promise<void> => {
    const { page } = shown;
    t.is(await shown.query('SELECT timestamp, symbol, price FROM trades LIMIT 500'), 'done');
    const kind = page.locator('.chart-bar select').first();
    const series = page.locator('.chart-key').first();
    await kind.selectOption('step');
    await series.click();
    const isAsChosen = async (after: string): Promise<void> => {
      await series.waitFor();
      const found = [await kind.inputValue(), await series.getAttribute('aria-pressed')];
      t.deepEqual(found, ['step', 'false'], after);
    };
    t.is(await shown.run(), 'done');
    await isAsChosen('another run');
    await page.keyboard.press('Alt+4');
    await series.waitFor({ state: 'detached' });
    await page.keyboard.press('Alt+1');
    await isAsChosen('the log');
    await page.keyboard.press('Alt+4');
    await page.keyboard.press('Alt+T');
    const view = page.locator('.views [aria-pressed=true]').first();
    await page.locator('.views [aria-pressed=true]', { hasText: 'Grid' }).waitFor();
    await page.getByRole('tab').first().click();
    await page.locator('.views [aria-pressed=true]', { hasText: 'Log' }).waitFor();
    t.is(await view.innerText(), 'Log');
    await page.keyboard.press('Alt+1');
    await isAsChosen('another tab');
    await page.getByRole('button', { name: 'Local', exact: true }).click();
    await shown.reload();
    await isAsChosen('a reload');
    t.is(await shown.query("SELECT '2026-11-01T05:30:00.000000Z'::TIMESTAMP AS at"), 'done');
    t.deepEqual(await shown.row(1), ['2026-11-01 01:30:00 -04:00']);
  };
  await onPage(t, work, { timezone: 'America/New_York' });
});

browserTest('a result is not saved if its statement may contain a secret', async (t) => {
  await onPage(t, async (shown) => {
    t.is(await shown.query("SELECT 'x' AS password"), 'done');
    t.is(await shown.query('SELECT 1'), 'done');
    await shown.page.waitForFunction(`${STORED_KEYS}.then((keys) => keys.length === 1)`);
    t.is(await shown.query("SELECT 'y' AS password"), 'done');
    await shown.page.waitForFunction(`${STORED_KEYS}.then((keys) => keys.length === 0)`);
  });
});

browserTest('signing out removes the saved result', async (t) => {
  const server = await serverFor(t, ['http.user=joe', 'http.password=s3cret']);
  const joe = await BrowserUser.arrive(t);
  await joe.page.goto(`${server.url}/#sql`);
  await joe.isOut();
  await joe.page.getByLabel('User', { exact: true }).fill('joe');
  await joe.page.getByLabel('Password').fill('s3cret');
  await joe.page.keyboard.press('Enter');
  await joe.isIn('joe');
  t.is(await joe.query('select 41 + 1 answer'), 'done');
  await joe.page.waitForFunction(`${STORED_KEYS}.then((keys) => keys.length === 1)`);
  await joe.page.reload();
  await joe.isIn('joe');
  await joe.page.locator('.grid-note', { hasText: 'before the page was reloaded' }).waitFor();
  await joe.page.locator('[data-action=sign-out]').click();
  await joe.isOut();
  t.deepEqual(await joe.page.evaluate<string[]>(STORED_KEYS), []);
  t.deepEqual(joe.complaints, []);
});
