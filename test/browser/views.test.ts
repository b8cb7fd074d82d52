/** Materialized views in the tree, their details and actions, and background jobs. */
import type { Locator } from 'playwright-core';

import { seriousViolations } from './axe.js';
import { leavePicture } from './console-page.js';
import type { ConsolePage } from './console-page.js';
import { openBrowser, BrowserUser, serverFor } from './user.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage, rows } = browserSuite('materialized views in a browser');
openBrowser();

/** Creates a base with rows, and a view over it. */
async function createView(base: string, refresh: string): Promise<string> {
  const view = `${base}_hours`;
  await rows(`CREATE TABLE ${base} (ts TIMESTAMP, v DOUBLE) TIMESTAMP(ts) PARTITION BY DAY`);
  await rows(`INSERT INTO ${base} VALUES ('2026-01-01T00:10:00Z', 1), ('2026-01-01T01:10:00Z', 2)`);
  await rows(
    `CREATE MATERIALIZED VIEW ${view} REFRESH ${refresh} AS (
       SELECT ts, sum(v) AS v FROM ${base} SAMPLE BY 1h) PARTITION BY DAY`,
  );
  return view;
}

async function factOf(view: string, what: string): Promise<unknown> {
  const [[fact] = []] = await rows(
    `SELECT ${what} FROM materialized_views() WHERE view_name = '${view}'`,
  );
  return fact;
}

/** Polls until the server has reached a state. */
async function until(what: () => Promise<boolean>): Promise<void> {
  while (!(await what())) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function rowOf({ page }: ConsolePage, view: string): Locator {
  return page.getByRole('treeitem', { name: new RegExp(`^${view}`) });
}

function fact({ page }: ConsolePage, name: string): Locator {
  return page.locator('.view-facts > div', { hasText: name }).locator('dd');
}

browserTest('the tree shows new tables and views that lag or become invalid', async (t) => {
  const view = await createView('followed', 'MANUAL');
  await until(async () => (await factOf(view, 'refresh_base_table_txn')) !== null);
  await onPage(t, async (shown) => {
    const { page } = shown;
    await rowOf(shown, view).waitFor();
    t.is(
      await rowOf(shown, view).locator('.badge').count(),
      0,
      'the view is up to date with its base table',
    );
    await rows('CREATE TABLE made_elsewhere (v INT)');
    await rowOf(shown, 'made_elsewhere').waitFor();
    await rows("INSERT INTO followed VALUES ('2026-01-02T00:10:00Z', 1)");
    const badge = rowOf(shown, view).locator('.badge');
    await badge.filter({ hasText: /behind \d+ · \d+ (s|min)/ }).waitFor();
    await page.getByLabel('Filter tables and columns').fill('behind');
    t.is(await page.locator('.tree-row.table').count(), 1);
    await page.getByLabel('Filter tables and columns').fill('');
    await rows('TRUNCATE TABLE followed');
    await badge.filter({ hasText: 'invalid' }).waitFor();
    await rowOf(shown, view).click();
    await page.getByRole('treeitem', { name: 'state Invalid: truncate operation' }).waitFor();
    await page.getByRole('treeitem', { name: 'from followed' }).waitFor();
    await page.getByRole('treeitem', { name: /^Materialized views/ }).click();
    t.regex(
      await page.getByRole('treeitem', { name: /^Materialized views/ }).innerText(),
      /1 invalid/,
      'a collapsed group shows invalid views too',
    );
    t.deepEqual(await seriousViolations(page), []);
  });
});

browserTest('one stream serves all views; a hidden page sends no requests', async (t) => {
  for (const base of ['many_a', 'many_b', 'many_c']) {
    await createView(base, 'IMMEDIATE');
  }
  await onPage(t, async (shown) => {
    const { page } = shown;
    const requested: string[] = [];
    page.on('request', (request) => {
      const { pathname } = new URL(request.url());
      // The editor text is validated once.
      if (pathname !== '/api/v1/sql/validate') {
        requested.push(pathname);
      }
    });
    await rows('CREATE TABLE many_d (v INT)');
    await rowOf(shown, 'many_d').waitFor();
    await page.waitForTimeout(6000);
    t.deepEqual(requested, [], 'the open stream reports all changes');
    const streams = async (): Promise<number> =>
      Number(
        (
          await rows("SELECT count() FROM query_activity() WHERE query LIKE '%live_views%'")
        )[0]?.[0],
      );
    const see = async (isHidden: boolean): Promise<void> => {
      await page.evaluate(
        `Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${isHidden} });
         document.dispatchEvent(new Event('visibilitychange'))`,
      );
    };
    await see(true);
    await page.waitForTimeout(500);
    for (let attempt = 0; attempt < 20; attempt += 1) {
      t.is(await streams(), 1, 'only the test query itself runs');
      await page.waitForTimeout(100);
    }
    await rows('CREATE TABLE many_e (v INT)');
    await page.waitForTimeout(2500);
    t.is(await rowOf(shown, 'many_e').count(), 0);
    t.deepEqual(requested, []);
    await see(false);
    await rowOf(shown, 'many_e').waitFor();
    t.is(requested.filter((path) => path === '/live').length, 1);
  });
});

browserTest('view details show coverage, refresh policy and status', async (t) => {
  const view = await createView(
    'detailed',
    "EVERY 10m START '2026-01-01T00:00:00Z' PERIOD (LENGTH 1h DELAY 5m)",
  );
  await until(async () => (await factOf(view, 'refresh_base_table_txn')) !== null);
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await page.locator('.view-state', { hasText: 'up to date with its base table' }).waitFor();
      t.is(await fact(shown, 'Base').innerText(), 'detailed');
      await fact(shown, 'Refresh').filter({ hasText: 'timer: every 10 min' }).waitFor();
      t.regex(await fact(shown, 'Next refresh (UTC)').innerText(), /^\d{4}-\d\d-\d\d \d\d:\d0:00$/);
      t.is(await fact(shown, 'Periods').innerText(), 'includes each 1h 5m after its end');
      t.regex(await fact(shown, 'Duration').innerText(), /\d m?s$/);
      const definition = page.getByRole('region', { name: 'View query' });
      t.regex(
        await definition.innerText(),
        /^SELECT ts, sum\(v\) AS v FROM detailed SAMPLE BY 1h$/,
      );
      t.is(await definition.locator('.sql-keyword').first().innerText(), 'SELECT');
      await page.getByRole('button', { name: 'Copy query' }).click();
      await page.locator('.toast').waitFor();
      const copied = await page.evaluate<string>('navigator.clipboard.readText()');
      t.is(copied, await definition.innerText());
      await inEveryTheme(shown, async (theme) => {
        t.deepEqual(await seriousViolations(page), [], theme);
        await shown.screenshot(picture(`view-details-${theme}`));
      });
      await fact(shown, 'Base').getByRole('link').click();
      await page.locator('#details-title', { hasText: /^detailed$/ }).waitFor();
      t.is(await page.getByRole('tab', { name: 'View' }).count(), 0, 'a table has no View tab');
    },
    { page: `tables/${view}` },
  );
});

