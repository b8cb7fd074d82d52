/**
 * Charts of every kind: choosing the kind from the result, zooming with server queries, display as
 * a table.
 */
import { readFileSync } from 'node:fs';

import type { Request } from 'playwright-core';

import { until } from '../until.js';
import { statementOf, type ConsolePage } from './console-page.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage } = browserSuite('charts in a browser', { args: ['--demo'] });

async function kinds({ page }: ConsolePage): Promise<string[]> {
  return await page.getByLabel('Chart type').locator('option').allInnerTexts();
}

/** Drags across the middle of the plot between two fractions of its width. */
async function drag({ page }: ConsolePage, from: number, to: number): Promise<void> {
  const box = await page.locator('.u-over').boundingBox();
  const x = (fraction: number): number => (box?.x ?? 0) + (box?.width ?? 0) * fraction;
  const y = (box?.y ?? 0) + (box?.height ?? 0) / 2;
  await page.mouse.move(x(from), y);
  await page.mouse.down();
  await page.mouse.move(x(to), y, { steps: 4 });
  await page.mouse.up();
}

browserTest('zooming queries the visible range in finer steps', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const query = 'SELECT timestamp, avg(price) AS price FROM trades SAMPLE BY 1h';
    t.is(await shown.query(query), 'done');
    await page.locator('.u-over').waitFor();
    const requested = page.waitForRequest((request) => {
      const sent = statementOf(request);
      return /WHERE timestamp >= '[^']+' AND timestamp <= '[^']+' SAMPLE BY \d+[sm]$/.test(sent);
    });
    await drag(shown, 0.4, 0.6);
    const answer = await (await requested).response();
    t.is(answer?.status(), 200);
    const reset = page.getByRole('button', { name: 'Reset zoom' });
    await reset.waitFor();
    await page.locator('.zoom-hint', { hasText: 'Drag to zoom' }).waitFor();
    const name = (await page.locator('.plot').getAttribute('aria-label')) ?? '';
    const points = Number(/, (\d+) points/.exec(name)?.[1]);
    const rows = Number((await shown.summary()).replace(/\D/g, ''));
    t.true(points > rows * 0.3, `${points} points in a fifth of ${rows} rows`);
    await shown.screenshot(picture('zoom-light'));
    await page.locator('.plot').focus();
    await page.keyboard.press('0');
    await reset.waitFor({ state: 'detached' });
    await page.keyboard.press('+');
    await reset.waitFor();
  });
});

browserTest('when the server fails, a zoomed range is drawn from the loaded rows', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    t.is(await shown.query('SELECT timestamp, price FROM trades LIMIT 500'), 'done');
    await page.locator('.u-over').waitFor();
    await page.route('**/exec?*', (route) => route.abort());
    await drag(shown, 0.2, 0.8);
    await page.locator('.zoom-hint', { hasText: 'Loaded rows only' }).waitFor();
    t.true((await shown.inkOfChart()) > 500);
    await page.unroute('**/exec?*');
    shown.complaints.length = 0;
  });
});

browserTest('names become bars, and two numeric columns become a scatter plot', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    t.is(await shown.query('SELECT symbol, count() AS trades FROM trades'), 'done');
    await page.getByRole('button', { name: 'Chart', exact: true }).click();
    t.is(await page.getByLabel('Chart type').inputValue(), 'bars');
    t.true((await shown.inkOfChart()) > 2000);
    t.is(await shown.query('SELECT x * 1.0 AS a, sqrt(x) AS b FROM long_sequence(300)'), 'done');
    t.is(await page.getByLabel('Chart type').inputValue(), 'scatter');
    t.deepEqual((await kinds(shown)).slice(0, 5), ['Scatter', 'Line', 'Area', 'Step', 'Histogram']);
    t.true((await shown.inkOfChart()) > 2000);
    await inEveryTheme(shown, async (theme) => {
      await shown.screenshot(picture(`scatter-${theme}`));
    });
  });
});

