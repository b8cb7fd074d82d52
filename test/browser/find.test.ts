/** Find and replace in the editor; filtered and sorted table lists; printed pages. */
import { seriousViolations } from './axe.js';
import { leavePicture } from './console-page.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage } = browserSuite('finding in a browser', { args: ['--demo'] });

browserTest('text is found and replaced, by keyboard and in three themes', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await shown.write('SELECT price FROM trades;\nSELECT PRICE + prices FROM trades;');
    await page.keyboard.press('Control+F');
    const panel = page.locator('.cm-search');
    await panel.getByLabel('Find').fill('price');
    await page.keyboard.press('Enter');
    t.is(await page.locator('.cm-searchMatch').count(), 3);
    await inEveryTheme(shown, async (theme) => {
      t.deepEqual(await seriousViolations(page), [], theme);
      await shown.screenshot(picture(`find-${theme}`));
    });
    await panel.getByLabel('Whole words').check();
    await panel.getByLabel('Replace', { exact: true }).first().fill('amount');
    await panel.getByRole('button', { name: 'Replace all' }).click();
    t.is(
      await shown.editor.innerText(),
      'SELECT amount FROM trades;\nSELECT amount + prices FROM trades;',
    );
    await panel.getByLabel('Find').press('Escape');
    await panel.waitFor({ state: 'detached' });
    await shown.resize(390, 844);
    await shown.editor.click();
    await page.keyboard.press('Control+F');
    await panel.waitFor();
    t.deepEqual(await seriousViolations(page), []);
    await shown.screenshot(picture('find-390-light'));
  });
});

browserTest('the table list is filtered by name and sorted by each column', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await page.evaluate(`Promise.all(['aa', 'zz'].map((name) => fetch('exec?query=' +
      encodeURIComponent('CREATE TABLE ' + name + ' (ts TIMESTAMP) TIMESTAMP(ts)'))))`);
    await shown.go('Tables and ingestion');
    const names = (): Promise<string[]> => page.locator('tbody .row-link').allInnerTexts();
    await page.locator('.row-link', { hasText: 'zz' }).waitFor();
    const all = await names();
    t.deepEqual(all, [...all].sort());
    const rows = page.getByRole('columnheader', { name: 'Rows', exact: true });
    await rows.getByRole('button').click();
    t.is(await rows.getAttribute('aria-sort'), 'descending');
    t.deepEqual((await names()).slice(-2), ['aa', 'zz'], 'equal row counts are ordered by name');
    await rows.getByRole('button').click();
    t.deepEqual((await names()).slice(0, 2), ['aa', 'zz']);
    await page.getByLabel('Filter tables by name').fill('Z');
    t.deepEqual(await names(), ['zz']);
    t.deepEqual(await seriousViolations(page), []);
    await shown.screenshot(picture('tables-filter-light'));
  });
});

browserTest('a printed page shows rows without controls', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    t.is(await shown.query('SELECT x AS n, x / 2.0 AS half FROM long_sequence(2500)'), 'done');
    const printed = page.locator('.printed');
    t.is(await printed.count(), 0);
    await page.emulateMedia({ media: 'print' });
    const regions = [
      '.rail',
      '.side',
      '.status',
      '.toolbar',
      '.editor-pane',
      '.result-bar',
      '.grid',
    ];
    for (const region of regions) {
      t.false(await page.locator(region).first().isVisible(), region);
    }
    t.is(await printed.locator('caption').innerText(), 'The first 1,000 of 2,500 rows');
    t.is(await printed.locator('tbody tr').count(), 1000);
    t.is(await printed.locator('tbody tr').last().innerText(), '1,000\t500');
    await shown.screenshot(picture('print'));
    await page.emulateMedia({ media: 'screen' });
    await printed.waitFor({ state: 'detached' });
    // Simulates the browser's print dialog.
    await page.evaluate(`addEventListener('beforeprint', () => {
      document.title = document.querySelectorAll('.printed tbody tr').length;
    })`);
    await page.pdf();
    t.is(await page.title(), '1000');
    await printed.waitFor({ state: 'detached' });
    t.is(await shown.query('SELECT * FROM trades LIMIT 200'), 'done');
    await page.emulateMedia({ media: 'print' });
    t.is(await printed.locator('caption').innerText(), '200 rows');
    t.true(await page.locator('.chart').isVisible());
    await leavePicture(page, picture('print-chart'), true);
  });
});