browserTest('a view is refreshed in full or by range, and errors are shown', async (t) => {
  const view = await createView('acted', 'MANUAL DEFERRED');
  const count = async (): Promise<unknown> => (await rows(`SELECT count() FROM ${view}`))[0]?.[0];
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await page.locator('.view-state', { hasText: 'not filled yet' }).waitFor();
      await page.getByRole('button', { name: 'Refresh', exact: true }).click();
      await page.locator('.view-state', { hasText: 'up to date with its base table' }).waitFor();
      t.is(await count(), 2);

      await rows("INSERT INTO acted VALUES ('2026-01-02T00:10:00Z', 1)");
      await page.getByRole('button', { name: 'Refresh range…' }).click();
      const dialog = page.getByRole('dialog');
      const act = dialog.getByRole('button', { name: 'Refresh range' });
      t.true(await act.isDisabled());
      await dialog.getByLabel('From').fill('yesterday');
      await dialog.getByLabel('To', { exact: true }).fill('2026-01-03');
      await act.click();
      await dialog.getByRole('alert').filter({ hasText: 'Invalid date' }).waitFor();
      t.deepEqual(await seriousViolations(page), []);
      await shown.screenshot(picture('view-range-light'));
      await dialog.getByLabel('From').fill('2026-01-02');
      await act.click();
      await dialog.waitFor({ state: 'detached' });
      await until(async () => (await count()) === 3);

      await rows('TRUNCATE TABLE acted');
      await page.locator('.view-state', { hasText: 'Its base table was truncated.' }).waitFor();
      await page.getByRole('button', { name: 'Refresh', exact: true }).click();
      await page.locator('.view-failure').waitFor();
      await shown.screenshot(picture('view-invalid-light'));
      await page.getByRole('button', { name: 'Refresh fully' }).click();
      t.is(await page.locator(':focus').innerText(), 'Cancel');
      t.regex(await dialog.innerText(), /This reads 0 rows of acted\. The last refresh took/);
      await dialog.getByRole('button', { name: 'Refresh fully' }).click();
      await page.locator('.view-state', { hasText: 'up to date with its base table' }).waitFor();
      t.is(await count(), 0);
      t.is(await page.locator('.view-failure').count(), 0);
    },
    { page: `tables/${view}` },
  );
});

