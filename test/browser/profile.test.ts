/** Column statistics of tables and results, as computed by the server. */
import { seriousViolations } from './axe.js';
import { statementOf } from './console-page.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage, rows } = browserSuite('summaries of columns in a browser');

const MANY = `CREATE TABLE many AS (
  SELECT (x * 1000000)::timestamp ts, x % 1000 AS "n""1",
    CASE WHEN x % 10 = 0 THEN null
    ELSE x / 4.0 END AS d, CASE WHEN x % 3 = 0 THEN '<b>one</b>' ELSE 'two' END AS s,
    x % 2 = 0 AS "select"
  FROM long_sequence(300000)
) TIMESTAMP(ts) PARTITION BY DAY`;

browserTest('a table summary covers all of its rows, in every theme and size', async (t) => {
  await rows(MANY);
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      const requested: string[] = [];
      page.on('request', (request) => requested.push(statementOf(request)));
      await page.getByRole('tab', { name: 'Columns' }).waitFor();
      const isSummary = (text: string): boolean => text.includes('AS filled');
      t.false(requested.some(isSummary), 'nothing is requested before the tab is opened');
      await page.getByRole('tab', { name: 'Summary' }).click();
      await page.locator('.server-summary[aria-busy="false"]').nth(4).waitFor();
      const facts = (column: string) =>
        page.getByRole('region', { name: `Summary of ${column}`, exact: true });
      t.regex(await facts('n"1').innerText(), /Rows\s+300,000\s+Null\s+0\s+Distinct\s+1,000/);
      t.regex(await facts('d').innerText(), /Null\s+30,000 \(10 %\)[^]*Max\s+74999.75/);
      t.is(await facts('d').locator('.histogram rect').count(), 24);
      t.regex(await facts('ts').innerText(), /Min\s+1970-01-01 00:00:01/);
      t.regex(await facts('s').innerText(), /two\s+200,000\s+<b>one<\/b>\s+100,000/);
      t.regex(await facts('select').innerText(), /false\s+150,000\s+true\s+150,000/);
      const before = requested.filter(isSummary).length;
      await rows("INSERT INTO many(ts, d) VALUES ('1980-01-01', 1)");
      await page.locator('.facts', { hasText: '300,001' }).waitFor();
      t.is(requested.filter(isSummary).length, before, 'a commit does not cause a request');
      await inEveryTheme(shown, async (theme) => {
        t.deepEqual(await seriousViolations(page), [], theme);
        await shown.screenshot(picture(`summary-${theme}`));
      });
      for (const width of [1024, 390]) {
        await shown.resize(width, 844);
        t.deepEqual(await seriousViolations(page), [], `${width}`);
        await shown.screenshot(picture(`summary-${width}`));
      }
      await page.getByRole('button', { name: 'Refresh' }).click();
      await page.locator('.facts', { hasText: '300,001' }).waitFor();
      await facts('select').locator('dd', { hasText: '300,001' }).waitFor();
    },
    { page: 'tables/many' },
  );
});

browserTest('all rows of a result are summarized only on request', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const inspector = page.locator('.inspector');
    const inspect = async (): Promise<void> => {
      await page.locator('.grid').focus();
      await page.keyboard.press('Enter');
      await inspector.locator('.profile-facts').waitFor();
    };
    t.is(await shown.query('SELECT x * 2 AS x FROM long_sequence(250000) -- all'), 'done');
    await inspect();
    t.regex(await inspector.innerText(), /Rows\s+100,000\b/);
    await inspector.getByRole('button', { name: 'All rows' }).click();
    await inspector.locator('.server-summary[aria-busy="false"]').waitFor();
    t.regex(await inspector.innerText(), /Rows\s+250,000\b[^]*Max\s+500000\s/);
    t.deepEqual(await seriousViolations(page), []);
    await shown.screenshot(picture('inspector-all'));

    const running = async (): Promise<number> => {
      const found = await rows('SELECT query FROM query_activity()');
      return found.filter(([text]) => String(text).startsWith('SELECT count() AS rows')).length;
    };
    await shown.write('SELECT rnd_double() v FROM long_sequence(400000000000)');
    await page.keyboard.press('Control+Enter');
    await page.locator('.grid-head-cell', { hasText: 'v' }).waitFor();
    await page.locator('[data-action="cancel"]:enabled').click();
    await page.locator('.summary[data-state="cancelled"]').waitFor();
    await inspect();
    await inspector.getByRole('button', { name: 'All rows' }).click();
    for (let tries = 0; (await running()) === 0 && tries < 100; tries += 1) {
      await page.waitForTimeout(50);
    }
    t.is(await running(), 1);
    await page.keyboard.press('Escape');
    for (let tries = 0; (await running()) > 0 && tries < 40; tries += 1) {
      await page.waitForTimeout(50);
    }
    t.is(await running(), 0, 'the query stops before its time limit of 10 s');
  });
});