browserTest('every chart kind is drawn, even with one point or with gaps', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const times = "timestamp_sequence('2024-01-01', 60000000)";
    for (const columns of [
      `${times} AS ts, x * 1.5 AS v FROM long_sequence(1)`,
      `${times} AS ts, CASE WHEN x % 5 = 0 THEN NULL ELSE x * 1.5 END AS v FROM long_sequence(60)`,
    ]) {
      t.is(await shown.query(`SELECT ${columns}`), 'done');
      // A chart with only a few rows is drawn only on request.
      const chart = page.locator('.view', { hasText: 'Chart' });
      if ((await chart.getAttribute('aria-pressed')) === 'false') {
        await chart.click();
      }
      for (const kind of ['line', 'area', 'step', 'bars', 'scatter']) {
        await page.getByLabel('Chart type').selectOption(kind);
        t.true((await shown.inkOfChart()) > 500, `${kind} of ${columns}`);
      }
    }
  });
});

browserTest('a series of a different magnitude gets its own axis', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const query =
      "SELECT timestamp_sequence('2024-01-01', 60000000) AS ts, x * 0.01 AS share, " +
      'x * 1000.5 AS amount FROM long_sequence(100)';
    t.is(await shown.query(query), 'done');
    const both = page.getByRole('button', { name: 'Two axes' });
    await both.waitFor();
    t.is(await page.locator('.u-axis').count(), 3);
    t.is(await page.locator('.chart-key', { hasText: 'right axis' }).count(), 1);
    await shown.screenshot(picture('two-axes-light'));
    await both.click();
    t.is(await page.locator('.u-axis').count(), 2);
  });
});

browserTest('prices by symbol have separate axes and share crosshair and range', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const query = 'SELECT timestamp, symbol, avg(price) AS price FROM trades SAMPLE BY 5m';
    t.is(await shown.query(query), 'done');
    const plots = page.locator('.plot');
    await until(async () => (await plots.count()) === 5, 'each symbol has a plot');
    const labels = await Promise.all(
      (await plots.all()).map((plot) => plot.getAttribute('aria-label')),
    );
    const symbols = labels.map((text) => /\. (\S+): lowest/.exec(text ?? '')?.[1]);
    t.is(new Set(symbols).size, 5, symbols.join());
    await shown.screenshot(picture('small-multiples-light'));
    await plots
      .first()
      .locator('.u-over')
      .hover({ position: { x: 60, y: 20 } });
    const crosshairs = page.locator('.u-cursor-x:not(.u-off)');
    await until(async () => (await crosshairs.count()) === 5, 'each plot has a crosshair');
    const box = await plots.nth(1).locator('.u-over').boundingBox();
    t.truthy(box);
    const [left, top, width] = [box?.x ?? 0, (box?.y ?? 0) + 10, box?.width ?? 0];
    await page.mouse.move(left + width * 0.25, top);
    await page.mouse.down();
    await page.mouse.move(left + width * 0.75, top, { steps: 4 });
    await page.mouse.up();
    await page.getByRole('button', { name: 'Reset zoom' }).waitFor();
    t.is(await plots.count(), 5);
    await page.getByRole('button', { name: 'Previous range' }).click();
    await page.getByRole('button', { name: 'Reset zoom' }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Save chart' }).click();
    const saved = page.waitForEvent('download');
    await page.getByRole('menuitem', { name: 'Vector image (SVG)' }).click();
    const drawing = readFileSync(await (await saved).path(), 'utf8');
    t.is(drawing.match(/<g transform="translate/g)?.length, 5);
    await page.getByRole('button', { name: 'Split' }).click();
    await until(async () => (await plots.count()) === 1, 'all symbols share one plot');
    t.true((await shown.inkOfChart()) > 500);
  });
});

browserTest('a chart can be read as a table', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const query = 'SELECT timestamp, symbol, avg(price) AS price FROM trades SAMPLE BY 1h';
    t.is(await shown.query(query), 'done');
    await page.getByRole('button', { name: 'Show as table' }).click();
    const heads = page.locator('.chart-table thead th');
    t.is(await heads.first().innerText(), 'Time (UTC)');
    t.is(await heads.count(), 6);
    t.regex(await page.locator('.chart-table tbody th').first().innerText(), /^\d{4}-.*Z$/);
    await page.getByRole('button', { name: 'Show as table' }).click();
    await page.locator('.u-over').first().waitFor();
  });
});

browserTest('a million points are decimated, with a notice', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const series = Array.from(
      { length: 10 },
      (_, index) => `sin(x / ${index + 3}00.0) AS s${index}`,
    );
    const query =
      `SELECT timestamp_sequence('2024-01-01', 1000000) AS ts, ${series.join(', ')} ` +
      'FROM long_sequence(100000)';
    t.is(await shown.query(query), 'done');
    const note = page.locator('.zoom-hint');
    await note.filter({ hasText: /^100,000 rows drawn as [\d,]+ points$/ }).waitFor();
    const drawn = Number(/as ([\d,]+)/.exec(await note.innerText())?.[1]?.replaceAll(',', ''));
    t.true(drawn < 50_000, `${drawn} points`);
    t.true((await shown.inkOfChart()) > 5000);
  });
});

