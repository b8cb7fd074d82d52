/** axe finds no serious violation on any screen, in any theme. */
import type { ExecutionContext } from 'ava';

import { seriousViolations } from './axe.js';
import type { ConsolePage } from './console-page.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage } = browserSuite('accessibility in a browser', { args: ['--demo'] });

async function checkScreen(t: ExecutionContext, shown: ConsolePage, screen: string): Promise<void> {
  await inEveryTheme(shown, async (theme) => {
    t.deepEqual(await seriousViolations(shown.page), [], `${screen} in ${theme}`);
    await shown.screenshot(picture(`screen-${screen}-${theme}`));
  });
}

browserTest('axe finds no violations in a workspace: result, plan, log and error', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const query = 'SELECT timestamp, symbol, avg(price) AS price FROM trades SAMPLE BY 1h';
    t.is(await shown.query(query), 'done');
    await page.locator('.plot canvas').first().waitFor();
    await page.getByRole('treeitem', { name: /^trades/ }).click();
    await page.locator('.tree-row.column').first().waitFor();
    await checkScreen(t, shown, 'workspace');
    await page.keyboard.press('Alt+E');
    await page.getByRole('button', { name: 'Run and measure' }).click();
    await page.locator('.plan-cost').first().waitFor();
    await checkScreen(t, shown, 'plan');
    await page.getByRole('button', { name: 'Log', exact: true }).click();
    await checkScreen(t, shown, 'log');
    t.is(await shown.query('SELECT prise FROM trades'), 'failed');
    await page.getByRole('button', { name: 'Grid', exact: true }).click();
    await checkScreen(t, shown, 'error');
  });
});

browserTest('axe finds no violations in actions on rows, statements and charts', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const query =
      'SELECT timestamp, symbol, price, amount FROM trades WHERE symbol = @sym LIMIT 200';
    await shown.write(query);
    await page.getByLabel('@sym').fill('BTC-USD');
    t.is(await shown.run(), 'done');
    await page.locator('.grid-head-cell', { hasText: 'price' }).click();
    await page.getByLabel('Filter loaded rows').fill('price > 0');
    await page.locator('.inline-filter .hint').waitFor();
    await page.locator('.grid').focus();
    await page.keyboard.press('Shift+F10');
    t.deepEqual(await seriousViolations(page), [], 'the column menu');
    await page.getByRole('menuitemcheckbox', { name: 'Freeze up to here' }).click();
    await page.locator('.grid').focus();
    await page.keyboard.press('Enter');
    await page.locator('.inspector .profile-facts').waitFor();
    await checkScreen(t, shown, 'inspector');
    await page.keyboard.press('Control+K');
    await page.getByRole('combobox', { name: 'Type a table' }).fill('tra');
    t.deepEqual(await seriousViolations(page), [], 'the palette');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Show as table' }).click();
    await page.locator('.chart-table tbody tr').first().waitFor();
    await shown.write('SELECT FROM WHERE;\nSELECT prise FROM trades;');
    await page.locator('.problem').waitFor();
    await checkScreen(t, shown, 'problems');
  });
});

browserTest('axe detects an injected violation', async (t) => {
  await onPage(t, async ({ page }) => {
    await page.evaluate("document.querySelector('.main').append(document.createElement('img'))");
    t.deepEqual(await seriousViolations(page), ['image-alt: <img>']);
  });
});

browserTest('axe finds no violations in tables, running queries and their dialogs', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await page.locator('.details tbody tr').first().waitFor();
      await checkScreen(t, shown, 'tables');
      await page.getByRole('tab', { name: 'Ingestion' }).click();
      await checkScreen(t, shown, 'ingestion');
      await shown.go('Running queries');
      await page.getByText('No running queries').waitFor();
      await checkScreen(t, shown, 'queries');
      await page.getByRole('treeitem', { name: /^trades/ }).click({ button: 'right' });
      t.deepEqual(await seriousViolations(page), [], 'the table menu');
      await shown.screenshot(picture('screen-menu-light'));
      await page.getByRole('menuitem', { name: /^Drop/ }).click();
      t.deepEqual(await seriousViolations(page), [], 'the confirmation before a table is dropped');
      await shown.screenshot(picture('screen-confirm-light'));
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Shortcuts' }).click();
      t.deepEqual(await seriousViolations(page), [], 'the shortcuts');
    },
    { page: 'tables/trades' },
  );
});

browserTest('axe finds no violations in imports and first steps', async (t) => {
  await onPage(t, (shown) => checkScreen(t, shown, 'start'), { page: 'start' });
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await checkScreen(t, shown, 'import-empty');
      const lines = Array.from({ length: 30 }, (_, row) => `2026-01-01,${row === 3 ? '?' : row}`);
      const buffer = Buffer.from(`day,value\n${lines.join('\n')}\n`);
      const input = page.locator('input[type="file"]');
      await input.setInputFiles({ name: 'days.csv', mimeType: 'text/csv', buffer });
      await page.getByLabel('Type of day').waitFor();
      await checkScreen(t, shown, 'import');
      await page.locator('[data-action="import"]').click();
      await page.getByRole('heading', { name: 'was imported' }).waitFor();
      await checkScreen(t, shown, 'import-report');
    },
    { page: 'import' },
  );
});
