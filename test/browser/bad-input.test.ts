/** Adversarial names and values, servers that stop midway, and malformed tab files. */
import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { chromiumPath, ConsolePage, launchBrowser, statementOf } from './console-page.js';
import { browserSuite, picture } from './suite.js';

const { browserTest, onPage, rows, server } = browserSuite('bad input in a browser');

const PAYLOAD = `<img src=x onerror="console.error('ran')"><script>console.error('ran')</script>`;
const QUOTED = PAYLOAD.replaceAll("'", "''");

browserTest('adversarial names are displayed everywhere and executed nowhere', async (t) => {
  const column = '<b onclick=alert(1)>name</b>';
  await rows('CREATE TABLE hostile (x VARCHAR, ts TIMESTAMP) TIMESTAMP(ts)');
  await rows(`INSERT INTO hostile VALUES ('${QUOTED}', '2026-01-01')`);
  await onPage(t, async (shown) => {
    const { page } = shown;
    const injected = page.locator('img, script:not([src]), b[onclick]');
    await page.getByRole('treeitem', { name: /^hostile/ }).click();
    await page.locator('.tree-row.column').first().waitFor();
    const query = `SELECT x AS "${column}" FROM hostile -- ${PAYLOAD}`;
    t.is(await shown.query(query), 'done');
    t.deepEqual(await shown.columns(), [column]);
    t.deepEqual(await shown.row(1), [PAYLOAD]);
    await page.locator('.grid').focus();
    await page.keyboard.press('Enter');
    t.is(await page.locator('.inspector .snippet').innerText(), PAYLOAD);
    await page.getByRole('button', { name: 'Log', exact: true }).click();
    await page.keyboard.press('Control+K');
    await page.getByRole('combobox').fill('hostile');
    await page.getByRole('option').first().waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.tab').first().dblclick();
    await page.keyboard.insertText(PAYLOAD);
    await page.keyboard.press('Enter');
    t.is(await shown.query(`SELECT "${PAYLOAD.replaceAll('"', '')}" FROM hostile`), 'failed');
    await page.locator('.problem').waitFor();
    const link = `${server().url}/#query=${encodeURIComponent(`DROP TABLE "${PAYLOAD}"`)}`;
    await page.goto(link);
    await page.getByRole('dialog').getByRole('button', { name: 'Open without running' }).click();
    t.is(await injected.count(), 0);
  });
});

browserTest('a malformed link is ignored', async (t) => {
  await onPage(t, async ({ page }) => {
    await page.goto(`${server().url}/#query=%E0%A4%A`);
    await page.locator('.editor-host.ready').waitFor();
    t.is(await page.locator('.tab').count(), 1);
  });
});

browserTest('a truncated response keeps the rows received so far', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await page.route('**/exec?*', (route) =>
      statementOf(route.request()).includes('half')
        ? route.fulfill({
            status: 200,
            contentType: 'application/json',
            body:
              '{"query":"q","columns":[{"name":"n","type":"INT"}],"timestamp":-1,' +
              '"dataset":[[1],[2],[3],',
          })
        : route.continue(),
    );
    t.is(await shown.query('SELECT 1 AS half'), 'failed');
    t.regex(await page.locator('.outcome').innerText(), /ended unexpectedly/);
    await shown.screenshot(picture('half-way-light'));
    await page.getByRole('button', { name: 'Show received rows' }).click();
    t.deepEqual(await shown.row(3), ['3']);
  });
});

const restartTest = chromiumPath === undefined ? test.serial.skip : test.serial;

restartTest('the console survives a restart during a query', async (t) => {
  const first = await startTestServer();
  const browser = await launchBrowser();
  const shown = await ConsolePage.open(browser, first.url);
  const { page } = shown;
  try {
    await shown.write('SELECT count() FROM long_sequence(100000000000) WHERE rnd_double() > 2');
    await page.keyboard.press('Control+Enter');
    await page.locator('.summary[data-state="running"]').waitFor();
    const ended = new Promise((resolve) => first.process.once('exit', resolve));
    first.process.kill('SIGKILL');
    await ended;
    await page.locator('.summary[data-state="failed"]').waitFor();
    t.regex(await page.locator('.outcome').innerText(), /is not responding|ended unexpectedly/);
    await page.locator('.status .error').waitFor();
    const port = new URL(first.url).port;
    const second = await startTestServer({
      root: first.root,
      set: [`http.bind.to=127.0.0.1:${port}`],
    });
    try {
      await page.locator('.status .ok').waitFor();
      t.is(await shown.query('SELECT 5 AS again'), 'done');
      t.deepEqual(await shown.row(1), ['5']);
    } finally {
      await second.stop();
    }
  } finally {
    await shown.close();
    await browser.close();
    await first.stop();
  }
});
