/**
 * Screenshots for the README and the documentation. With TIDEMARK_PICTURES=1 they are saved in
 * build/screenshots, with TIDEMARK_PICTURES=docs in docs/images. Commit them after changes to the
 * console.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

import test from 'ava';

import { until } from '../until.js';
import { browserSuite, picture } from './suite.js';

const { browserTest, onPage, rows } = browserSuite('pictures of the console', { args: ['--demo'] });

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const IMAGES = join(ROOT, 'docs', 'images');
const SIZE = { width: 1280, height: 800 };
const taken = new Set<string>();

/** Returns the path of a screenshot, and records that this run made it. */
function target(name: string): string {
  taken.add(`${name}.png`);
  const isRequested = process.env['TIDEMARK_PICTURES'] === 'docs';
  return isRequested ? join(IMAGES, `${name}.png`) : picture(name);
}

const CANDLES = `-- Candles of a quarter of an hour, and what was traded
SELECT timestamp, first(price) AS open, max(price) AS high,
       min(price) AS low, last(price) AS close, sum(amount) AS volume
FROM trades
WHERE symbol = 'BTC-USD'
SAMPLE BY 15m;
`;

browserTest('screenshot: a query with its rows and its chart', async (t) => {
  await onPage(
    t,
    async (shown) => {
      t.is(await shown.query(CANDLES), 'done');
      t.true((await shown.inkOfChart()) > 2000);
      await shown.page.getByRole('treeitem', { name: /^trades/ }).click();
      await shown.page.locator('.tree-row.column').first().waitFor();
      await shown.screenshot(target('console-workspace'));
    },
    SIZE,
  );
});

/** Charts of a single symbol, as a user who starts from the table tree would write them. */
const CHARTS = [
  'SELECT timestamp, first(price) AS open, max(price) AS high, min(price) AS low, ' +
    'last(price) AS close FROM trades WHERE symbol = @symbol SAMPLE BY 30m',
  'SELECT timestamp, sum(amount) AS amount, avg(price) AS price FROM trades ' +
    'WHERE symbol = @symbol SAMPLE BY 30m',
  'SELECT timestamp, avg(ask - bid) AS spread FROM quotes ' +
    'WHERE symbol = @symbol SAMPLE BY 30m',
  'SELECT symbol, count() AS trades FROM trades GROUP BY symbol',
];

/** Maximum number of clicks for building a dashboard. */
const MAX_CLICKS = 20;

browserTest('screenshot: a live dashboard of four charts with a symbol selector', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await page.evaluate(
        'globalThis.clicks = 0; addEventListener("click", () => (globalThis.clicks += 1), true)',
      );
      await page.getByRole('button', { name: 'Create a notebook or dashboard' }).click();
      const add = page.getByRole('group', { name: 'Add a cell' });
      await add.getByRole('button', { name: 'Variable' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Name').fill('symbol');
      await dialog.getByLabel('Kind').selectOption('List from a query');
      await dialog.getByLabel('Query for the values').fill('SELECT DISTINCT symbol FROM trades');
      await dialog.getByRole('button', { name: 'Apply' }).click();
      const symbol = page.getByRole('group', { name: 'Variables' }).getByLabel('@symbol');
      // If the user does not choose a value, the first value is used.
      await until(async () => (await symbol.inputValue()) !== '', 'the variable has a value');
      await symbol.fill('BTC-USD');
      for (const [index, text] of CHARTS.entries()) {
        const cell = page.getByRole('article', { name: `Cell cell_${index + 1}`, exact: true });
        await (
          index === 0
            ? cell.getByRole('button', { name: 'Chart', exact: true })
            : add.getByRole('button', { name: 'Chart' })
        ).click();
        await cell.locator('.cm-content').click();
        await page.keyboard.insertText(text);
        await page.keyboard.press('Control+Enter');
        await cell.locator('.plot canvas').first().waitFor();
      }
      const layout = page.getByRole('group', { name: 'Layout' });
      await layout.getByRole('button', { name: 'Grid' }).click();
      await page.getByLabel('Refresh', { exact: true }).selectOption('When tables change');
      await page.locator('.refresh-state', { hasText: 'Live' }).waitFor();
      t.true((await page.evaluate<number>('globalThis.clicks')) <= MAX_CLICKS);
      // Choosing another symbol redraws the charts that use it.
      const open = page.locator('.plot canvas').first();
      await symbol.fill('ETH-USD');
      await symbol.blur();
      await page.waitForTimeout(1500);
      await open.waitFor();
      t.is(await page.locator('.chart:has(.plot canvas)').count(), CHARTS.length);
      t.is(await page.locator('.cell [role="alert"]').count(), 0);
      await shown.screenshot(target('console-dashboard'));
    },
    { ...SIZE, height: 940 },
  );
});

