/** Notebooks as dashboards: a grid of charts with a common time range and automatic refresh. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { ExecutionContext } from 'ava';
import type { Locator, Page } from 'playwright-core';

import { startTestServer } from '../golden/server.js';
import { seriousViolations } from './axe.js';
import { ConsolePage, launchBrowser, statementOf, type PageOptions } from './console-page.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage, rows } = browserSuite('dashboards in a browser', { args: ['--demo'] });

function cell(page: Page, name: string): Locator {
  return page.getByRole('article', { name: `Cell ${name}`, exact: true });
}

interface Board {
  readonly settings?: readonly string[];
  readonly cells: readonly (readonly [attributes: string, text: string])[];
}

function fileOf({ settings = [], cells }: Board): string {
  const head = ['---', 'tidemark-notebook: 1', ...settings, '---'].join('\n');
  const fences = cells.map(([attributes, text]) => `\`\`\`sql cell=${attributes}\n${text}\n\`\`\``);
  return `${[head, ...fences].join('\n\n')}\n`;
}

/** Opens a notebook file and runs all cells. */
async function open({ page }: ConsolePage, board: Board): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'dashboard-'));
  const path = join(folder, 'board.md');
  await writeFile(path, fileOf(board));
  await page.getByRole('button', { name: 'Tabs', exact: true }).click();
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('menuitem', { name: 'Open notebook file' }).click();
  await (await chooser).setFiles(path);
  const run = page.locator('.notebook-bar').getByRole('button', { name: 'Run all' });
  await run.click();
  await page
    .getByText('Nothing has run, and nothing will run until you run it')
    .waitFor({ state: 'detached' });
  await run.waitFor();
  await rm(folder, { recursive: true });
}

/** Collects the cell statements that the page sends from now on. */
function listen(page: Page, table: string): string[] {
  const sent: string[] = [];
  page.on('request', (request) => {
    const statement = statementOf(request);
    if (statement.includes(table) && new URL(request.url()).pathname === '/exec') {
      sent.push(statement);
    }
  });
  return sent;
}

/** Number of seconds for which the server is down; `AWAY_S=3600` simulates an hour-long outage. */
const AWAY_S = Number(process.env['AWAY_S'] ?? 8);

const PRICES = 'SELECT timestamp, avg(price) AS price FROM trades SAMPLE BY 15m';
const BARS =
  'SELECT timestamp, first(price) AS open, max(price) AS high, min(price) AS low, ' +
  "last(price) AS close FROM trades WHERE symbol = 'BTC-USD' AND timestamp >= @from " +
  'AND timestamp < @to SAMPLE BY 30m';
const BOARD: Board = {
  settings: ['layout: grid', 'range: now-24h .. now'],
  cells: [
    ['prices view=chart folded=true width=6 height=9', PRICES],
    ['candles view=chart folded=true width=6 height=9', BARS],
    [
      'latest folded=true width=4 height=8',
      'SELECT * FROM trades LATEST ON timestamp PARTITION BY symbol',
    ],
    [
      'shares view=chart folded=true width=8 height=8',
      'SELECT symbol, sum(amount) AS amount FROM trades',
    ],
  ],
};

const SIZES: readonly PageOptions[] = [
  { width: 1440, height: 900 },
  { width: 1024, height: 768 },
  { width: 390, height: 844 },
];

async function checkScreen(t: ExecutionContext, shown: ConsolePage, name: string): Promise<void> {
  await inEveryTheme(shown, async (theme) => {
    t.deepEqual(await seriousViolations(shown.page), [], `${name} in ${theme}`);
    await shown.screenshot(picture(`${name}-${theme}`));
  });
}

browserTest('a grid of charts is readable at each width and in each theme', async (t) => {
  for (const size of SIZES) {
    await onPage(
      t,
      async (shown) => {
        const { page } = shown;
        await open(shown, BOARD);
        await cell(page, 'candles').locator('.plot canvas').waitFor();
        await cell(page, 'shares').locator('.plot canvas').waitFor();
        await page.waitForTimeout(500);
        await checkScreen(t, shown, `dashboard-${size.width ?? 0}`);
        const isWide = await page.evaluate<boolean>(
          'document.documentElement.scrollWidth > innerWidth',
        );
        t.false(isWide, 'the page has no horizontal scroll bar');
      },
      size,
    );
  }
});