/** Returns the start of the requested time range. */
function beginOf(request: Request): string {
  return /timestamp >= '([^']+)'/.exec(statementOf(request))?.[1] ?? '';
}

browserTest('dragging with Shift pans the range', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const query = 'SELECT timestamp, avg(price) AS price FROM trades SAMPLE BY 1h';
    t.is(await shown.query(query), 'done');
    await page.locator('.u-over').waitFor();
    const zoomed = page.waitForRequest((request) => beginOf(request) !== '');
    await drag(shown, 0.4, 0.6);
    const begin = beginOf(await zoomed);
    await page.locator('.zoom-hint', { hasText: 'Drag to zoom' }).waitFor();
    const moved = page.waitForRequest((request) => beginOf(request) !== '');
    await page.keyboard.down('Shift');
    await drag(shown, 0.2, 0.7);
    await page.keyboard.up('Shift');
    const before = beginOf(await moved);
    t.true(before < begin, `${before} is before ${begin}`);
  });
});

browserTest('Enter on the crosshair goes to its row in the grid', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const times = "timestamp_sequence('2024-01-01', 60000000)";
    t.is(await shown.query(`SELECT ${times} AS ts, x * 1.5 AS v FROM long_sequence(500)`), 'done');
    await page.locator('.u-over').waitFor();
    await page.getByLabel('Filter loaded rows').fill('v > 15');
    await page.locator('.inline-filter .hint', { hasText: '490 of 500' }).waitFor();
    await page.locator('.plot').focus();
    for (let step = 0; step < 12; step += 1) {
      await page.keyboard.press('ArrowRight');
    }
    await page.keyboard.press('Enter');
    const selected = page.locator('.grid-row.selected');
    t.is(await selected.locator('.grid-number').innerText(), '12');
    t.is(await selected.locator('.grid-cell').nth(1).innerText(), '18');
    t.true(await page.evaluate<boolean>("document.activeElement?.role === 'grid'"));
  });
});

/** Collects the axis labels drawn from now on. */
async function drawnTexts({ page }: ConsolePage): Promise<() => Promise<string[]>> {
  await page.evaluate(`(() => {
    globalThis.drawn = [];
    const { prototype } = CanvasRenderingContext2D;
    const { fillText } = prototype;
    prototype.fillText = function (text, ...place) {
      globalThis.drawn.push(text);
      return fillText.call(this, text, ...place);
    };
  })()`);
  return async () => {
    // Polls, because waitForFunction needs eval, which the content policy forbids.
    while ((await page.evaluate<number>('globalThis.drawn.length')) <= 5) {
      await page.waitForTimeout(50);
    }
    return await page.evaluate<string[]>('globalThis.drawn.splice(0)');
  };
}

browserTest('the time axis has round hours across clock changes', async (t) => {
  const work = async (shown: ConsolePage): Promise<void> => {
    const { page } = shown;
    const drawn = await drawnTexts(shown);
    const hours = async (): Promise<string[]> =>
      (await drawn()).filter((text) => /^\d\d:\d\d$/.test(text));
    const query = (begin: string, rows: number): string =>
      `SELECT timestamp_sequence('${begin}', 600000000) AS ts, x FROM long_sequence(${rows})`;
    // 29 March 2026, 1:00 UTC: 2:00 becomes 3:00 in Berlin, while UTC is unaffected.
    t.is(await shown.query(query('2026-03-29T00:00:00', 36)), 'done');
    t.deepEqual([...new Set(await hours())], ['00:00', '02:00', '04:00']);
    t.is(await shown.query(query('2026-03-28T00:00:00', 400)), 'done');
    await drawn();
    await page.getByRole('button', { name: 'Local', exact: true }).click();
    const local = await hours();
    t.true(local.length > 3 && local.includes('00:00'), local.join());
    t.true(
      local.every((text) => Number(text.slice(0, 2)) % 3 === 0 && text.endsWith(':00')),
      local.join(),
    );
  };
  await onPage(t, work, { timezone: 'Europe/Berlin' });
});