browserTest('screenshot: a file during its import', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const lines = Array.from({ length: 400 }, (_, row) => {
        const at = new Date(Date.UTC(2026, 0, 1) + row * 600_000)
          .toISOString()
          .replace('Z', '000Z');
        const temperature = row % 90 === 7 ? 'n/a' : ((row % 70) / 10 - 3).toFixed(1);
        return `${at},oslo-${row % 3},${temperature},${60 + (row % 25)},${row % 11 !== 0}`;
      });
      const text = `time,station,temperature,humidity,healthy\n${lines.join('\n')}\n`;
      const input = shown.page.locator('input[type="file"]');
      const buffer = Buffer.from(text);
      await input.setInputFiles({ name: 'weather.csv', mimeType: 'text/csv', buffer });
      await shown.page.getByLabel('Type of station').selectOption('SYMBOL');
      await shown.page.locator('.near').waitFor();
      t.is(await shown.page.getByLabel('Time column').inputValue(), 'time');
      await shown.screenshot(target('console-import'));
    },
    { ...SIZE, page: 'import', scheme: 'dark' },
  );
});

browserTest('screenshot: the partitions of a table', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const details = shown.page.locator('.details');
      await details.getByRole('tab', { name: 'Partitions' }).click();
      await details.locator('tbody tr').first().waitFor();
      t.true((await details.locator('tbody tr').count()) >= 1);
      await shown.screenshot(target('console-tables'));
    },
    { ...SIZE, page: 'tables/trades' },
  );
});

browserTest('screenshot: a measured query plan', async (t) => {
  await onPage(
    t,
    async (shown) => {
      await shown.write(
        "SELECT symbol, avg(price) FROM trades WHERE side = 'buy' SAMPLE BY 1h ORDER BY 2 DESC",
      );
      await shown.page.keyboard.press('Alt+E');
      await shown.page.getByRole('button', { name: 'Run and measure' }).click();
      await shown.page.locator('.plan-cost').first().waitFor();
      t.true((await shown.page.locator('.plan li').count()) >= 2);
      await shown.screenshot(target('console-plan'));
    },
    SIZE,
  );
});

browserTest('screenshot: a materialized view', async (t) => {
  await rows(
    `CREATE MATERIALIZED VIEW trades_hourly REFRESH IMMEDIATE AS (
       SELECT timestamp, symbol, sum(amount) AS volume FROM trades SAMPLE BY 1h)
     PARTITION BY DAY`,
  );
  await onPage(
    t,
    async (shown) => {
      await shown.page
        .locator('.view-state', { hasText: 'up to date with its base table' })
        .waitFor();
      t.true((await shown.page.locator('.view-facts > div').count()) > 3);
      await shown.screenshot(target('console-view'));
    },
    { ...SIZE, page: 'tables/trades_hourly' },
  );
});

test('every documentation image is created by a test and used on a page', (t) => {
  const pages = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => join(ROOT, 'docs', file));
  const text = [join(ROOT, 'README.md'), ...pages].map((file) => readFileSync(file, 'utf8'));
  const used = text.flatMap((page) =>
    [...page.matchAll(/!\[[^\]]+\]\([^)]*?images\/([^)]+)\)/g)].map(([, name]) => name),
  );
  const files = readdirSync(IMAGES).toSorted();
  t.deepEqual([...new Set(used)].toSorted(), files);
  if (taken.size > 0) {
    t.deepEqual([...taken].toSorted(), files);
  }
});