browserTest('cells are resized with the pointer and the keyboard', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await open(shown, BOARD);
    const first = cell(page, 'prices');
    const before = await first.boundingBox();
    const corner = first.getByLabel('Cell size');
    const at = await corner.boundingBox();
    t.truthy(before && at);
    if (!before || !at) {
      return;
    }
    await page.mouse.move(at.x + 12, at.y + 12);
    await page.mouse.down();
    await page.mouse.move(at.x + 12 + before.width / 3, at.y + 12 + 80, { steps: 5 });
    await page.mouse.up();
    const after = await first.boundingBox();
    t.true((after?.width ?? 0) > before.width * 1.25);
    t.is(Math.round((after?.height ?? 0) - before.height), 80);
    await corner.focus();
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('ArrowUp');
    const byKeys = await first.boundingBox();
    t.true((byKeys?.width ?? 0) < (after?.width ?? 0));
    t.is(Math.round((after?.height ?? 0) - (byKeys?.height ?? 0)), 40);
    await page.getByRole('button', { name: 'Undo', exact: true }).click();
    await page.getByRole('button', { name: 'Undo', exact: true }).click();
    await page.getByRole('button', { name: 'Undo', exact: true }).click();
    t.deepEqual(await first.boundingBox(), before);
  });
});

browserTest('a range selected in one chart applies to all charts, and can be reset', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await open(shown, BOARD);
    const plot = cell(page, 'prices').locator('.plot .u-over');
    await plot.waitFor();
    await cell(page, 'candles').locator('.plot canvas').waitFor();
    await page.waitForTimeout(800);
    const sent = listen(page, 'trades');
    const box = await plot.boundingBox();
    t.truthy(box);
    if (!box) {
      return;
    }
    await page.mouse.move(box.x + box.width * 0.25, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40, { steps: 5 });
    await page.mouse.up();
    await page.getByRole('button', { name: 'Reset zoom' }).waitFor();
    await page.waitForTimeout(1500);
    const cut = sent.find((one) => one.includes('avg(price)'));
    const candles = sent.find((one) => one.includes('first(price)'));
    t.regex(cut ?? '', /timestamp >= '20\S+Z' AND timestamp <= '20/);
    t.regex(candles ?? '', /^DECLARE @from := '20\S+Z'::timestamp/);
    const ends = (text = ''): string[] => text.match(/20\d\d-\S+?Z/g)?.slice(0, 2) ?? [];
    t.deepEqual(ends(cut), ends(candles), 'both charts show the same range');
    t.is(sent.filter((one) => one.includes('avg(price)')).length, 1);
    t.true(await page.getByLabel('From', { exact: true }).isVisible());
    await checkScreen(t, shown, 'dashboard-zoomed');
    await page.getByRole('button', { name: 'Reset zoom' }).click();
    await page.waitForTimeout(1500);
    t.is(await page.getByRole('combobox', { name: 'Time range' }).inputValue(), 'Last 24 hours');
    t.is(sent.filter((one) => one.includes('avg(price)')).length, 2);
    await page.getByRole('combobox', { name: 'Time range' }).selectOption('Custom range');
    await page.getByLabel('From', { exact: true }).fill('soon');
    await page.keyboard.press('Enter');
    await page.getByText('"soon" is not a valid time').waitFor();
  });
});

browserTest('cells refresh at their interval; a hidden page sends no requests', async (t) => {
  await rows('CREATE TABLE beat (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY');
  await rows("INSERT INTO beat VALUES ('2026-01-01', 1)");
  await onPage(t, async (shown) => {
    const { page } = shown;
    await open(shown, { cells: [['one', 'SELECT count() AS many FROM beat']] });
    await page.getByLabel('Refresh', { exact: true }).selectOption('Every 1 s');
    await page.locator('.refresh-state', { hasText: /^Live, / }).waitFor();
    const sent = listen(page, 'beat');
    await page.waitForTimeout(5000);
    t.true(sent.length >= 4 && sent.length <= 6, `${sent.length} in 5 s`);
    await rows("INSERT INTO beat VALUES ('2026-01-02', 2)");
    await cell(page, 'one').locator('.grid-cell', { hasText: /^2$/ }).waitFor();
    await hide(page, true);
    await page.waitForTimeout(300);
    sent.length = 0;
    await page.waitForTimeout(2500);
    t.deepEqual(sent, [], 'a hidden page sends no requests');
    await hide(page, false);
    await page.waitForTimeout(300);
    t.true(sent.length >= 1, 'cells refresh as soon as the page is visible');
    // Switching to another tab has the same effect as hiding the page.
    await page.keyboard.press('Alt+t');
    await page.waitForTimeout(300);
    sent.length = 0;
    await page.waitForTimeout(2500);
    t.deepEqual(sent, []);
    await page.keyboard.press('Alt+PageUp');
    await page.locator('.refresh-state', { hasText: /^Live, / }).waitFor();
    // A statement that is being edited does not run automatically.
    await cell(page, 'one').locator('.cm-content').click();
    await page.keyboard.press('Control+A');
    await page.keyboard.insertText('DROP TABLE beat');
    await page.waitForTimeout(2500);
    t.true(sent.length > 0);
    t.deepEqual(
      sent.filter((one) => one.includes('DROP')),
      [],
    );
    await page.getByLabel('Refresh', { exact: true }).selectOption('No refresh');
  });
});

