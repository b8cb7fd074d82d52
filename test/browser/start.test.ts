/** An empty database: what a person who never saw it finds. */
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage, rows } = browserSuite('first steps in a browser');

browserTest('an empty database begins with three ways to the first rows', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await page.getByRole('heading', { name: 'Tidemark is running' }).waitFor();
      for (const client of ['psql', 'Python', 'Node', 'Go', 'Java']) {
        await page.getByRole('tab', { name: client, exact: true }).click();
        t.regex(await page.locator('.start-connect pre').innerText(), /127\.0\.0\.1:8812|host=127/);
      }
      await page.getByRole('tab', { name: 'curl' }).click();
      await inEveryTheme(shown, async (theme) => {
        await shown.screenshot(picture(`start-${theme}`));
      });
      await page.getByRole('button', { name: 'Write SQL at once' }).click();
      t.true(await shown.editor.isVisible());
    },
    { page: '' },
  );
});

browserTest('the demonstration data is made, drawn, and removed again', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await page.locator('[data-action="demo"]').click();
      await page.locator('.summary[data-state="done"]').waitFor({ timeout: 60_000 });
      t.deepEqual(await shown.columns(), ['timestamp', 'symbol', 'price']);
      t.true((await shown.inkOfChart()) > 2000);
      t.deepEqual(await rows('SELECT count() FROM trades'), [[500_000]]);
      t.deepEqual(await rows('SELECT count_distinct(station) FROM sensors'), [[40]]);
      await page.getByRole('button', { name: 'Remove them' }).click();
      await page.locator('.toast', { hasText: 'is gone' }).waitFor();
      t.deepEqual(await rows('SELECT count() FROM tables()'), [[0]]);
    },
    { page: 'start' },
  );
});

browserTest('the first rows of another client come to the front', async (t) => {
  await onPage(
    t,
    async (shown) => {
      await shown.page.getByText('follows by itself').waitFor();
      await rows('CREATE TABLE arrivals (v INT, ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY');
      await rows("INSERT INTO arrivals VALUES (7, '2026-01-01')");
      await shown.page.locator('.summary[data-state="done"]').waitFor();
      t.is((await shown.row(1))[0], '7');
    },
    { page: 'start' },
  );
});
