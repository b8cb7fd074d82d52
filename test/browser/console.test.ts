/**
 * The console in Chromium against the real server with its demonstration data. Screenshots of the
 * main screens are saved in build/screenshots for review.
 */
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';
import type { Browser } from 'playwright-core';

import { startTestServer, type TestServer } from '../golden/server.js';
import { chromiumPath, ConsolePage, launchBrowser, type PageOptions } from './console-page.js';

const SCREENSHOTS = fileURLToPath(new URL('../../screenshots', import.meta.url));
const DEMO_ROWS = 100_000;

if (chromiumPath === undefined) {
  process.stderr.write(
    'SKIPPED the console in a browser: no Chromium here; set TIDEMARK_CHROMIUM to its path\n',
  );
}
const browserTest = chromiumPath === undefined ? test.serial.skip : test.serial;

let server: TestServer;
let browser: Browser;

if (chromiumPath !== undefined) {
  test.before(async () => {
    [server, browser] = await Promise.all([startTestServer({ args: ['--demo'] }), launchBrowser()]);
  });

  test.after.always(async () => {
    await browser.close();
    await server.stop();
  });
}

/** Runs `work` on a fresh page and fails if the browser reports any problem. */
async function onPage(
  t: ExecutionContext,
  work: (shown: ConsolePage) => Promise<void>,
  options?: PageOptions,
): Promise<void> {
  const shown = await ConsolePage.open(browser, server.url, options);
  try {
    await work(shown);
    t.deepEqual(shown.complaints, []);
  } finally {
    await shown.close();
  }
}

async function rowsOf(query: string): Promise<unknown[][]> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  return ((await response.json()) as { dataset: unknown[][] }).dataset;
}

const HOURLY = `-- Hourly candles of one day
SELECT timestamp, first(price) AS open, max(price) AS high,
       min(price) AS low, last(price) AS close, sum(amount) AS volume
FROM trades
WHERE symbol = 'BTC-USD'
SAMPLE BY 15m;
`;
const BY_SYMBOL = 'SELECT timestamp, symbol, avg(price) AS price FROM trades SAMPLE BY 1h';

browserTest('a query typed into the editor fills the grid', async (t) => {
  await onPage(t, async (shown) => {
    const query = 'SELECT timestamp, symbol, price FROM trades LIMIT 3';
    t.is(await shown.query(query), 'done');
    t.is(await shown.summary(), '3 rows');
    t.deepEqual(await shown.columns(), ['timestamp', 'symbol', 'price']);
    for (const [index, [time, symbol, price]] of (await rowsOf(query)).entries()) {
      const cells = await shown.row(index + 1);
      t.is(cells.length, 3);
      t.is(cells[0]?.slice(0, 19), String(time).slice(0, 19).replace('T', ' '));
      t.is(cells[1], String(symbol));
      t.is(Number(cells[2]?.replaceAll(',', '')), Number(price));
    }
  });
});

browserTest('the statement under the cursor runs, or all statements run in order', async (t) => {
  await onPage(t, async (shown) => {
    await shown.write('SELECT 1 AS one;\nSELECT 2 AS two;\n');
    await shown.page.keyboard.press('Control+Home');
    t.is(await shown.run(), 'done');
    t.deepEqual(await shown.columns(), ['one']);
    await shown.page.keyboard.press('Control+Shift+Enter');
    await shown.page.locator('.cm-run-done[title*="row"]').nth(1).waitFor();
    t.deepEqual(await shown.columns(), ['two']);
  });
});

browserTest('an error is marked at its position and can be corrected', async (t) => {
  await onPage(t, async (shown) => {
    await shown.page.getByRole('treeitem', { name: /^trades/ }).click();
    await shown.page.locator('.tree-row.column', { hasText: 'price' }).waitFor();
    t.is(await shown.query('SELECT symbol,\n  max(prise)\nFROM trades'), 'failed');
    t.is(await shown.page.locator('.cm-squiggle').innerText(), 'prise');
    t.is(await shown.page.locator('.problem .where').innerText(), '2:7');
    t.regex(await shown.page.locator('.problem .what').innerText(), /prise/);
    t.regex(await shown.page.locator('.outcome-excerpt').innerText(), /max\(prise\)[^]*\^/);
    await shown.screenshot(join(SCREENSHOTS, 'error-light.png'));
    await shown.page.getByRole('button', { name: 'Replace' }).click();
    t.is(await shown.run(), 'done');
    t.is(await shown.page.locator('.problem').count(), 0);
  });
});