browserTest('a refresh policy can be changed; dropping a view asks for confirmation', async (t) => {
  const view = await createView('changed', 'IMMEDIATE');
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await fact(shown, 'Refresh').filter({ hasText: 'immediate' }).waitFor();
      await page.getByRole('button', { name: 'Change refresh policy' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Refreshed').selectOption('timer');
      await dialog.getByLabel('Every').fill('5');
      await dialog.getByLabel('Unit').selectOption('h');
      await dialog.getByLabel('Time zone for days').fill('Nowhere/Near');
      t.regex(
        await dialog.getByRole('region', { name: 'Statement' }).innerText(),
        /SET REFRESH EVERY 5h TIME ZONE 'Nowhere\/Near'$/,
      );
      t.deepEqual(await seriousViolations(page), []);
      await shown.screenshot(picture('view-change-light'));
      await dialog.getByRole('button', { name: 'Change refresh policy' }).click();
      await dialog.getByRole('alert').waitFor();
      await dialog.getByLabel('Time zone for days').fill('Europe/Berlin');
      await dialog.getByRole('button', { name: 'Change refresh policy' }).click();
      await dialog.waitFor({ state: 'detached' });
      await fact(shown, 'Refresh').filter({ hasText: 'every 5 h in Europe/Berlin' }).waitFor();
      t.is(await factOf(view, 'refresh_type'), 'timer');
      await page.getByRole('button', { name: 'Drop…' }).click();
      await dialog.getByRole('button', { name: `Drop ${view}` }).click();
      await page.locator('.details').waitFor({ state: 'detached' });
      t.is(await factOf(view, 'view_name'), undefined);
    },
    { page: `tables/${view}` },
  );
});

browserTest('jobs are listed and filtered, and linked from the status bar', async (t) => {
  const view = await createView('working', 'IMMEDIATE');
  await until(async () => (await factOf(view, 'refresh_base_table_txn')) !== null);
  await onPage(t, async (shown) => {
    const { page } = shown;
    await rows('TRUNCATE TABLE working');
    const status = page.getByRole('contentinfo', { name: 'Status' });
    await status.getByRole('link', { name: /^Jobs: \d+ stopped$/ }).click();
    await shown.isAt('Background jobs');
    const row = page.locator('.listing tbody tr', { hasText: view });
    await row.waitFor();
    t.regex(await row.innerText(), /stopped[^]*truncate operation/);
    t.is(await page.locator('.listing tbody tr', { hasText: 'Row expiry in' }).count(), 0);
    await page.getByRole('button', { name: 'All', exact: true }).click();
    await page.locator('.listing tbody tr', { hasText: 'Row expiry in' }).waitFor();
    await inEveryTheme(shown, async (theme) => {
      t.deepEqual(await seriousViolations(page), [], theme);
      await shown.screenshot(picture(`jobs-${theme}`));
    });
    await page.getByLabel('Filter by name, kind or error').fill('no such job');
    await page.getByText('No matching jobs').waitFor();
    await page.getByLabel('Filter by name, kind or error').fill(view);
    await row.getByRole('link', { name: view }).click();
    await page.locator('.view-state[data-state="invalid"]').waitFor();
    await page.keyboard.press('Control+K');
    await page.getByRole('combobox', { name: 'Type a table' }).fill('background');
    await page.keyboard.press('Enter');
    await shown.isAt('Background jobs');
  });
});

