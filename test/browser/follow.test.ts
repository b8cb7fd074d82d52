/**
 * Tabs that follow a table: new rows, scrolling back, pausing, and losing the server connection.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Request } from 'playwright-core';

import { startTestServer } from '../golden/server.js';
import { seriousViolations } from './axe.js';
import { ConsolePage, launchBrowser, statementOf } from './console-page.js';
import { openBrowser, BrowserUser, serverFor } from './user.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage, rows } = browserSuite('following a table in a browser');
openBrowser();

/** Creates a table of 200 rows, one per second; the last has the number 200. */
async function createTable(table: string): Promise<void> {
  await rows(`CREATE TABLE ${table} (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY`);
  await more(table, 1, 200);
}

/** Inserts rows with the numbers `from` to `to`. */
async function more(table: string, from: number, to: number): Promise<void> {
  await rows(
    `INSERT INTO ${table} SELECT timestamp '2026-01-01' + n * 1000000, n
       FROM (SELECT x + ${from - 1} AS n FROM long_sequence(${to - from + 1}))`,
  );
}

/** Returns which feed or query a request is for; empty for the editor's validation requests. */
function requestedTable(request: Request): string {
  const { pathname, search } = new URL(request.url());
  return pathname === '/changes' ? search : pathname === '/exec' ? statementOf(request) : '';
}

/** Returns the number of feeds on a table. */
async function feedsOf(table: string): Promise<number> {
  const query = `SELECT query FROM query_activity() WHERE query LIKE '%${table}%'`;
  return (await rows(query)).filter(([text]) => text === `SELECT * FROM "${table}"`).length;
}

async function follow({ page }: ConsolePage, table: string): Promise<void> {
  await page.getByRole('treeitem', { name: new RegExp(`^${table}`) }).click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Follow' }).click();
  await page.locator('.follow .grid-row').first().waitFor();
}

function state({ page }: ConsolePage, text: RegExp): Promise<void> {
  return page.locator('.follow-state', { hasText: text }).waitFor();
}

browserTest('new rows appear at the end; an idle table causes no requests', async (t) => {
  await createTable('grows');
  await onPage(t, async (shown) => {
    const { page } = shown;
    await follow(shown, 'grows');
    await state(shown, /^Live$/);
    await page.locator('.grid-cell', { hasText: /^200$/ }).waitFor();
    const requested: string[] = [];
    page.on('request', (request) => requested.push(requestedTable(request)));
    await more('grows', 201, 203);
    await page.locator('.grid-cell', { hasText: /^203$/ }).waitFor();
    t.is(await page.locator('.follow-new').count(), 0);
    // A JavaScript number above 2^53 would lose its last digit.
    await rows("INSERT INTO grows VALUES ('2026-01-01T01:00:00Z', 9007199254740993)");
    await page.locator('.grid-cell', { hasText: /^9,007,199,254,740,993$/ }).waitFor();
    await page.waitForTimeout(3000);
    const ofTable = (): number => requested.filter((one) => one.includes('grows')).length;
    t.is(ofTable(), 0, 'new rows arrive through the feed');
    await rows('UPDATE grows SET n = 999 WHERE n = 203');
    await page.locator('.grid-cell', { hasText: /^999$/ }).waitFor();
    t.true(
      ofTable() <= 2,
      `one query for the rows and one for the new feed position: ${ofTable()}`,
    );
    await rows('ALTER TABLE grows ADD COLUMN more INT');
    await rows("INSERT INTO grows VALUES ('2026-01-01T02:00:00Z', 1, 77)");
    await page.locator('.grid-cell', { hasText: /^77$/ }).waitFor();
    t.deepEqual(await shown.columns(), ['ts', 'n', 'more']);
    await inEveryTheme(shown, async (theme) => {
      t.deepEqual(await seriousViolations(page), [], theme);
      await shown.screenshot(picture(`follow-${theme}`));
    });
  });
});

browserTest('a table without a time column, and values of many types, are followed', async (t) => {
  await rows('CREATE TABLE untimed (a LONG, d DOUBLE[], s SYMBOL, u UUID, l LONG256)');
  await rows("INSERT INTO untimed VALUES (1, ARRAY[1.5, null], 'x', rnd_uuid4(), null)");
  await onPage(t, async (shown) => {
    const { page } = shown;
    await follow(shown, 'untimed');
    await state(shown, /^Live$/);
    const requested: string[] = [];
    page.on('request', (request) => requested.push(requestedTable(request)));
    await rows("INSERT INTO untimed VALUES (2, ARRAY[2.5], 'y', rnd_uuid4(), null)");
    await page.locator('.grid-cell', { hasText: /^y$/ }).waitFor();
    t.is(requested.filter((one) => one.includes('untimed')).length, 0);
  });
});

