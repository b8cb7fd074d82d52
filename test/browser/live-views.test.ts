/** Live views in the tree, the palette and the details page. */
import type { Locator } from 'playwright-core';

import { seriousViolations } from './axe.js';
import { leavePicture } from './console-page.js';
import type { ConsolePage } from './console-page.js';
import { openBrowser, BrowserUser, serverFor } from './user.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage, rows } = browserSuite('live views in a browser');
openBrowser();

const QUERY = `SELECT ts, s, sum(v) OVER (PARTITION BY s ORDER BY ts) AS total FROM `;

/** Creates a base with rows, and a live view that shows them. */
async function createView(base: string): Promise<string> {
  const view = `${base}_totals`;
  await rows(`CREATE TABLE ${base} (ts TIMESTAMP, s SYMBOL, v DOUBLE) TIMESTAMP(ts)
    PARTITION BY DAY`);
  await rows(`INSERT INTO ${base} VALUES ('2026-01-01T00:10:00Z', 'a', 1),
    ('2026-01-01T01:10:00Z', 'b', 2)`);
  await rows(
    `CREATE LIVE VIEW ${view} FLUSH EVERY 250ms IN MEMORY 1m START FROM BEGINNING AS (
       ${QUERY}${base})`,
  );
  while ((await factOf(view, 'last_processed_seqtxn')) === null) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return view;
}

async function factOf(view: string, what: string): Promise<unknown> {
  const [[fact] = []] = await rows(`SELECT ${what} FROM live_views() WHERE view_name = '${view}'`);
  return fact;
}

function rowOf({ page }: ConsolePage, view: string): Locator {
  return page.getByRole('treeitem', { name: new RegExp(`^${view}`) });
}

function fact({ page }: ConsolePage, name: string): Locator {
  return page.locator('.view-facts > div', { hasText: new RegExp(`^${name}`) }).locator('dd');
}

browserTest('the tree lists live views separately, with state, lag and reason', async (t) => {
  const view = await createView('followed');
  await onPage(t, async (shown) => {
    const { page } = shown;
    await page.getByRole('treeitem', { name: /^Live views/ }).waitFor();
    await rowOf(shown, view).click();
    await page.getByRole('treeitem', { name: 'from followed' }).waitFor();
    await page.getByRole('treeitem', { name: 'state Active' }).waitFor();
    await page.getByRole('treeitem', { name: 'lag none' }).waitFor();
    const badge = rowOf(shown, view).locator('.badge');
    t.is(await badge.count(), 0, 'the view is up to date with its base table');
    await rows(`ALTER LIVE VIEW ${view} SUSPEND WAL`);
    await rows("INSERT INTO followed VALUES ('2026-01-02T00:10:00Z', 'a', 1)");
    await badge.filter({ hasText: 'suspended' }).waitFor();
    await page.getByRole('treeitem', { name: /^lag up to \d+ transactions?$/ }).waitFor();
    await page.getByLabel('Filter tables and columns').fill('suspended');
    t.is(await page.locator('.tree-row.table').count(), 1);
    await page.getByLabel('Filter tables and columns').fill('');
    await rows(`ALTER LIVE VIEW ${view} RESUME WAL`);
    await rows('ALTER TABLE followed RENAME COLUMN v TO w');
    await badge.filter({ hasText: 'invalid' }).waitFor();
    await page.getByRole('treeitem', { name: 'state Invalid: rename column operation' }).waitFor();
    t.deepEqual(await seriousViolations(page), []);
    await shown.screenshot(picture('live-tree-light'));
    await rowOf(shown, view).click({ button: 'right' });
    t.is(await page.getByRole('menuitem', { name: 'Import into' }).count(), 0);
    await page.getByRole('menuitem', { name: 'Copy DDL' }).click();
    await page.locator('.toast', { hasText: 'DDL' }).waitFor();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    t.regex(copied, new RegExp(`^CREATE LIVE VIEW '${view}' FLUSH EVERY 250ms IN MEMORY 1m`));
    await shown.write(`SELECT * FROM ${view.slice(0, -3)}`);
    await page.keyboard.press('Control+Space');
    await page.locator('.cm-completionDetail', { hasText: 'live view' }).first().waitFor();
  });
});

