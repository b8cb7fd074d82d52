/** Virtual scrolling over results of any size: rows load when they become visible. */
import type { Locator } from 'playwright-core';

import { until } from '../until.js';
import { seriousViolations } from './axe.js';
import { type ConsolePage, statementOf } from './console-page.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage, rows } = browserSuite('results of many rows in a browser', {
  args: ['--demo'],
});

function lastRow({ page }: ConsolePage, count: number): Locator {
  return page.locator(`.grid-row[aria-rowindex="${count + 1}"]`);
}

/** Returns the statements that the page has sent, with the requested row range. */
function requested({ page }: ConsolePage): { text: string; limit: string }[] {
  const found: { text: string; limit: string }[] = [];
  page.on('request', (request) => {
    const text = statementOf(request);
    if (text !== '') {
      found.push({ text, limit: new URL(request.url()).searchParams.get('limit') ?? '' });
    }
  });
  return found;
}

async function fill(name: string, count: number): Promise<void> {
  await rows(
    `CREATE TABLE ${name} AS (SELECT x, x * 10 AS v, ` +
      `timestamp_sequence('2026-01-01', 100000) AS ts FROM long_sequence(${count})) ` +
      'TIMESTAMP(ts) PARTITION BY DAY',
  );
  await until(async () => {
    const [row] = await rows(`SELECT count() FROM ${name}`);
    return row?.[0] === count;
  }, `${name} has ${count} rows`);
}

browserTest('one key press shows the last of two million rows', async (t) => {
  await fill('many', 2_000_000);
  await onPage(t, async (shown) => {
    const { page } = shown;
    const grid = page.locator('.grid');
    t.is(await shown.query('SELECT * FROM many WHERE x > 0'), 'done');
    t.is(await shown.summary(), '2,000,000 rows');
    await page.locator('.grid[aria-rowcount="2000001"]').waitFor();
    t.is(await page.getByRole('button', { name: 'Next rows' }).count(), 0);
    const sent = requested(shown);
    await grid.focus();
    await page.keyboard.press('Control+End');
    const last = lastRow(shown, 2_000_000);
    await last.getByText('20,000,000', { exact: true }).waitFor();
    t.is(await last.locator('.grid-number').innerText(), '2000000');
    const windows = sent.filter(({ text }) => text.startsWith('SELECT * FROM many'));
    t.deepEqual(
      windows.map(({ limit }) => limit),
      ['1998001,2000000'],
      'only the last rows are requested',
    );
    // Scrolling back is immediate and loads nothing.
    await page.keyboard.press('PageUp');
    await page.keyboard.press('ArrowUp');
    t.is(windows.length, 1);
    // A scroll bar position corresponds to the same fraction of all rows.
    await page.evaluate(`(() => {
      const grid = document.querySelector('.grid');
      grid.scrollTo(0, (grid.scrollHeight - grid.clientHeight) / 2);
    })()`);
    const middle = page.locator('.grid-row .grid-number', { hasText: /^10000\d\d$/ }).first();
    await middle.waitFor();
    const number = Number(await middle.innerText());
    await page
      .locator(`.grid-row[aria-rowindex="${number + 1}"]`)
      .getByText((number * 10).toLocaleString('en'), { exact: true })
      .waitFor();
    // The wheel scrolls row by row, regardless of the virtual height.
    await page.mouse.move(600, 700);
    await page.mouse.wheel(0, 260);
    await page
      .locator(`.grid-row[aria-rowindex="${number + 16}"]`)
      .getByText(((number + 15) * 10).toLocaleString('en'), { exact: true })
      .waitFor();
    await grid.focus();
    await page.keyboard.press('Control+Home');
    t.deepEqual((await shown.row(1)).slice(0, 2), ['1', '10']);
    t.is(await page.evaluate('document.querySelector(".grid").scrollTop'), 0);
  });
});