browserTest('scrolling back keeps the position and announces new rows', async (t) => {
  await createTable('looked');
  await onPage(t, async (shown) => {
    const { page } = shown;
    await follow(shown, 'looked');
    await page.locator('.grid-cell', { hasText: /^200$/ }).waitFor();
    await page.locator('.follow .grid').hover();
    await page.mouse.wheel(0, -1000);
    await state(shown, /^Updates on hold/);
    const scrollTop = (): Promise<number> =>
      page.evaluate<number>("document.querySelector('.follow .grid').scrollTop");
    await page.waitForTimeout(300);
    const before = await scrollTop();
    t.true(before > 0);
    await more('looked', 201, 212);
    const fresh = page.getByRole('button', { name: '12 new rows' });
    await fresh.waitFor();
    t.is(await scrollTop(), before);
    t.is(await page.locator('.follow .grid').getAttribute('aria-rowcount'), '201');
    t.deepEqual(await seriousViolations(page), []);
    await shown.screenshot(picture('follow-held-light'));
    await fresh.click();
    await page.locator('.grid-cell', { hasText: /^212$/ }).waitFor();
    await state(shown, /^Live/);
    t.is(await fresh.count(), 0);
    // By keyboard: Home scrolls to the start, End returns to the newest rows.
    await page.locator('.follow .grid').focus();
    await page.keyboard.press('Control+Home');
    await state(shown, /^Updates on hold/);
    await more('looked', 213, 213);
    await page.getByRole('button', { name: '1 new row', exact: true }).waitFor();
    await page.keyboard.press('Control+End');
    await page.locator('.grid-cell', { hasText: /^213$/ }).waitFor();
    await state(shown, /^Live/);
  });
});

browserTest('a paused, inactive or hidden follower sends no requests', async (t) => {
  await createTable('paused');
  await onPage(t, async (shown) => {
    const { page } = shown;
    await follow(shown, 'paused');
    await state(shown, /^Live/);
    let requested = 0;
    const isOfTable = (request: Request): boolean => requestedTable(request).includes('paused');
    page.on('request', (request) => {
      requested += isOfTable(request) ? 1 : 0;
    });
    const isQuiet = async (what: string): Promise<void> => {
      await page.waitForTimeout(300);
      requested = 0;
      await page.waitForTimeout(2000);
      t.is(requested, 0, what);
      t.is(await feedsOf('paused'), 0, `${what}: no feed is open`);
    };
    const nextRequest = (): Promise<unknown> => page.waitForRequest(isOfTable);
    t.is(await feedsOf('paused'), 1);
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await state(shown, /^Paused/);
    await isQuiet('paused');
    await more('paused', 201, 201);
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.locator('.grid-cell', { hasText: /^201$/ }).waitFor();
    await page.getByRole('tab', { name: 'Query 1' }).click();
    t.true(await shown.editor.isVisible());
    await isQuiet('another tab');
    const [back] = await Promise.all([
      nextRequest(),
      page.getByRole('tab', { name: 'Follow paused' }).click(),
    ]);
    t.truthy(back);
    await shown.go('Running queries');
    await isQuiet('another page');
    await Promise.all([nextRequest(), shown.go('SQL workspace')]);
    await page.evaluate(`(() => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => true });
      document.dispatchEvent(new Event('visibilitychange'));
    })()`);
    await isQuiet('hidden');
  });
});

browserTest('a lost connection is reported, and following resumes afterwards', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-followed-'));
  const first = await startTestServer({ root });
  const browser = await launchBrowser();
  const execute = (statement: string): Promise<Response> =>
    fetch(`${first.url}/exec?query=${encodeURIComponent(statement)}`);
  try {
    await execute('CREATE TABLE away (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY');
    await execute("INSERT INTO away VALUES ('2026-01-01', 200)");
    const shown = await ConsolePage.open(browser, first.url);
    const { page } = shown;
    await follow(shown, 'away');
    await state(shown, /^Live$/);
    await first.stop();
    const trouble = page.locator('.follow-trouble');
    await trouble.waitFor();
    t.regex(
      await trouble.innerText(),
      /^The server is not responding\..* The rows are as of \d\d:\d\d:\d\d\. Next attempt at \d/s,
    );
    t.true(
      await page.locator('.grid-cell', { hasText: /^200$/ }).isVisible(),
      'the rows remain visible',
    );
    t.deepEqual(await seriousViolations(page), []);
    await shown.screenshot(picture('follow-lost-light'));
    const { host } = new URL(first.url);
    const second = await startTestServer({ root, set: [`http.bind.to=${host}`] });
    await execute("INSERT INTO away VALUES ('2026-01-02', 201)");
    await page.locator('.grid-cell', { hasText: /^201$/ }).waitFor();
    await state(shown, /^Live$/);
    t.is(await trouble.count(), 0);
    await second.stop();
  } finally {
    await browser.close();
    await first.stop();
    await rm(root, { recursive: true, force: true });
  }
});