browserTest('view details show clauses, lag and last repair; views can be suspended', async (t) => {
  const view = await createView('detailed');
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await page
        .locator('.view-state', { hasText: 'Active, up to date with its base table' })
        .waitFor();
      t.is(await fact(shown, 'Base').innerText(), 'detailed');
      t.is(await fact(shown, 'Flush every').innerText(), '250ms');
      t.is(await fact(shown, 'In memory').innerText(), '1m');
      t.is(
        await fact(shown, 'Start from').innerText(),
        'the beginning: all rows of its base table',
      );
      await fact(shown, 'Last repair').filter({ hasText: 'rows arrived in order' }).waitFor();
      await rows("INSERT INTO detailed VALUES ('2026-01-01T00:05:00Z', 'a', 5)");
      await fact(shown, 'Last repair')
        .filter({ hasText: 'from 2026-01-01 00:05:00 to the end, 3 rows' })
        .waitFor();
      const definition = page.getByRole('region', { name: 'View query' });
      t.is(await definition.innerText(), `${QUERY}detailed`);
      await page.getByRole('button', { name: 'Copy query' }).click();
      await page.locator('.toast').waitFor();
      t.is(await page.evaluate('navigator.clipboard.readText()'), `${QUERY}detailed`);
      await inEveryTheme(shown, async (theme) => {
        t.deepEqual(await seriousViolations(page), [], theme);
        await shown.screenshot(picture(`live-details-${theme}`));
      });
      // The lists are reloaded every two seconds, during which the visible content must stay the
      // same.
      await page.evaluate(`(() => {
        const shown = () => document.querySelector('.sql-text').innerText === '';
        window.wasEmpty = shown();
        new MutationObserver(() => (window.wasEmpty ||= shown())).observe(
          document.querySelector('.view-pane'),
          { childList: true, subtree: true, characterData: true },
        );
      })()`);
      await page.waitForTimeout(4500);
      t.false(await page.evaluate('window.wasEmpty'));
      await page.getByRole('button', { name: 'Suspend' }).click();
      await page.locator('.view-state[data-state="suspended"]').waitFor();
      t.is(await page.getByRole('button', { name: 'Suspend' }).count(), 0);
      await rows("INSERT INTO detailed VALUES ('2026-01-03', 'a', 5)");
      await fact(shown, 'Lag').filter({ hasText: 'up to' }).waitFor();
      await shown.screenshot(picture('live-suspended-light'));
      await page.getByRole('button', { name: 'Resume' }).click();
      await page.locator('.view-state[data-state="current"]').waitFor();
      t.deepEqual(await rows(`SELECT count() FROM ${view}`), [[4]]);
      for (const tab of ['Columns', 'Partitions', 'DDL', 'Ingestion']) {
        await page.getByRole('tab', { name: tab }).click();
        await page
          .locator('.details-body tbody tr, .details-body pre, .ingestion')
          .first()
          .waitFor();
      }
      await page.getByText('only by its query').waitFor();
      await page.getByRole('button', { name: 'Follow', exact: true }).click();
      await page.locator('.follow-state', { hasText: /^Live$/ }).waitFor();
      await rows("INSERT INTO detailed VALUES ('2026-01-04', 'a', 70)");
      await page.locator('.grid-cell', { hasText: /^81(\.0)?$/ }).waitFor();
    },
    { page: `tables/${view}` },
  );
});