browserTest('copies and sums do not silently omit unloaded rows', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    t.is(await shown.query('SELECT x FROM long_sequence(900000)'), 'done');
    await page.locator('.grid[aria-rowcount="900001"]').waitFor();
    await page.locator('.grid').focus();
    await page.keyboard.press('Control+A');
    const facts = page.locator('.grid-facts');
    await facts.getByText('loaded').waitFor();
    t.regex(await facts.innerText(), /900,000 × 1 cells\s+10\d,000 loaded/);
    await page.keyboard.press('Control+C');
    const toast = page.locator('.toast');
    await toast.getByText(/of the 900,000 rows are loaded, so nothing was copied/).waitFor();
    await page.locator('.grid-head-cell').click();
    await page.locator('.grid-head-cell').click();
    await page
      .getByText('The filter and sort order apply only to rows 1 to 100,000 of 900,000.')
      .waitFor();
    t.deepEqual(await shown.row(1), ['100,000']);
    await inEveryTheme(shown, async (theme) => {
      t.deepEqual(await seriousViolations(page), [], theme);
      await shown.screenshot(picture(`many-rows-${theme}`));
    });
    for (const width of [1024, 390]) {
      await shown.resize(width, 844);
      t.deepEqual(await seriousViolations(page), [], `${width}`);
      await shown.screenshot(picture(`many-rows-${width}`));
    }
  });
});

browserTest('rows of two table versions are never mixed', async (t) => {
  await fill('moving', 300_000);
  await onPage(t, async (shown) => {
    const { page } = shown;
    t.is(await shown.query('SELECT x, v FROM moving'), 'done');
    await page.locator('.grid[aria-rowcount="300001"]').waitFor();
    await rows('UPDATE moving SET v = -x');
    await rows("INSERT INTO moving(ts, x, v) VALUES ('2027-01-01', 7, 8)");
    await until(async () => {
      const [row] = await rows('SELECT min(v), count() FROM moving');
      return row?.[0] === -300_000 && row[1] === 300_001;
    }, 'the change is visible');
    await page.locator('.grid').focus();
    await page.keyboard.press('Control+End');
    const note = page.locator('.grid-note');
    await note.getByText(/^moving may have changed since the query ran/).waitFor();
    await page.locator('.grid[aria-rowcount="300002"]').waitFor();
    await page.locator('.grid-row[aria-rowindex="300001"]').getByText('-300,000').waitFor();
    await page.keyboard.press('Control+Home');
    const first = page.locator('.grid-row[aria-rowindex="2"]');
    await first.getByText('-1', { exact: true }).waitFor();
    t.is(await note.count(), 1);
  });
});

browserTest('rows of a volatile query are paged, with the reason', async (t) => {
  await onPage(t, async (shown) => {
    const note = shown.page.locator('.grid-note');
    for (const [query, why] of [
      ['SELECT rnd_int() r FROM long_sequence(150000)', /rnd_int\(\) may return different values/],
      [
        'SELECT x FROM long_sequence(150000) WHERE now() > 0',
        /now\(\) may return different values/,
      ],
      ['SELECT x, count() FROM long_sequence(150000)', /Grouped rows have no fixed order/],
      ['SELECT DISTINCT x FROM long_sequence(150000)', /Distinct rows have no fixed order/],
      [
        'SELECT a.x FROM long_sequence(150000) a JOIN long_sequence(150000) b ON a.x = b.x',
        /Joined rows have no fixed order/,
      ],
    ] as const) {
      t.is(await shown.query(query), 'done', query);
      await note.getByText(why).waitFor();
      t.true(await shown.page.getByRole('button', { name: 'Next rows' }).isEnabled(), query);
      t.is(await shown.page.locator('.grid').getAttribute('aria-rowcount'), '100001', query);
    }
  });
});

browserTest('rows that fail to load are reported in the grid and load later', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    t.is(await shown.query('SELECT x FROM long_sequence(400000)'), 'done');
    await page.locator('.grid[aria-rowcount="400001"]').waitFor();
    await page.route('**/exec?*', (route) => route.abort());
    await page.locator('.grid').focus();
    await page.keyboard.press('Control+End');
    const note = page.locator('.grid-note');
    await note
      .getByText(/^The visible rows could not be loaded: The server is not responding/)
      .waitFor();
    t.is(await lastRow(shown, 400_000).locator('.grid-cell').innerText(), '…');
    await page.unroute('**/exec?*');
    await note.getByRole('button', { name: 'Try again' }).click();
    await lastRow(shown, 400_000).getByText('400,000').waitFor();
    await note.waitFor({ state: 'detached' });
    shown.complaints.length = 0;
  });
});

browserTest('a few wide rows load immediately, and more when scrolled into view', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const query = "SELECT x, lpad('', 2000, 'y') AS t FROM long_sequence(60000)";
    t.is(await shown.query(query), 'done');
    t.regex(await shown.summary(), /^more than [\d,]+ rows$/);
    await page.locator('.grid[aria-rowcount="60001"]').waitFor();
    await page.locator('.grid').focus();
    await page.keyboard.press('Control+End');
    await lastRow(shown, 60_000).getByText('60,000').waitFor();
  });
});
