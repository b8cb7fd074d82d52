/** Failures in the console: calm messages, no data loss, no executed markup. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { startTestServer } from '../golden/server.js';
import { damageSegment } from '../http/damaged-segment.js';
import { ConsolePage, launchBrowser } from './console-page.js';
import { browserSuite, picture } from './suite.js';

const { browserTest, onPage, rows } = browserSuite('trouble in a browser', {
  set: ['query.timeout=3s'],
});

const ENDLESS = 'SELECT x FROM long_sequence(4000000000000)';
/** Markup that would be noticed if it were executed. */
const PAYLOAD = '<img src=x onerror=throw 1>';

browserTest('a query that fails midway keeps the received rows, with the error', async (t) => {
  await onPage(t, async (shown) => {
    t.is(await shown.query(ENDLESS), 'failed');
    t.regex(
      await shown.page.locator('.outcome').innerText(),
      /timeout, query aborted[^]*correct but incomplete/,
    );
    await shown.screenshot(picture('half-way-light'));
    await shown.page.getByRole('button', { name: 'Show received rows' }).click();
    t.deepEqual(await shown.row(1), ['1']);
    t.is(await shown.query('SELECT 1 AS one'), 'done');
    // The browser may or may not log the aborted connection.
    shown.complaints.length = 0;
  });
});

browserTest('a server restart during a query loses nothing', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-trouble-'));
  const first = await startTestServer({ root });
  const browser = await launchBrowser();
  try {
    const shown = await ConsolePage.open(browser, first.url);
    await shown.write(ENDLESS);
    await shown.page.keyboard.press('Control+Enter');
    await shown.page.locator('.summary[data-state="running"] .elapsed').waitFor();
    t.regex(await shown.page.locator('.elapsed').innerText(), /^for [1-9]\d* s$/);
    const status = shown.page.locator('.status');
    await status.locator('a', { hasText: '1 running' }).waitFor();
    first.process.kill('SIGKILL');
    await shown.page.locator('.summary[data-state="failed"]').waitFor();
    await status.filter({ hasText: 'is not responding' }).waitFor();
    t.regex(await status.innerText(), /Next attempt within \d+ s\./);
    // The status must not keep showing the last report from a stopped server.
    t.notRegex(await status.innerText(), /running|Connected/);
    t.is(await shown.editor.innerText(), ENDLESS);
    await shown.screenshot(picture('server-gone-light'));
    const { host } = new URL(first.url);
    const second = await startTestServer({ root, set: [`http.bind.to=${host}`] });
    await shown.page.locator('.status', { hasText: 'Connected' }).waitFor();
    t.is(await shown.query('SELECT 1 AS one'), 'done');
    await second.stop();
  } finally {
    await browser.close();
    await first.stop();
    await rm(root, { recursive: true, force: true });
  }
});

browserTest('a damaged table is reported, and recovered by dropping the partition', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-damaged-'));
  const first = await startTestServer({ root });
  const query = 'SELECT x, timestamp_sequence(0, 86400000) AS ts FROM long_sequence(3000)';
  const create = `CREATE TABLE t AS (${query}) TIMESTAMP(ts) PARTITION BY DAY`;
  await fetch(`${first.url}/exec?query=${encodeURIComponent(create)}`);
  await first.stop();
  await damageSegment(root);
  const server = await startTestServer({ root, set: ['cairo.verify=open'] });
  const browser = await launchBrowser();
  try {
    const shown = await ConsolePage.open(browser, server.url);
    const { page } = shown;
    const entry = page.getByRole('treeitem', { name: /^t\b/ });
    const choose = async (action: string): Promise<void> => {
      await entry.click({ button: 'right' });
      await page.getByRole('menuitem', { name: action }).click();
    };
    await page.locator('.status', { hasText: '1 suspended' }).waitFor();
    await page.getByPlaceholder('Filter tables and columns').fill('suspended');
    t.regex(await entry.innerText(), /suspended/);
    await choose('Show damage');
    await page
      .locator('.outcome-message', { hasText: 'recovery would discard 1000 rows' })
      .waitFor();
    await choose('Recover intact data');
    await page.getByRole('dialog').getByText('RECOVER TABLE t SKIP').waitFor();
    await page.getByRole('button', { name: 'Recover t' }).click();
    await page.locator('.toast', { hasText: 't accepts writes again' }).waitFor();
    await page.locator('.status', { hasText: 'suspended' }).waitFor({ state: 'detached' });
    // The browser logs the failure of the statement that found the damage.
    const complaints = shown.complaints.filter((text) => !text.includes('status of 500'));
    t.deepEqual(complaints, []);
  } finally {
    await browser.close();
    await server.stop();
    await rm(root, { recursive: true, force: true });
  }
});

browserTest(
  'markup in names, values, statements and errors is plain text everywhere',
  async (t) => {
    await rows(`CREATE TABLE "${PAYLOAD}" ("<b>column" INT, ts TIMESTAMP) TIMESTAMP(ts)`);
    await onPage(t, async (shown) => {
      const { page } = shown;
      const name = page.getByRole('treeitem', { name: /onerror/ });
      await name.click();
      await page.locator('.tree-row.column', { hasText: '<b>column' }).waitFor();
      await name.click({ button: 'right' });
      await page.getByRole('menuitem', { name: 'Details' }).click();
      await page.locator('.details tbody', { hasText: '<b>column' }).waitFor();
      t.is(await page.locator('#details-title').innerText(), PAYLOAD);
      await name.click({ button: 'right' });
      await page.getByRole('menuitem', { name: /^Drop/ }).click();
      t.regex(await page.getByRole('dialog').innerText(), /<img src=x onerror=throw 1>/);
      await page.keyboard.press('Escape');
      await shown.go('SQL workspace');
      t.is(await shown.query(`SELECT '${PAYLOAD}' AS "${PAYLOAD}"`), 'done');
      t.deepEqual(await shown.row(1), [PAYLOAD]);
      t.is(await shown.query(`SELECT * FROM "${PAYLOAD}<b>"`), 'failed');
      await page.keyboard.press('Alt+E');
      await page.locator('.plan-pane', { hasText: 'onerror' }).waitFor();
      await page.getByRole('button', { name: 'Log', exact: true }).click();
      t.is(await page.locator('main img, aside img, main b b').count(), 0);
    });
  },
);

browserTest('pages report an unreachable server and recover when it responds', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await page.route('**/exec?*', (route) => route.abort());
      await page.getByText('could not be loaded').waitFor();
      await page.unroute('**/exec?*');
      await page.getByRole('button', { name: /onerror/ }).waitFor();
      shown.complaints.length = 0;
    },
    { page: 'tables' },
  );
});
