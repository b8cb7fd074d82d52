/**
 * The two pictures of the README. They go to build/screenshots, and with TIDEMARK_SCREENSHOTS=1 to
 * docs/images: commit them when the console has changed.
 */
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

import { browserSuite, picture } from './suite.js';

const { browserTest, onPage } = browserSuite('pictures of the console', { args: ['--demo'] });

const IMAGES = fileURLToPath(new URL('../../../docs/images', import.meta.url));
const SIZE = { width: 1280, height: 800 };

function target(name: string): string {
  const isAsked = process.env['TIDEMARK_SCREENSHOTS'] === '1';
  return isAsked ? join(IMAGES, `${name}.png`) : picture(name);
}

const CANDLES = `-- Candles of a quarter of an hour, and what was traded
SELECT timestamp, first(price) AS open, max(price) AS high,
       min(price) AS low, last(price) AS close, sum(amount) AS volume
FROM trades
WHERE symbol = 'BTC-USD'
SAMPLE BY 15m;
`;

browserTest('a query with its rows and its chart', async (t) => {
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

browserTest('a file on its way in', async (t) => {
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
