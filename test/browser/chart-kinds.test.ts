/** Every kind of chart is drawn, keeps its options, and can be saved as a file. */
import { readFile } from 'node:fs/promises';

import { seriousViolations } from './axe.js';
import type { ConsolePage } from './console-page.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage, rows } = browserSuite('kinds of charts in a browser', {
  args: ['--demo'],
});

const TIMES = "timestamp_sequence('2024-01-01', 60000000)";
const WAVES =
  `SELECT ${TIMES} AS ts, 20.0 + 10 * sin(x / 9.0) AS web, 12.0 + 6 * cos(x / 7.0) AS api, ` +
  `CASE WHEN x > 40 AND x < 55 THEN NULL ELSE 8.0 + x / 20.0 END AS jobs FROM long_sequence(120)`;
const KEYED =
  `SELECT ${TIMES} AS ts, rnd_symbol('ams','ber','cdg','dub','fra','lhr','mad','osl') AS site, ` +
  'rnd_double() * 90 AS load FROM long_sequence(2000)';
const BOOK =
  "SELECT CASE WHEN x % 2 = 0 THEN 'buy' ELSE 'sell' END AS side, " +
  'CASE WHEN x % 2 = 0 THEN 100.0 - x * 0.05 ELSE 100.0 + x * 0.05 END AS price, ' +
  '1.0 + x % 7 AS amount FROM long_sequence(80)';

/** Draws a query as one kind of chart, with no other charts on the page. */
async function draw(shown: ConsolePage, query: string, kind: string): Promise<void> {
  const { page } = shown;
  if ((await shown.query(query)) !== 'done') {
    throw new Error(`refused: ${query}`);
  }
  const chart = page.getByRole('button', { name: 'Chart', exact: true });
  if ((await chart.getAttribute('aria-pressed')) !== 'true') {
    await chart.click();
  }
  await page.getByLabel('Chart type').selectOption(kind);
  await page.locator(`.plot[aria-label]`).waitFor();
}

async function saved({ page }: ConsolePage, name: string): Promise<Buffer> {
  await page.getByRole('button', { name: 'Save chart' }).click();
  const download = page.waitForEvent('download');
  await page.getByRole('menuitem', { name }).click();
  return await readFile(await (await download).path());
}

/** Returns the root element of an SVG, parsed as strict XML. */
async function rootOf({ page }: ConsolePage, svg: string): Promise<string> {
  // Parses on a separate page, because the content policy of the console's own page forbids it.
  const other = await page.context().newPage();
  const read = `new DOMParser().parseFromString(${JSON.stringify(svg)}, 'image/svg+xml')`;
  const name = await other.evaluate<string>(`${read}.documentElement.tagName`);
  await other.close();
  return name;
}

async function setOptions(
  { page }: ConsolePage,
  options: Readonly<Record<string, string>>,
): Promise<void> {
  await page.getByRole('button', { name: 'Chart options' }).click();
  const dialog = page.getByRole('dialog');
  for (const [label, value] of Object.entries(options)) {
    const field = dialog.getByLabel(label, { exact: false }).first();
    await (label === 'Scale' ? field.selectOption(value) : field.fill(value));
  }
  await dialog.getByRole('button', { name: 'Apply' }).click();
  await dialog.waitFor({ state: 'detached' });
}

const KINDS = [
  ['stacked', WAVES],
  ['heatmap', KEYED],
  ['histogram', 'SELECT rnd_double() + rnd_double() AS v FROM long_sequence(5000)'],
  ['depth', BOOK],
  ['gauge', WAVES],
  ['number', WAVES],
] as const;

for (const [kind, query] of KINDS) {
  browserTest(
    `a ${kind} chart is drawn in every theme and size and saved as image and data`,
    async (t) => {
      await onPage(t, async (shown) => {
        const { page } = shown;
        await draw(shown, query, kind);
        t.true((await shown.inkOfChart()) > 1000);
        await inEveryTheme(shown, async (theme) => {
          await shown.screenshot(picture(`chart-${kind}-${theme}`));
          t.deepEqual(await seriousViolations(page), [], theme);
        });
        const svg = (await saved(shown, 'Vector image (SVG)')).toString();
        t.regex(svg, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" width="\d/);
        t.true(svg.length > 1000, svg);
        t.is(await rootOf(shown, svg), 'svg');
        const png = await saved(shown, 'Image (PNG)');
        t.deepEqual([...png.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
        t.true(png.length > 2000, `${png.length} bytes`);
        const csv = (await saved(shown, 'Points (CSV)')).toString();
        t.true(csv.split('\r\n').length > 3, csv.slice(0, 200));
        for (const [width, height] of [
          [1024, 768],
          [390, 844],
        ] as const) {
          await shown.resize(width, height);
          // Below 1180 pixels only one view is visible at a time.
          const chart = page.getByRole('button', { name: 'Chart', exact: true });
          if ((await chart.getAttribute('aria-pressed')) !== 'true') {
            await chart.click();
          }
          t.true((await shown.inkOfChart()) > 500, `${width}`);
          await shown.screenshot(picture(`chart-${kind}-${width}`));
          t.deepEqual(await seriousViolations(page), [], `${width}`);
        }
      });
    },
  );
}

browserTest('options are applied, refused when invalid, and survive a reload', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await draw(shown, WAVES, 'line');
    await page.getByRole('button', { name: 'Chart options' }).click();
    const dialog = page.getByRole('dialog');
    await shown.screenshot(picture('chart-options-light'));
    t.deepEqual(await seriousViolations(page), []);
    await dialog.getByLabel('Decimals').fill('x');
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'Decimals must be a number' }).waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await setOptions(shown, {
      Unit: 'req/s',
      Decimals: '1',
      Thresholds: '20 warn, 28 error',
      'Annotation query': "SELECT '2024-01-01T00:30:00Z'::timestamp AS at, 'deployed' AS what",
    });
    t.regex(await page.locator('.readout').innerText(), /\d\.\d req\/s/);
    const svg = async (): Promise<string> => (await saved(shown, 'Vector image (SVG)')).toString();
    const text = await svg();
    t.regex(text, />warning 20\.0 req\/s</);
    t.regex(text, />deployed</);
    await shown.screenshot(picture('chart-annotated-light'));
    await setOptions(shown, { Scale: 'log' });
    t.regex(await svg(), />10\.0 req\/s</);
    await shown.screenshot(picture('chart-log-light'));
    await page.waitForTimeout(600);
    await shown.reload();
    t.is(await shown.run(), 'done');
    await page.locator('.readout', { hasText: 'req/s' }).waitFor();
  });
});

browserTest('failed annotations are reported below the chart and change nothing', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await draw(shown, WAVES, 'line');
    await setOptions(shown, { 'Annotation query': 'CREATE TABLE made_by_a_chart (v LONG)' });
    await page
      .locator('.zoom-hint', { hasText: 'the annotation query must only read data' })
      .waitFor();
    const found = await rows("SELECT * FROM tables() WHERE table_name = 'made_by_a_chart'");
    t.deepEqual(found, []);
    await setOptions(shown, { 'Annotation query': 'SELECT nothing FROM nowhere' });
    await page.locator('.zoom-hint', { hasText: 'No annotations: ' }).waitFor();
    t.true((await shown.inkOfChart()) > 500);
  });
});
