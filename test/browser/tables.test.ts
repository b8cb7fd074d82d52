/** Tables with their details and actions, and the running queries. */
import type { ConsolePage } from './console-page.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage, rows, server } = browserSuite('tables in a browser', {
  args: ['--demo'],
});

browserTest('pages can be opened from the navigation rail and by URL', async (t) => {
  await onPage(t, async (shown) => {
    await shown.go('Tables and ingestion');
    t.false(await shown.editor.isVisible());
    await shown.go('Running queries');
    await shown.page.goBack();
    await shown.isAt('Tables and ingestion');
    await shown.reload();
    await shown.isAt('Tables and ingestion');
    await shown.go('SQL workspace');
    t.true(await shown.editor.isVisible());
  });
});

browserTest('a table is shown with columns, partitions, DDL and growth', async (t) => {
  await rows('CREATE TABLE grows (v INT, ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY');
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await page.getByRole('button', { name: 'grows' }).click();
      const details = page.locator('.details');
      await details.locator('tbody th', { hasText: 'ts' }).waitFor();
      t.deepEqual(await details.locator('tbody th').allInnerTexts(), ['v', 'ts']);
      await rows("INSERT INTO grows VALUES (1, '2026-01-01'), (2, '2026-01-02')");
      await details.getByRole('tab', { name: 'Partitions' }).click();
      await details.getByText('2026-01-02', { exact: true }).waitFor();
      t.deepEqual(await details.locator('tbody th').allInnerTexts(), ['2026-01-02', '2026-01-01']);
      await details.getByRole('tab', { name: 'Ingestion' }).click();
      await details.locator('.big-number', { hasText: /\d/ }).waitFor();
      await details.getByRole('tab', { name: 'DDL' }).click();
      t.regex(await details.locator('pre').innerText(), /CREATE TABLE '?grows'? \(/);
      await details.getByRole('button', { name: 'Copy DDL' }).click();
      await page.locator('.toast').waitFor();
      const copied = await page.evaluate<string>('navigator.clipboard.readText()');
      t.is(copied, await details.locator('pre').innerText());
      await details.getByRole('button', { name: 'Preview' }).click();
      await page.locator('.summary[data-state="done"]').waitFor();
      t.deepEqual((await shown.row(1))[0], '1');
    },
    { page: 'tables' },
  );
});

browserTest('the status bar shows the ingestion rate and the memory', async (t) => {
  await rows('CREATE TABLE flows (v LONG, ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY');
  await onPage(t, async (shown) => {
    const status = shown.page.getByRole('contentinfo', { name: 'Status' });
    await status.getByText(/^Memory \d[\d.]* MiB$/).waitFor();
    t.is(await status.getByText('Ingesting').count(), 0, 'there is no ingestion');
    await rows('INSERT INTO flows SELECT x, x::timestamp FROM long_sequence(100000)');
    await status.getByText(/^Ingesting \d[\d,\s]* rows\/s$/).waitFor();
    await status.getByText('Ingesting').click();
    await shown.isAt('Tables and ingestion');
  });
});

browserTest('tables and running queries are displayed in every theme', async (t) => {
  await onPage(
    t,
    async (shown) => {
      await shown.page.locator('.details tbody tr').first().waitFor();
      await inEveryTheme(shown, async (theme) => {
        await shown.screenshot(picture(`tables-${theme}`));
      });
      await shown.go('Running queries');
      await shown.page.getByText('No running queries').waitFor();
      await shown.screenshot(picture('queries-empty-light'));
    },
    { page: 'tables/trades' },
  );
});

browserTest('the table menu opens by mouse and keyboard', async (t) => {
  await rows('CREATE TABLE "odd <b>name" (v INT)');
  await onPage(t, async (shown) => {
    const { page } = shown;
    const row = page.getByRole('treeitem', { name: /^odd/ });
    await row.click({ button: 'right' });
    const menu = page.getByRole('menu');
    await menu.waitFor();
    await page.keyboard.press('Escape');
    t.is(await menu.count(), 0);
    t.is(await page.locator(':focus').getAttribute('id'), await row.getAttribute('id'));
    await page.keyboard.press('Shift+F10');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.locator('.details').waitFor();
    t.is(await page.locator('#details-title').innerText(), 'odd <b>name');
  });
});