browserTest('the table is polled when the server accepts no more feeds', async (t) => {
  const server = await startTestServer({ set: ['changes.max.feeds=1'] });
  const browser = await launchBrowser();
  const stop = new AbortController();
  const execute = (statement: string): Promise<Response> =>
    fetch(`${server.url}/exec?query=${encodeURIComponent(statement)}`);
  try {
    await execute('CREATE TABLE busy (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY');
    await execute("INSERT INTO busy VALUES ('2026-01-01', 200)");
    // Keeps a reference: if the response were garbage-collected, it would end and free its slot.
    const connection = await fetch(`${server.url}/changes?table=busy`, { signal: stop.signal });
    const shown = await ConsolePage.open(browser, server.url);
    const { page } = shown;
    const notices: string[] = [];
    page.on('requestfinished', (request) => {
      if (request.url().endsWith('/live')) {
        void page
          .locator('.status')
          .innerText()
          .then((text) => notices.push(text));
      }
    });
    await follow(shown, 'busy');
    await state(shown, /^Polled every second, as of \d\d:\d\d:\d\d$/);
    t.is(connection.status, 200);
    const why = page.locator('.follow-trouble[data-state="polled"]');
    t.regex(await why.innerText(), /reached its change feed limit \(changes\.max\.feeds\)/);
    await execute("INSERT INTO busy VALUES ('2026-01-02', 201)");
    await page.locator('.grid-cell', { hasText: /^201$/ }).waitFor();
    await inEveryTheme(shown, async (theme) => {
      t.deepEqual(await seriousViolations(page), [], theme);
      await shown.screenshot(picture(`follow-polled-${theme}`));
    });
    // The page's own stream is repeatedly refused as well, so the server still counts as reachable.
    while (notices.length < 2) {
      await page.waitForTimeout(100);
    }
    t.deepEqual(
      notices.filter((text) => !text.includes('Connected')),
      [],
    );
    stop.abort();
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    t.is(await why.count(), 0);
    await page.getByRole('button', { name: 'Resume' }).click();
    await state(shown, /^Live$/);
  } finally {
    stop.abort();
    await browser.close();
    await server.stop();
  }
});

browserTest('a dropped table is reported, and followed again once it is re-created', async (t) => {
  await createTable('dropped');
  await onPage(t, async (shown) => {
    const { page } = shown;
    await follow(shown, 'dropped');
    await state(shown, /^Live$/);
    await rows('DROP TABLE dropped');
    await page
      .locator('.follow-trouble', { hasText: 'There is no table or view named dropped.' })
      .waitFor();
    await rows('CREATE TABLE dropped (ts TIMESTAMP, other INT) TIMESTAMP(ts) PARTITION BY DAY');
    await page.getByText('No rows yet').waitFor();
    t.deepEqual(await shown.columns(), ['ts', 'other']);
  });
});

browserTest('a user who loses SELECT on the followed table is notified', async (t) => {
  const server = await serverFor(t, ['acl.enabled=true', 'acl.admin.password=secret']);
  const execute = async (statement: string): Promise<void> => {
    const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(statement)}`, {
      headers: { Authorization: `Basic ${btoa('admin:secret')}` },
    });
    t.is(response.status, 200, statement);
  };
  await execute('CREATE TABLE secret (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY');
  await execute("INSERT INTO secret VALUES ('2026-01-01', 200)");
  await execute("CREATE USER ann WITH PASSWORD 'a long one'");
  await execute('GRANT HTTP TO ann');
  await execute('GRANT SELECT ON secret TO ann');
  const ann = await BrowserUser.arrive(t);
  const { page } = ann;
  await page.goto(`${server.url}/#tables/secret`);
  await ann.signIn('ann', 'a long one');
  await page.getByRole('button', { name: 'Follow', exact: true }).click();
  await page.locator('.follow-state', { hasText: /^Live$/ }).waitFor();
  await execute("INSERT INTO secret VALUES ('2026-01-02', 201)");
  await page.locator('.grid-cell', { hasText: /^201$/ }).waitFor();
  await execute('REVOKE SELECT ON secret FROM ann');
  const trouble = page.locator('.follow-trouble');
  await trouble.filter({ hasText: /secret/ }).waitFor();
  t.regex(
    await trouble.innerText(),
    /^(You do not have permission to read|There is no table or view named) secret/,
  );
  await execute('GRANT SELECT ON secret TO ann');
  await page.locator('.follow-state', { hasText: /^Live$/ }).waitFor();
  t.deepEqual(ann.complaints, []);
});

