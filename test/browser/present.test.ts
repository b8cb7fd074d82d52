/** Presented dashboards: titled charts on one screen, at common screen sizes. */
import type { ConsolePage } from './console-page.js';
import { until } from '../until.js';
import { browserSuite, picture } from './suite.js';

const { browserTest, onPage } = browserSuite('presented dashboards', { args: ['--demo'] });

const SIZES = [
  [1440, 900],
  [1920, 1080],
] as const;

function dashboard(count: number, refresh = '1s'): string {
  const symbols = ['BTC-USD', 'ETH-USD', 'SOL-USD'];
  const cells = Array.from({ length: count }, (_, at) => {
    const symbol = symbols[at % symbols.length] ?? '';
    const title = at === 0 ? ` title="Price of ${symbol}"` : '';
    return [
      `\`\`\`sql cell=cell_${at + 1}${title} view=chart`,
      `SELECT timestamp, avg(price) AS price FROM trades WHERE symbol = '${symbol}' SAMPLE BY 1h`,
      '```',
    ].join('\n');
  });
  const head = `---\ntidemark-notebook: 1\nlayout: grid\nrefresh: ${refresh}\n---`;
  return `${[head, ...cells, '<!-- cell -->\nA text'].join('\n\n')}\n`;
}

async function open({ page }: ConsolePage, name: string, text: string): Promise<void> {
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Tabs', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Open notebook file' }).click();
  const file = { name: `${name}.md`, mimeType: 'text/markdown', buffer: Buffer.from(text) };
  await (await chooser).setFiles(file);
  await page.locator('.notebook').waitFor();
}

/**
 * Returns the chart titles of a presented page, and the elements that are visible or scrollable but
 * should not be.
 */
const INSPECT = `(() => {
  const inside = ({ left, top, right, bottom }) =>
    left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
  const scrolled = [...document.querySelectorAll('*')].filter((one) => {
    const { overflowY, overflowX } = getComputedStyle(one);
    return (/auto|scroll/.test(overflowY) && one.scrollHeight > one.clientHeight + 1)
      || (/auto|scroll/.test(overflowX) && one.scrollWidth > one.clientWidth + 1);
  });
  const shown = (selector) => [...document.querySelectorAll(selector)]
    .filter((one) => one.checkVisibility()).map((one) => one.className);
  const boxes = [...document.querySelectorAll('.presented')];
  return {
    titles: boxes.map((one) => one.querySelector('h3').innerText),
    charts: [...document.querySelectorAll('.presented canvas')]
      .filter((one) => inside(one.getBoundingClientRect())
        && one.getBoundingClientRect().height > 40).length,
    outside: boxes.filter((one) => !inside(one.getBoundingClientRect())).length,
    scrolled: scrolled.map((one) => one.className),
    tools: shown('.cm-editor, .toolbar, .chart-bar, .zoom-hint, .rail, .status, .tabs, .cell-head'),
    page: document.documentElement.scrollHeight <= innerHeight,
  };
})()`;

interface Inspection {
  readonly titles: readonly string[];
  readonly charts: number;
}

browserTest('a dashboard in presentation mode fits the screen with many charts', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    for (const count of [1, 2, 4, 5, 9, 12]) {
      await open(shown, `Trading ${count}`, dashboard(count));
      await page.getByRole('button', { name: 'Run all' }).click();
      await page.getByRole('button', { name: 'Present', exact: true }).click();
      t.true(new URL(page.url()).searchParams.has('present'));
      for (const [width, height] of SIZES) {
        await shown.resize(width, height);
        const inspect = async (): Promise<Inspection> => await page.evaluate<Inspection>(INSPECT);
        await until(async () => (await inspect()).charts === count, `${count} charts are drawn`);
        const { titles, ...rest } = await inspect();
        const expected = { charts: count, outside: 0, scrolled: [], tools: [], page: true };
        t.deepEqual(rest, expected, `${count} at ${width}`);
        t.is(titles[0], 'Price of BTC-USD');
        t.true(
          titles.slice(1).every((title) => title === 'Price · trades'),
          titles.join(),
        );
        await shown.screenshot(picture(`present-${count}-${width}`));
      }
      await page.keyboard.press('Escape');
      await page.getByRole('toolbar', { name: 'Notebook' }).waitFor();
      t.false(new URL(page.url()).searchParams.has('present'));
    }
  });
});

browserTest('a link starts presentation mode with refreshes and a hidden pointer', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await open(shown, 'Live', dashboard(4));
    await page.getByRole('button', { name: 'Run all' }).click();
    await page.locator('.cell canvas').first().waitFor();
    await page.goto(page.url().replace(/\/?#.*$/, '/?present#sql'));
    await page.locator('.presented canvas').nth(3).waitFor();
    let requested = 0;
    page.on('request', (request) => {
      requested += request.postData()?.includes('SAMPLE') === true ? 1 : 0;
    });
    await until(() => requested >= 8, 'all charts are requested again');
    await page.locator('.presentation.still').waitFor();
    const cursor = "getComputedStyle(document.querySelector('.presentation')).cursor";
    t.is(await page.evaluate(cursor), 'none');
    await page.mouse.move(300, 300);
    await page.locator('.presentation:not(.still)').waitFor();
  });
});

browserTest('cells have titles, and a dashboard starts without a statement', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await page.getByRole('button', { name: 'Tabs', exact: true }).click();
    await page.getByRole('menuitem', { name: 'New dashboard' }).click();
    await page.locator('.notebook.gridded').waitFor();
    t.is(await page.locator('.cell').count(), 0);
    await page.getByRole('button', { name: 'Chart', exact: true }).click();
    await page.getByLabel('Cell title').fill('Mean "price"');
    await page.keyboard.press('Enter');
    await page.locator('.cell .cm-content').click();
    await page.keyboard.insertText('SELECT timestamp, price FROM trades LIMIT 100');
    await page.keyboard.press('Control+Enter');
    await page.locator('.cell canvas').waitFor();
    await page.getByRole('button', { name: 'Present', exact: true }).click();
    await page.locator('.presented h3', { hasText: 'Mean "price"' }).waitFor();
  });
});