browserTest('a failed refresh shows the reason and the time of the next attempt', async (t) => {
  await rows('CREATE TABLE large (ts TIMESTAMP, v LONG) TIMESTAMP(ts) PARTITION BY DAY');
  await rows("INSERT INTO large VALUES ('2026-01-01', 123456)");
  await rows(
    `CREATE MATERIALIZED VIEW too_large AS (
       SELECT ts, sum(cast(v AS DECIMAL(4, 0))) AS s FROM large SAMPLE BY 1h) PARTITION BY DAY`,
  );
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      t.regex(await fact(shown, 'Last error').innerText(), /123456/);
      t.regex(await fact(shown, 'Next attempt (UTC)').innerText(), /^\d{4}-\d\d-\d\d /);
      await fact(shown, 'Job').filter({ hasText: 'failing' }).waitFor();
      await page.locator('.view-state', { hasText: 'Its refresh is failing' }).waitFor();
      await shown.screenshot(picture('view-failing-light'));
      await page.getByRole('link', { name: /^Jobs: 1 failing/ }).click();
      const row = page.locator('.listing tbody tr', { hasText: 'too_large' });
      t.regex(await row.innerText(), /failing[^]*123456/);
      t.deepEqual(await seriousViolations(page), []);
      await rows('UPDATE large SET v = 12 WHERE v = 123456');
      await row.waitFor({ state: 'detached' });
    },
    { page: 'tables/too_large' },
  );
});

browserTest('views and jobs fit narrow windows', async (t) => {
  const view = await createView('narrow', 'MANUAL');
  for (const [width, height] of [
    [1024, 768],
    [390, 844],
  ] as const) {
    await onPage(
      t,
      async (shown) => {
        const { page } = shown;
        await page.locator('.view-definition').scrollIntoViewIfNeeded();
        t.deepEqual(await seriousViolations(page), [], `details at ${width}`);
        await shown.screenshot(picture(`view-details-${width}`));
        await page.evaluate("location.hash = 'jobs'");
        await shown.isAt('Background jobs');
        await page.locator('.listing tbody tr').first().waitFor();
        t.deepEqual(await seriousViolations(page), [], `jobs at ${width}`);
        await shown.screenshot(picture(`jobs-${width}`));
        const over = await page.evaluate<number>(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        );
        t.is(over, 0, `the page has no horizontal scroll bar at ${width}`);
      },
      { page: `tables/${view}`, width, height },
    );
  }
});

browserTest('forbidden actions are disabled, with the reason', async (t) => {
  const server = await serverFor(t, ['acl.enabled=true', 'acl.admin.password=secret']);
  const execute = async (statement: string): Promise<void> => {
    const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(statement)}`, {
      headers: { Authorization: `Basic ${btoa('admin:secret')}` },
    });
    t.is(response.status, 200, statement);
  };
  await execute('CREATE TABLE base (ts TIMESTAMP, v DOUBLE) TIMESTAMP(ts) PARTITION BY DAY');
  await execute(
    'CREATE MATERIALIZED VIEW hours AS (SELECT ts, sum(v) AS v FROM base SAMPLE BY 1h)',
  );
  await execute("CREATE USER ann WITH PASSWORD 'a long one'");
  await execute('GRANT HTTP TO ann');
  await execute('GRANT SELECT, REFRESH MATERIALIZED VIEW ON hours TO ann');
  const ann = await BrowserUser.arrive(t);
  const { page } = ann;
  await page.goto(`${server.url}/#tables/hours`);
  await ann.signIn('ann', 'a long one');
  const actions = page.locator('.view-actions');
  const isOffered = (name: string): Promise<boolean> =>
    actions.getByRole('button', { name, exact: true }).isEnabled();
  await actions.getByText(/An administrator can grant DROP MATERIALIZED VIEW on it/).waitFor();
  await actions.getByText('You do not have permission to change hours.').waitFor();
  t.true(await isOffered('Refresh'));
  t.true(await isOffered('Refresh fully…'));
  t.false(await isOffered('Change refresh policy…'));
  t.false(await isOffered('Drop…'));
  t.is(await page.locator('.view-facts dd').first().innerText(), 'not visible to you');
  t.deepEqual(await seriousViolations(page), []);
  await leavePicture(page, picture('view-rights-light'));
  await actions.getByRole('button', { name: 'Refresh', exact: true }).click();
  await page.locator('.toast', { hasText: 'hours is being refreshed' }).waitFor();
  t.deepEqual(ann.complaints, []);
});