browserTest('dropping a table asks for confirmation with the focus on Cancel', async (t) => {
  await rows('CREATE TABLE unwanted (v INT)');
  await onPage(t, async (shown) => {
    const { page } = shown;
    const execute = async (): Promise<void> => {
      await page.getByRole('treeitem', { name: /^unwanted/ }).click({ button: 'right' });
      await page.getByRole('menuitem', { name: /^Drop/ }).click();
      await page.getByRole('dialog').waitFor();
    };
    await execute();
    t.is(await page.locator(':focus').innerText(), 'Cancel');
    await page.keyboard.press('Enter');
    t.is((await rows("SELECT * FROM tables() WHERE table_name = 'unwanted'")).length, 1);
    await execute();
    await page.getByRole('button', { name: 'Drop unwanted' }).click();
    await page.locator('.toast', { hasText: 'unwanted was dropped' }).waitFor();
    t.is((await rows("SELECT * FROM tables() WHERE table_name = 'unwanted'")).length, 0);
  });
});

browserTest('a running query is listed and can be cancelled', async (t) => {
  const slow =
    'SELECT count() FROM long_sequence(400000000000) WHERE rnd_double() = 2 -- <b>slow</b>';
  const answer = fetch(`${server().url}/exec?query=${encodeURIComponent(slow)}`);
  await onPage(
    t,
    async (shown) => {
      const row = shown.page.locator('.listing tbody tr', { hasText: 'long_sequence' });
      await row.waitFor();
      t.regex(await row.locator('code').innerText(), /<b>slow<\/b>/);
      await shown.page.locator('.count-badge', { hasText: '1' }).waitFor();
      await inEveryTheme(shown, async (theme) => {
        await shown.screenshot(picture(`queries-${theme}`));
      });
      await row.getByRole('button', { name: 'Cancel' }).click();
      await shown.page.getByText('No running queries').waitFor();
    },
    { page: 'queries' },
  );
  t.is((await answer).status, 400);
});

/** Returns the file that an entry of the export menu produces. */
async function exported({ page }: ConsolePage, entry: string): Promise<Buffer> {
  const coming = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export rows' }).click();
  await page.getByRole('menuitem', { name: entry, exact: true }).click();
  const stream = await (await coming).createReadStream();
  return Buffer.concat((await stream.toArray()) as Buffer[]);
}

browserTest('a result is downloaded as CSV, Parquet and JSON', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    t.is(await shown.query('SELECT 1 AS one, 2 AS two'), 'done');
    const all = (format: string): Promise<Buffer> => exported(shown, `All rows as ${format}`);
    t.is((await all('CSV')).toString(), '"one","two"\r\n1,2\r\n');
    t.is((await all('Parquet')).toString('latin1', 0, 4), 'PAR1');
    t.like(JSON.parse((await all('JSON')).toString()), { dataset: [[1, 2]], count: 1 });
    // The statement is too long for a URL, so the page fetches the result itself.
    const long = `SELECT /* ${'x'.repeat(20_000)} */ 3 AS three`;
    await page.evaluate('delete globalThis.showSaveFilePicker');
    t.is(await shown.query(long), 'done');
    t.is((await all('CSV')).toString(), '"three"\r\n3\r\n');
    await page.locator('.toast', { hasText: 'result.csv downloaded: 12 B' }).waitFor();
  });
});

browserTest('loaded rows are exported as shown', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    t.is(await shown.query('SELECT x, x * 10 AS y FROM long_sequence(5)'), 'done');
    await page.getByLabel('Filter loaded rows').fill('x > 3');
    await page.locator('.inline-filter .hint', { hasText: '2 of 5' }).waitFor();
    const csv = await exported(shown, 'The 2 rows shown, as CSV');
    t.is(csv.toString(), 'x,y\r\n4,40\r\n5,50\r\n');
    const json = await exported(shown, 'The 2 rows shown, as JSON');
    t.deepEqual(JSON.parse(json.toString()), [
      { x: 4, y: 40 },
      { x: 5, y: 50 },
    ]);
  });
});