/** Simulates a change of the page's visibility. */
async function hide(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate(
    `Object.defineProperty(document, 'hidden', { value: ${String(isHidden)}, configurable: true });
     document.dispatchEvent(new Event('visibilitychange'))`,
  );
}

browserTest('only cells whose tables changed are refreshed', async (t) => {
  for (const table of ['fed_a', 'fed_b', 'fed_c', 'fed_d']) {
    await rows(`CREATE TABLE ${table} (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY`);
    await rows(`INSERT INTO ${table} VALUES ('2026-01-01', 1)`);
  }
  await onPage(t, async (shown) => {
    const { page } = shown;
    await open(shown, {
      cells: ['a', 'b', 'c', 'd'].map((one) => [
        `cell_${one} folded=true`,
        `SELECT count() AS many, '${one}' AS named FROM fed_${one}`,
      ]),
    });
    await page.getByLabel('Refresh', { exact: true }).selectOption('When tables change');
    await page.locator('.refresh-state', { hasText: /^Live/ }).waitFor();
    await page.waitForTimeout(2500);
    const sent = listen(page, 'many, ');
    await page.waitForTimeout(3000);
    t.deepEqual(sent, [], 'nothing is sent while nothing changes');
    await rows("INSERT INTO fed_a VALUES ('2026-01-02', 2)");
    await cell(page, 'cell_a').locator('.grid-cell', { hasText: /^2$/ }).waitFor();
    await rows("INSERT INTO fed_d VALUES ('2026-01-02', 2)");
    await page.locator('.cells').evaluate('(cells) => cells.scrollTo(0, 9999)');
    await cell(page, 'cell_d').locator('.grid-cell', { hasText: /^2$/ }).waitFor();
    t.deepEqual(
      sent.map((one) => /fed_./.exec(one)?.[0]),
      ['fed_a', 'fed_d'],
    );
  });
});

browserTest('a lost connection is reported once, and refreshes resume automatically', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'dashboard-away-'));
  const first = await startTestServer({ root });
  const browser = await launchBrowser();
  try {
    const execute = (statement: string): Promise<Response> =>
      fetch(`${first.url}/exec?query=${encodeURIComponent(statement)}`);
    await execute('CREATE TABLE away (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY');
    await execute("INSERT INTO away VALUES ('2026-01-01', 1)");
    const shown = await ConsolePage.open(browser, first.url);
    const { page } = shown;
    const cells = ['x', 'y', 'z'].map(
      (one) =>
        [`${one} folded=true`, `SELECT count() AS many, '${one}' AS named FROM away`] as const,
    );
    await open(shown, { cells });
    await page.getByLabel('Refresh', { exact: true }).selectOption('Every 1 s');
    await page.locator('.refresh-state', { hasText: /^Live, / }).waitFor();
    await first.stop();
    await page.locator('.refresh-state', { hasText: 'The server is not responding.' }).waitFor();
    t.true(await cell(page, 'x').locator('.grid-cell', { hasText: /^1$/ }).isVisible());
    const sent = listen(page, 'many, ');
    await page.waitForTimeout(1000 * AWAY_S);
    t.true(sent.length <= AWAY_S / 2, `${sent.length} attempts in ${AWAY_S} s`);
    t.log(`${sent.length} attempts in ${AWAY_S} s`);
    await checkScreen(t, shown, 'dashboard-away');
    const { host } = new URL(first.url);
    const second = await startTestServer({ root, set: [`http.bind.to=${host}`] });
    await execute("INSERT INTO away VALUES ('2026-01-02', 2)");
    await page.locator('.refresh-state', { hasText: /^Live, / }).waitFor();
    for (const one of ['x', 'y', 'z']) {
      await cell(page, one).locator('.grid-cell', { hasText: /^2$/ }).waitFor();
    }
    t.is(await page.locator('.cell-late').count(), 0);
    await second.stop();
  } finally {
    await browser.close();
    await first.stop();
    await rm(root, { recursive: true, force: true });
  }
});

