/** Tabs that follow a query: receiving its latest rows, pausing, failing and resuming. */
import { seriousViolations } from './axe.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage, rows } = browserSuite('following a query in a browser');

/**
 * Returns the number of running server queries that contain a mark. This query itself is not
 * counted.
 */
async function open(mark: string): Promise<number> {
  const found = await rows('SELECT query FROM query_activity()');
  return found.filter(([text]) => String(text).includes(mark)).length;
}

browserTest('a followed query shows its latest rows while visible', async (t) => {
  await rows('CREATE TABLE base (ts TIMESTAMP, n LONG, k SYMBOL) TIMESTAMP(ts) PARTITION BY DAY');
  const more = (from: number, to: number): Promise<unknown> =>
    rows(
      `INSERT INTO base SELECT timestamp '2026-01-01' + n * 1000000, n, 'k' || n % 2
         FROM (SELECT x + ${from - 1} AS n FROM long_sequence(${to - from + 1}))`,
    );
  await more(1, 200);
  await onPage(t, async (shown) => {
    const { page } = shown;
    const streams: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/live') && request.postData()?.includes('n * 10')) {
        streams.push(request.postData() ?? '');
      }
    });
    const cell = (text: string) => page.locator('.follow .grid-cell', { hasText: text });
    const query = "SELECT ts, n * 10 AS tenfold FROM base WHERE k = 'k1' -- odd ones";
    t.is(await shown.query(query), 'done');
    await page.getByRole('button', { name: 'Follow the query' }).click();
    await page.getByRole('tab', { name: 'Follow Query 1' }).waitFor();
    await cell('1,990').waitFor();
    await page.locator('.follow-state', { hasText: /^Live$/ }).waitFor();
    await more(201, 203);
    await cell('2,030').waitFor();
    t.is(await cell('2,020').count(), 0, 'only rows of the query are shown');
    t.is(streams.length, 1);
    await inEveryTheme(shown, async (theme) => {
      t.deepEqual(await seriousViolations(page), [], theme);
      await shown.screenshot(picture(`follow-query-${theme}`));
    });

    const isQuiet = async (what: string): Promise<void> => {
      const before = streams.length;
      await page.waitForTimeout(1500);
      t.is(streams.length, before, what);
      t.is(await open('n * 10'), 0, what);
    };
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await isQuiet('paused');
    await more(205, 205);
    await page.waitForTimeout(1200);
    t.is(await cell('2,050').count(), 0);
    await page.getByRole('button', { name: 'Resume' }).click();
    await cell('2,050').waitFor();
    const hide = (isHidden: boolean): Promise<unknown> =>
      page.evaluate(`(() => {
        Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${isHidden} });
        document.dispatchEvent(new Event('visibilitychange'));
      })()`);
    await hide(true);
    await isQuiet('hidden');
    await more(207, 207);
    await hide(false);
    await cell('2,070').waitFor();

    await rows('DROP TABLE base');
    await page.locator('.follow-trouble', { hasText: 'does not exist' }).waitFor();
    t.is(await cell('2,070').count(), 1, 'the rows remain visible');
    await rows('CREATE TABLE base (ts TIMESTAMP, n LONG, k SYMBOL) TIMESTAMP(ts) PARTITION BY DAY');
    await more(301, 301);
    await cell('3,010').waitFor();
    t.is(await page.locator('.follow-trouble').count(), 0);
    await shown.reload();
    await cell('3,010').waitFor();
  });
});

browserTest('only a query can be followed', async (t) => {
  await onPage(t, async (shown) => {
    t.is(await shown.query('SHOW TABLES'), 'done');
    await shown.page.getByRole('button', { name: 'Follow the query' }).click();
    await shown.page.locator('.toast', { hasText: 'Only queries can be followed.' }).waitFor();
    t.is(await shown.page.getByRole('tab', { name: /^Follow/ }).count(), 0);
  });
});
