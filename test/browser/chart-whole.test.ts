/** Charts of partially loaded results, candlesticks by key, bars from zero, time ranges. */
import { statementOf } from './console-page.js';
import { seriousViolations } from './axe.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage } = browserSuite('charts of whole results', { args: ['--demo'] });

const CANDLES =
  'SELECT timestamp, symbol, first(price) AS open, max(price) AS high, min(price) AS low, ' +
  'last(price) AS close FROM trades SAMPLE BY 15m';
const MANY =
  "SELECT timestamp_sequence('2026-01-01', 1000000) ts, x v FROM long_sequence(250000) ORDER BY ts";

browserTest('a truncated result is charted in full, aggregated by the server', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await page.request.post(new URL('/exec', page.url()).href, {
      form: { query: `CREATE TABLE many AS (${MANY}) TIMESTAMP(ts) PARTITION BY DAY` },
    });
    const requested = page.waitForRequest((request) =>
      / SAMPLE BY \d+T$/.test(statementOf(request)),
    );
    t.is(await shown.query('SELECT ts, v FROM many'), 'done');
    const answer = await (await requested).response();
    t.is(answer?.status(), 200);
    await page.locator('.zoom-hint', { hasText: '250,000 rows drawn as' }).waitFor();
    const name = (await page.locator('.plot').getAttribute('aria-label')) ?? '';
    t.regex(name, /lowest 1, highest 250000/);
    const points = Number(/, (\d+) points/.exec(name)?.[1]);
    t.true(points > 100 && points < 1500, `${points} points`);
    await shown.screenshot(picture('chart-whole-light'));
  });
});

browserTest(
  'candles of a keyed result show one key, and their columns can be chosen',
  async (t) => {
    for (const width of [1440, 1024, 390]) {
      await onPage(
        t,
        async (shown) => {
          const { page } = shown;
          t.is(await shown.query(CANDLES), 'done');
          if (width < 1180) {
            await page.keyboard.press('Alt+2');
          }
          await page.locator('.u-over').waitFor();
          t.is(await page.getByLabel('Chart type').inputValue(), 'candles');
          const keys = page.getByLabel('Candle key');
          t.true((await keys.locator('option').count()) > 1);
          await keys.selectOption({ index: 1 });
          await page.getByRole('button', { name: 'Columns' }).click();
          await page.getByLabel('Open', { exact: true }).selectOption({ label: 'close' });
          t.true((await shown.inkOfChart()) > 500);
          await inEveryTheme(shown, async (theme) => {
            await shown.screenshot(picture(`candles-by-key-${width}-${theme}`));
            t.deepEqual(await seriousViolations(page), []);
          });
        },
        { width },
      );
    }
  },
);

browserTest('the time range can be set to the last hour and moved back and forward', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    t.is(await shown.query('SELECT timestamp, avg(price) p FROM trades SAMPLE BY 1m'), 'done');
    await page.locator('.u-over').waitFor();
    const label = async (): Promise<string> =>
      (await page.locator('.plot').getAttribute('aria-label')) ?? '';
    const all = await label();
    await page.getByRole('button', { name: 'Time range' }).click();
    await page.getByRole('menuitem', { name: 'Last hour' }).click();
    await page.getByRole('button', { name: 'Reset zoom' }).waitFor();
    await page.getByRole('button', { name: 'Previous range' }).click();
    await page.getByRole('button', { name: 'Reset zoom' }).waitFor({ state: 'detached' });
    t.is(await label(), all);
    await page.getByRole('button', { name: 'Next range' }).click();
    await page.getByRole('button', { name: 'Reset zoom' }).waitFor();
  });
});

browserTest('a hidden chart stays hidden after a reload', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const query = 'SELECT timestamp, price FROM trades LIMIT 50';
    t.is(await shown.query(query), 'done');
    await page.locator('.u-over').waitFor();
    await page.locator('.view', { hasText: 'Chart' }).click();
    await page.locator('.u-over').waitFor({ state: 'detached' });
    await shown.reload();
    t.is(await shown.query(query), 'done');
    await page.locator('#cell-0-0').waitFor();
    t.is(await page.locator('.chart').count(), 0);
  });
});