browserTest('a result with a timestamp is charted automatically', async (t) => {
  await onPage(t, async (shown) => {
    t.is(await shown.query(BY_SYMBOL), 'done');
    const keys = shown.page.locator('.chart-key');
    await keys.nth(4).waitFor();
    t.is(await keys.count(), 5);
    const ink = await shown.inkOfChart();
    t.true(ink > 2000, `${ink} points drawn`);
    await keys.first().click();
    t.is(await keys.first().getAttribute('aria-pressed'), 'false');
    await shown.page.mouse.move(1200, 650);
    t.regex(await shown.page.locator('.readout').innerText(), /\d{4}-\d\d-\d\d \d\d:\d\d/);
    await shown.screenshot(join(SCREENSHOTS, 'series-light.png'));
  });
});

browserTest('candles are drawn for open, high, low and close', async (t) => {
  await onPage(t, async (shown) => {
    t.is(await shown.query(HOURLY), 'done');
    t.true((await shown.inkOfChart()) > 2000);
    t.is(await shown.page.getByLabel('Chart type').inputValue(), 'candles');
    for (const theme of ['light', 'dark', 'contrast']) {
      t.is(await shown.theme(), theme);
      await shown.screenshot(join(SCREENSHOTS, `candles-${theme}.png`));
      await shown.page.locator('[data-action="theme"]').click();
    }
  });
});

browserTest('the theme changes the page and survives a reload', async (t) => {
  const ground = 'getComputedStyle(document.body).backgroundColor';
  await onPage(
    t,
    async (shown) => {
      t.is(await shown.theme(), 'dark', 'the system setting is the default');
      const before = await shown.page.evaluate<string>(ground);
      const toggle = shown.page.locator('[data-action="theme"]');
      await toggle.click();
      t.is(await shown.theme(), 'contrast');
      await toggle.click();
      t.is(await shown.theme(), 'light');
      t.not(await shown.page.evaluate<string>(ground), before);
      await shown.reload();
      t.is(await shown.theme(), 'light');
    },
    { scheme: 'dark' },
  );
});

browserTest('a large result renders few elements and shows every row', async (t) => {
  await onPage(t, async (shown) => {
    t.is(await shown.query('SELECT * FROM trades'), 'done');
    t.is(await shown.summary(), `${DEMO_ROWS.toLocaleString('en')} rows`);
    t.true((await shown.page.locator('.grid-row').count()) < 80);
    await shown.page.locator('.grid').focus();
    await shown.page.keyboard.press('Control+End');
    const last = shown.page.locator(`.grid-row[aria-rowindex="${DEMO_ROWS + 1}"]`);
    await last.waitFor();
    t.is(await last.locator('.grid-cell.focused').count(), 1);
  });
});

browserTest('null, empty and other values are distinguishable', async (t) => {
  await onPage(t, async (shown) => {
    const query = "SELECT NULL::INT AS n, '' AS e, true AS b, 9223372036854775807 AS l, 1.5 AS d";
    t.is(await shown.query(query), 'done');
    t.deepEqual(await shown.row(1), ['null', 'empty', 'true', '9,223,372,036,854,775,807', '1.5']);
    t.is(await shown.page.locator('.is-null').count(), 1);
    await shown.page.locator('.grid-cell').nth(3).click();
    await shown.page.keyboard.press('Control+C');
    await shown.page.locator('.toast').waitFor();
    const copied = await shown.page.evaluate<string>('navigator.clipboard.readText()');
    t.is(copied, '9223372036854775807');
  });
});

browserTest('values of every type are shown exactly and copied as stored', async (t) => {
  const kinds: readonly (readonly [string, string, string])[] = [
    ['-0.0', '-0.0', '-0.0'],
    ['-9007199254740993::LONG', '-9,007,199,254,740,993', '-9007199254740993'],
    ['12345678901234567890.123m', '12,345,678,901,234,567,890.123', '12345678901234567890.123'],
    [
      "'2026-01-01T00:00:00.123456789Z'::TIMESTAMP_NS",
      '2026-01-01 00:00:00.123456789',
      '2026-01-01T00:00:00.123456789Z',
    ],
    ['ARRAY[1.0, 2.5]', '1, 2.5', '[1,2.5]'],
    [
      "'11111111-2222-3333-4444-555555555555'::UUID",
      '11111111-2222-3333-4444-555555555555',
      '11111111-2222-3333-4444-555555555555',
    ],
    ['#u33d8', 'u33d8', 'u33d8'],
    ["'10.0.0.1'::IPV4", '10.0.0.1', '10.0.0.1'],
    ["'two\nlines'", 'two lines', 'two\nlines'],
  ];
  await onPage(t, async (shown) => {
    const columns = kinds.map(([value], index) => `${value} AS c${index}`);
    t.is(await shown.query(`SELECT ${columns.join(', ')}`), 'done');
    const cells = shown.page.locator('.grid-row[aria-rowindex="2"] .grid-cell');
    const shownTexts: string[] = [];
    const copied: string[] = [];
    await shown.page.locator('.grid-cell').first().click();
    for (const [index] of kinds.entries()) {
      const cell = cells.and(shown.page.locator('.focused'));
      shownTexts.push(await cell.innerText());
      await shown.page.keyboard.press('Control+C');
      await shown.page.locator('.toast').waitFor();
      copied.push(await shown.page.evaluate<string>('navigator.clipboard.readText()'));
      if (index + 1 < kinds.length) {
        await shown.page.keyboard.press('ArrowRight');
      }
    }
    t.deepEqual(
      shownTexts,
      kinds.map(([, text]) => text),
    );
    t.deepEqual(
      copied,
      kinds.map(([, , text]) => text),
    );
  });
});