browserTest('a dashboard survives a reload, and fills the screen', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await open(shown, { ...BOARD, settings: ['layout: grid', 'refresh: 5s'] });
    await page.waitForTimeout(500);
    await shown.reload();
    await cell(page, 'prices').locator('.plot canvas').waitFor();
    await page.locator('.refresh-state', { hasText: /^Live, / }).waitFor();
    await page.getByRole('button', { name: 'Full screen' }).click();
    await page.locator('.notebook.full').waitFor();
    t.false(await page.locator('.side').isVisible());
    await cell(page, 'latest').getByLabel('More cell actions').click();
    t.true(await page.getByRole('menuitem', { name: 'Run from here' }).isVisible());
    await page.keyboard.press('Escape');
    t.deepEqual(await seriousViolations(page), []);
    await shown.screenshot(picture('dashboard-full-light'));
    await page.getByRole('button', { name: 'Exit full screen' }).click();
    await page.locator('.side').waitFor();
  });
});

browserTest('a hanging statement is reported in its cell; other cells still refresh', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await open(shown, {
      cells: [
        ['slow folded=true', "SELECT count() AS many, 'slow' AS named FROM trades"],
        ['fast folded=true', "SELECT count() AS many, 'fast' AS named FROM trades"],
      ],
    });
    let requested = 0;
    await page.route('**/exec?**', (route) => {
      const isSlow = statementOf(route.request()).includes("'slow'");
      requested += Number(isSlow);
      return isSlow ? undefined : route.continue();
    });
    await page.getByLabel('Refresh', { exact: true }).selectOption('Every 1 s');
    await cell(page, 'slow').getByText('The server has not responded since').waitFor();
    t.is(requested, 1, 'the statement is sent once');
    t.true(await cell(page, 'slow').locator('.grid-cell', { hasText: 'slow' }).isVisible());
    t.is(await cell(page, 'fast').locator('.cell-late').count(), 0);
    t.deepEqual(await seriousViolations(page), []);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.getByLabel('Refresh', { exact: true }).selectOption('No refresh');
    await page.getByLabel('Refresh', { exact: true }).selectOption('Every 1 s');
    await cell(page, 'slow').locator('.cell-late').waitFor({ state: 'detached' });
  });
});

browserTest('twenty chart updates per second leave the page and server responsive', async (t) => {
  const charts = Array.from(
    { length: 20 },
    (_, index) =>
      [
        `chart_${index} view=chart folded=true width=3 height=4`,
        `SELECT timestamp, avg(price) + ${index} AS price FROM trades SAMPLE BY 5m`,
      ] as const,
  );
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await open(shown, { settings: ['layout: grid'], cells: charts });
      await cell(page, 'chart_19').locator('.plot canvas').waitFor();
      await page.getByLabel('Refresh', { exact: true }).selectOption('Every 1 s');
      await page.locator('.refresh-state', { hasText: /^Live, / }).waitFor();
      await page.waitForTimeout(1500);
      const sent = listen(page, 'avg(price)');
      const client = await page.context().newCDPSession(page);
      await client.send('Performance.enable', { timeDomain: 'threadTicks' });
      const busy = async (): Promise<number> => {
        const { metrics } = await client.send('Performance.getMetrics');
        return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN;
      };
      const SECONDS = 8;
      const before = await busy();
      await page.waitForTimeout(SECONDS * 1000);
      const perSecond = ((await busy()) - before) / SECONDS;
      t.log(`${Math.round((perSecond * 1000) / 20)} ms of work per second and chart`);
      t.true(perSecond / 20 < 0.05, `${perSecond} s of work per second for 20 charts`);
      const each = charts.map(
        (_chart, index) => sent.filter((one) => one.includes(`+ ${index} AS`)).length,
      );
      t.log(`statements in ${SECONDS} s: ${each.join(' ')}`);
      t.true(Math.max(...each) <= SECONDS + 1, 'at most one statement per second');
      t.true(Math.min(...each) >= 2, 'all charts are up to date');
      await shown.screenshot(picture('dashboard-twenty-light'));
    },
    { width: 1440, height: 1100 },
  );
});