browserTest(
  'an invalid view shows how to repair it, then resumes, and can be dropped',
  async (t) => {
    const view = await createView('changed');
    await onPage(
      t,
      async (shown) => {
        const { page } = shown;
        await page.locator('.view-state[data-state="current"]').waitFor();
        await rows('ALTER TABLE changed RENAME COLUMN v TO w');
        const state = page.locator('.view-state');
        await state.filter({ hasText: 'Rename it back' }).waitFor();
        await inEveryTheme(shown, async (theme) => {
          t.deepEqual(await seriousViolations(page), [], theme);
          await shown.screenshot(picture(`live-invalid-${theme}`));
        });
        await rows('ALTER TABLE changed RENAME COLUMN w TO v');
        await page.locator('.view-state[data-state="current"]').waitFor();
        await rows('DROP TABLE changed');
        await state.filter({ hasText: 'drop it and create it again' }).waitFor();
        await page.getByRole('button', { name: 'Drop…' }).click();
        const dialog = page.getByRole('dialog');
        t.regex(await dialog.innerText(), new RegExp(`DROP LIVE VIEW ${view}`));
        t.is(await page.locator(':focus').innerText(), 'Cancel');
        await dialog.getByRole('button', { name: `Drop ${view}` }).click();
        await page.locator('.details').waitFor({ state: 'detached' });
        t.is(await factOf(view, 'view_name'), undefined);
      },
      { page: `tables/${view}` },
    );
  },
);

browserTest('imports into a live view are disabled; its page fits narrow windows', async (t) => {
  const view = await createView('narrow');
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      const buffer = Buffer.from('day,value\n2026-01-01,1\n');
      const input = page.locator('input[type="file"]');
      await input.setInputFiles({ name: 'days.csv', mimeType: 'text/csv', buffer });
      await page.getByLabel('Table', { exact: true }).fill(view);
      await page.getByText(`${view} is a live view and cannot receive rows.`).waitFor();
      t.true(await page.locator('[data-action="import"]').isDisabled());
    },
    { page: 'import' },
  );
  for (const [width, height] of [
    [1024, 768],
    [390, 844],
  ] as const) {
    await onPage(
      t,
      async (shown) => {
        const { page } = shown;
        await page.locator('.view-state[data-state="current"]').waitFor();
        t.deepEqual(await seriousViolations(page), [], `details at ${width}`);
        await shown.screenshot(picture(`live-details-${width}`));
        const over = await page.evaluate<number>(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        );
        t.is(over, 0, `the page has no horizontal scroll bar at ${width}`);
      },
      { page: `tables/${view}`, width, height },
    );
  }
});

browserTest('forbidden actions on a live view are disabled, with the reason', async (t) => {
  const server = await serverFor(t, ['acl.enabled=true', 'acl.admin.password=secret']);
  const execute = async (statement: string): Promise<void> => {
    const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(statement)}`, {
      headers: { Authorization: `Basic ${btoa('admin:secret')}` },
    });
    t.is(response.status, 200, statement);
  };
  await execute(
    'CREATE TABLE base (ts TIMESTAMP, s SYMBOL, v DOUBLE) TIMESTAMP(ts) PARTITION BY DAY',
  );
  await execute(`CREATE LIVE VIEW totals FLUSH EVERY 1s START FROM BEGINNING AS (${QUERY}base)`);
  await execute("CREATE USER ann WITH PASSWORD 'a long one'");
  await execute('GRANT HTTP TO ann');
  await execute('GRANT SELECT, DROP LIVE VIEW ON totals TO ann');
  const ann = await BrowserUser.arrive(t);
  const { page } = ann;
  await page.goto(`${server.url}/#tables/totals`);
  await ann.signIn('ann', 'a long one');
  const actions = page.locator('.view-actions');
  await actions.getByText(/An administrator can grant RESUME WAL on it/).waitFor();
  t.true(await actions.getByRole('button', { name: 'Suspend' }).isDisabled());
  t.true(await actions.getByRole('button', { name: 'Drop…' }).isEnabled());
  t.is(await page.locator('.view-facts dd').first().innerText(), 'not visible to you');
  t.deepEqual(await seriousViolations(page), []);
  await leavePicture(page, picture('live-rights-light'));
  t.deepEqual(ann.complaints, []);
});
