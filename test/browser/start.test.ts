/** An empty database as seen by a new user. */
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage, rows, server } = browserSuite('first steps in a browser');

browserTest('an empty database offers three ways to load the first rows', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await page.getByRole('heading', { name: 'Tidemark is running' }).waitFor();
      for (const client of ['psql', 'Python', 'Node', 'Go', 'Java']) {
        await page.getByRole('tab', { name: client, exact: true }).click();
        t.true(
          (await page.locator('.start-connect pre').innerText()).includes(server().pg),
          client,
        );
      }
      await page.getByRole('tab', { name: 'curl' }).click();
      await inEveryTheme(shown, async (theme) => {
        await shown.screenshot(picture(`start-${theme}`));
      });
      for (const width of [390, 320]) {
        await shown.resize(width, 844);
        const cut = await page.evaluate<string[]>(`[...document.querySelectorAll('.start *')]
          .filter((one) => one.getBoundingClientRect().right > innerWidth
            && !one.closest('.code-block > *'))
          .map((one) => one.outerHTML.slice(0, 80))`);
        t.deepEqual(cut, [], `${width} pixels`);
        await shown.screenshot(picture(`start-${width}`));
      }
      await shown.resize(1440, 900);
      await page.getByRole('button', { name: 'Go to the SQL editor' }).click();
      await shown.isAt('SQL workspace');
      t.true(await shown.editor.isVisible());
    },
    { page: '' },
  );
});

browserTest('a page opened while the tables load is not replaced by the start page', async (t) => {
  await onPage(
    t,
    async ({ page }) => {
      let release = (): void => undefined;
      const released = new Promise<void>((resolve) => (release = resolve));
      await page.route('**/exec?*', async (route) => {
        await released;
        await route.continue();
      });
      // Normally the URL changes before the page is notified. Here the page is never notified.
      await page.addInitScript(
        "addEventListener('hashchange', (event) => event.stopImmediatePropagation())",
      );
      await page.goto(`${server().url}/`);
      await page.locator('.editor-host.ready').waitFor({ state: 'attached' });
      await page.evaluate("location.hash = '#tables'");
      release();
      await page.locator('.side[aria-busy="false"]').waitFor({ state: 'attached' });
      t.is(new URL(page.url()).hash, '#tables');
    },
    { page: 'sql' },
  );
});

browserTest('the demo data is created, charted and removed', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await page.locator('[data-action="demo"]').click();
      await page.locator('.summary[data-state="done"]').waitFor({ timeout: 60_000 });
      t.deepEqual(await shown.columns(), ['timestamp', 'symbol', 'price']);
      t.true((await shown.inkOfChart()) > 2000);
      t.deepEqual(await rows('SELECT count() FROM trades'), [[500_000]]);
      t.deepEqual(await rows('SELECT count_distinct(station) FROM sensors'), [[40]]);
      await page.locator('.toast').getByRole('button', { name: 'Remove' }).click();
      await page.locator('.toast', { hasText: 'Demo data removed' }).waitFor();
      t.deepEqual(await rows('SELECT count() FROM tables()'), [[0]]);
    },
    { page: 'start' },
  );
});

browserTest('the first rows from another client are shown', async (t) => {
  await onPage(
    t,
    async (shown) => {
      await shown.page.getByText('opens the table when the first rows arrive').waitFor();
      await rows('CREATE TABLE arrivals (v INT, ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY');
      await rows("INSERT INTO arrivals VALUES (7, '2026-01-01')");
      await shown.page.locator('.summary[data-state="done"]').waitFor();
      t.is((await shown.row(1))[0], '7');
    },
    { page: 'start' },
  );
});

browserTest('the start page waits for new rows even if a table already has rows', async (t) => {
  t.deepEqual(await rows('SELECT count() FROM arrivals'), [[1]]);
  await onPage(
    t,
    async (shown) => {
      await shown.page.getByRole('treeitem', { name: /^arrivals/ }).waitFor();
      await shown.page.locator('.start-connect pre').waitFor();
      t.true(await shown.page.getByRole('heading', { name: 'Tidemark is running' }).isVisible());
      await rows('CREATE TABLE others AS (SELECT 8 AS v)');
      await shown.page.locator('.summary[data-state="done"]').waitFor();
      t.is((await shown.row(1))[0], '8');
    },
    { page: 'start' },
  );
});

browserTest('the server is shown with its name, role and colour', async (t) => {
  const body = JSON.stringify({
    instance_name: 'eu <b>1</b>',
    instance_type: 'production',
    instance_rgb: 'rgb(200, 40, 30)',
  });
  const saved = await fetch(`${server().url}/settings?version=0`, { method: 'PUT', body });
  t.is(saved.status, 200);
  await onPage(t, async (shown) => {
    const head = shown.page.locator('.instance');
    t.regex(await head.innerText(), /eu <b>1<\/b>\s+production/);
    const bar = "getComputedStyle(document.querySelector('.instance-bar')).backgroundColor";
    t.is(await shown.page.evaluate<string>(bar), 'rgb(200, 40, 30)');
    t.is(await shown.page.title(), 'eu <b>1</b> – Tidemark');
    await shown.page.getByRole('button', { name: 'Edit name, role and colour' }).click();
    const dialog = shown.page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('north');
    await dialog.getByLabel('Role').selectOption('testing');
    await dialog.getByLabel('Colour').selectOption('green');
    await dialog.getByLabel('Description').fill('of the tests');
    const theirs = JSON.stringify({ instance_description: 'of others' });
    await fetch(`${server().url}/settings?version=1`, { method: 'POST', body: theirs });
    const save = dialog.getByRole('button', { name: 'Save for all users' });
    await save.click();
    await dialog.getByText('preferences view is out of date').waitFor();
    t.regex(shown.complaints.splice(0).join(), /^Failed to load .* 409 \(Conflict\)$/);
    t.regex(await head.innerText(), /eu <b>1<\/b>\s+production/);
    await save.click();
    await dialog.waitFor({ state: 'detached' });
    t.regex(await head.innerText(), /north\s+testing/);
    t.is(await shown.page.evaluate<string>(bar), 'rgb(22, 130, 70)');
    t.is(await head.getAttribute('title'), 'of the tests');
    const settings = await fetch(`${server().url}/settings`).then((answer) => answer.json());
    t.is((settings as { 'preferences.version': number })['preferences.version'], 3);
  });
});