browserTest('markup from the server is shown and never executed', async (t) => {
  await onPage(t, async (shown) => {
    const payload = '<img src=x onerror=console.error(1)><script>console.error(2)</script>';
    t.is(await shown.query(`SELECT '${payload}' AS "<b>name</b>"`), 'done');
    t.deepEqual(await shown.row(1), [payload]);
    t.deepEqual(await shown.columns(), ['<b>name</b>']);
    t.is(await shown.query(`SELECT "${payload}" FROM trades`), 'failed');
    t.is(await shown.page.locator('.outcome img, .outcome script').count(), 0);
  });
});

browserTest('unsaved text and tabs survive a reload', async (t) => {
  await onPage(t, async (shown) => {
    await shown.write('SELECT 41 AS first_tab');
    await shown.page.keyboard.press('Alt+T');
    await shown.write('SELECT 42 AS second_tab');
    await shown.reload();
    t.is(await shown.page.locator('.tab').count(), 2);
    t.is(await shown.editor.innerText(), 'SELECT 42 AS second_tab');
    await shown.page.keyboard.press('Alt+PageUp');
    t.is(await shown.editor.innerText(), 'SELECT 41 AS first_tab');
  });
});

browserTest('an unreachable server is reported, and no text is lost', async (t) => {
  const shown = await ConsolePage.open(browser, server.url);
  await shown.page.route('**/exec?*', (route) => route.abort());
  t.is(await shown.query('SELECT 1'), 'failed');
  t.regex(await shown.page.locator('.outcome').innerText(), /is not responding/);
  await shown.page.unroute('**/exec?*');
  t.is(await shown.run(), 'done');
  t.is(await shown.editor.innerText(), 'SELECT 1');
  await shown.close();
});

browserTest('a running query can be cancelled', async (t) => {
  await onPage(t, async (shown) => {
    await shown.page.route('**/exec?*', async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 1500));
      await route.continue().catch(() => undefined);
    });
    await shown.write('SELECT 1');
    await shown.page.keyboard.press('Control+Enter');
    await shown.page.locator('[data-action="cancel"]:enabled').click();
    await shown.page.locator('.summary[data-state="cancelled"]').waitFor();
    await shown.page.unroute('**/exec?*');
    t.is(await shown.run(), 'done');
  });
});

browserTest('the table tree can be operated with the keyboard alone', async (t) => {
  await onPage(t, async (shown) => {
    await shown.page.locator('.tree-row.group').first().focus();
    await shown.page.keyboard.press('End');
    await shown.page.keyboard.press('ArrowRight');
    await shown.page.locator('.tree-row.column').first().waitFor();
    await shown.page.keyboard.press('Shift+Enter');
    await shown.page.locator('.summary[data-state="done"]').waitFor();
    t.is(await shown.summary(), '1,000 rows');
  });
});

browserTest('narrow windows show everything without horizontal scrolling', async (t) => {
  for (const [width, height] of [
    [1000, 700],
    [800, 700],
    [390, 800],
    [320, 640],
  ] as const) {
    const work = async (shown: ConsolePage): Promise<void> => {
      t.is(await shown.query(BY_SYMBOL), 'done');
      const wide = await shown.page.evaluate<number>('document.documentElement.scrollWidth');
      t.true(wide <= width, `${wide} of ${width}`);
      await shown.page.keyboard.press('Alt+2');
      await shown.page.locator('.chart-bar').waitFor();
      const heights = "[...document.querySelectorAll('.chart-tools > *')].map((e) => e.offsetTop)";
      const tops = await shown.page.evaluate<number[]>(heights);
      t.true(tops.length > 1 && new Set(tops).size === 1, `${width}: ${tops.join(', ')}`);
      await shown.screenshot(join(SCREENSHOTS, `narrow-${width}.png`));
    };
    await onPage(t, work, { width, height });
  }
});
