/** Find and replace in the editor; lists of tables by filter and order; what is on paper. */
import { seriousViolations } from './axe.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage } = browserSuite('finding in a browser', { args: ['--demo'] });

browserTest('texts are found and replaced, by keys and in three themes', async (t) => {
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
    await page.setViewportSize({ width: 390, height: 844 });
    await shown.editor.click();
    await page.keyboard.press('Control+F');
    await panel.waitFor();
    t.deepEqual(await seriousViolations(page), []);
    await shown.screenshot(picture('find-390-light'));
  });
});

browserTest('the tables are filtered by name, and sorted by what is known of them', async (t) => {
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
    t.deepEqual((await names()).slice(-2), ['aa', 'zz'], 'of the same, by name');
    await rows.getByRole('button').click();
    t.deepEqual((await names()).slice(0, 2), ['aa', 'zz']);
    await page.getByLabel('Filter the list by name').fill('Z');
    t.deepEqual(await names(), ['zz']);
    t.deepEqual(await seriousViolations(page), []);
    await shown.screenshot(picture('tables-filter-light'));
  });
});

browserTest('on paper there are rows, and nothing that is pressed', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    t.is(await shown.query('SELECT * FROM trades LIMIT 20'), 'done');
    await page.emulateMedia({ media: 'print' });
    for (const part of ['.rail', '.side', '.status', '.toolbar', '.editor-pane', '.result-bar']) {
      t.false(await page.locator(part).first().isVisible(), part);
    }
    t.true(await page.locator('.grid-row').first().isVisible());
    await shown.screenshot(picture('print'));
  });
});