browserTest('a materialized view can be followed, also as a chart and after reload', async (t) => {
  await createTable('base');
  await rows(
    `CREATE MATERIALIZED VIEW tens AS (
       SELECT ts, sum(n) AS total FROM base SAMPLE BY 10s) PARTITION BY DAY`,
  );
  await onPage(t, async (shown) => {
    const { page } = shown;
    await page.keyboard.press('Control+K');
    await page.getByRole('combobox', { name: 'Type a table' }).fill('follow tens');
    await page.keyboard.press('Enter');
    await page.locator('.follow .grid-row').first().waitFor();
    await page.getByLabel('Number of rows', { exact: true }).selectOption('100');
    await more('base', 201, 240);
    await page.locator('.grid-cell', { hasText: /^240$/ }).waitFor();
    await page.getByRole('group', { name: 'View', exact: true }).getByText('Chart').click();
    t.true((await shown.inkOfChart()) > 0);
    await inEveryTheme(shown, async (theme) => {
      t.deepEqual(await seriousViolations(page), [], theme);
      await shown.screenshot(picture(`follow-chart-${theme}`));
    });
    await page.waitForTimeout(500);
    await shown.reload();
    await page.getByRole('tab', { name: 'Follow tens' }).waitFor();
    t.true((await shown.inkOfChart()) > 0, 'the chart continues after a reload');
    t.is(await page.getByLabel('Number of rows', { exact: true }).inputValue(), '100');
    await page.getByRole('button', { name: 'Open query' }).click();
    t.true(await shown.editor.isVisible());
    t.is(await shown.run(), 'done');
    t.is(await shown.summary(), '25 rows');
  });
});

browserTest('a closed follow tab can be reopened after a reload', async (t) => {
  await createTable('closed');
  await onPage(t, async (shown) => {
    const { page } = shown;
    await follow(shown, 'closed');
    await page.keyboard.press('Alt+w');
    await page.locator('.follow').waitFor({ state: 'detached' });
    // Closing a tab must not prevent text typed afterwards from being saved.
    await shown.write('SELECT 77');
    await page.getByText(/^Draft saved/).waitFor();
    await page.waitForTimeout(500);
    await page.evaluate('localStorage.clear()');
    await shown.reload();
    t.is(await shown.editor.innerText(), 'SELECT 77');
    await page.keyboard.press('Alt+Shift+T');
    await page.locator('.follow .grid-row').first().waitFor();
  });
});

browserTest('sorting pauses the rows, and narrow windows show all controls', async (t) => {
  await createTable('sorted');
  await onPage(t, async (shown) => {
    const { page } = shown;
    await follow(shown, 'sorted');
    await page.locator('.grid-cell', { hasText: /^200$/ }).waitFor();
    await page.locator('.grid-head-cell', { hasText: 'n' }).last().click();
    await state(shown, /^Updates on hold/);
    await more('sorted', 201, 202);
    await page.getByRole('button', { name: '2 new rows' }).click();
    await page.locator('.grid-cell', { hasText: /^202$/ }).waitFor();
    t.is(await page.locator('.grid-head-cell.sorted').count(), 0);
    await page.locator('.follow .grid').focus();
    await page.keyboard.press('F2');
    t.is(await page.locator(':focus').innerText(), 'Pause');
  });
  for (const [width, height] of [
    [1024, 768],
    [390, 844],
  ] as const) {
    await onPage(
      t,
      async (shown) => {
        const { page } = shown;
        await page.getByRole('button', { name: 'Follow', exact: true }).click();
        await page.locator('.follow .grid-row').first().waitFor();
        t.deepEqual(await seriousViolations(page), [], `at ${width}`);
        await shown.screenshot(picture(`follow-${width}`));
      },
      { page: 'tables/sorted', width, height },
    );
  }
});
