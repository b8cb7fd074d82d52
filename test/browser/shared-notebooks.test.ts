/**
 * Notebooks saved on the server: two users share a notebook, merge changes, restore versions and
 * share a link.
 */
import type { ExecutionContext } from 'ava';
import type { Locator, Page } from 'playwright-core';

import type { TestServer } from '../golden/server.js';
import { browserTest, inThemes, openBrowser, BrowserUser, serverFor } from './user.js';

openBrowser();

const LOGINS = ['acl.enabled=true', 'acl.admin.password=secret'];

async function startServerForTwo(t: ExecutionContext): Promise<{ server: TestServer }> {
  const server = await serverFor(t, LOGINS);
  const login = { Authorization: `Basic ${btoa('admin:secret')}` };
  for (const statement of [
    "CREATE USER ann WITH PASSWORD 'p'",
    "CREATE USER ben WITH PASSWORD 'p'",
    'GRANT HTTP TO ann',
    'GRANT HTTP TO ben',
  ]) {
    const address = `${server.url}/exec?query=${encodeURIComponent(statement)}`;
    t.is((await fetch(address, { headers: login })).status, 200);
  }
  return { server };
}

async function arrived(
  t: ExecutionContext,
  server: TestServer,
  name: string,
  at = '#sql',
): Promise<BrowserUser> {
  const user = await BrowserUser.arrive(t);
  await user.page.goto(`${server.url}/${at}`);
  await user.signIn(name, 'p');
  return user;
}

function cell(page: Page, name: string): Locator {
  return page.getByRole('article', { name: `Cell ${name}`, exact: true });
}

async function write(page: Page, name: string, text: string): Promise<void> {
  await cell(page, name).locator('.cm-content').focus();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(text);
}

function textOf(page: Page, name: string): Promise<string> {
  return cell(page, name).locator('.cm-content').innerText();
}

async function newNotebook(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Tabs', exact: true }).click();
  await page.getByRole('menuitem', { name: 'New notebook' }).click();
  await cell(page, 'cell_1').waitFor();
}

async function save(page: Page, version: number): Promise<void> {
  await page.keyboard.press('Control+S');
  await page.locator('.toast', { hasText: `version ${version} saved` }).waitFor();
}

async function menu(page: Page, item: string): Promise<void> {
  await page.getByRole('button', { name: 'More notebook actions' }).click();
  await page.getByRole('menuitem', { name: item }).click();
}

async function openFromPage(page: Page, title: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Main' }).getByLabel('Notebooks').click();
  await page.getByRole('button', { name: title, exact: true }).click();
  await cell(page, 'cell_1').waitFor();
}

async function poll(page: Page): Promise<void> {
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
}

const PHONE = { width: 390, height: 844 };

browserTest('two users edit a shared notebook and merge it cell by cell', async (t) => {
  const { server } = await startServerForTwo(t);
  const ann = await arrived(t, server, 'ann');
  const { page } = ann;
  await newNotebook(page);
  await write(page, 'cell_1', 'SELECT 1 AS first');
  const group = page.getByRole('group', { name: 'Add a cell' });
  await group.getByRole('button', { name: 'SQL' }).click();
  await write(page, 'cell_2', 'SELECT 2 AS second');
  await save(page, 1);
  // What the user types during the request must survive the response, which contains the current
  // shares.
  await page.route('**/notebooks/*', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 500));
    await route.continue();
  });
  await menu(page, 'Share');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('User, service account or group').fill('ben');
  await page.keyboard.press('Enter');
  await dialog.getByLabel('Access for ben').selectOption('write');
  await inThemes(t, page, 'kept-share');
  await dialog.getByRole('button', { name: 'Share', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });

  const ben = await arrived(t, server, 'ben');
  await openFromPage(ben.page, 'Notebook 1');
  await ben.page.getByText('Nothing has run, and nothing will run until you run it').waitFor();
  await write(ben.page, 'cell_1', 'SELECT 10 AS first');
  await write(ben.page, 'cell_2', 'SELECT 20 AS second');
  await save(ben.page, 2);

  await write(page, 'cell_2', 'SELECT 22 AS second');
  await group.getByRole('button', { name: 'SQL' }).click();
  await write(page, 'cell_3', 'SELECT 3 AS third');
  await page.keyboard.press('Control+S');
  const note = page.getByRole('alert').filter({ hasText: 'saved version 2' });
  await note.waitFor();
  t.is(await textOf(page, 'cell_2'), 'SELECT 22 AS second', 'the local text is unchanged');
  await inThemes(t, page, 'kept-told');
  await inThemes(t, page, 'kept-told', PHONE);
  await page.setViewportSize({ width: 1440, height: 900 });
  await note.getByRole('button', { name: 'Merge' }).click();
  const saveMerged = dialog.getByRole('button', { name: 'Save merged version' });
  t.true(await saveMerged.isDisabled(), 'both users changed one cell');
  await dialog.getByText('You changed 1 part and ben changed 1 part').waitFor();
  await inThemes(t, page, 'kept-merge');
  await inThemes(t, page, 'kept-merge', PHONE);
  await page.setViewportSize({ width: 1440, height: 900 });
  await dialog.getByRole('group', { name: 'Cell cell_2' }).getByLabel('Both').check();
  await saveMerged.click();
  await page.locator('.toast', { hasText: 'version 3 saved' }).waitFor();
  t.is(await textOf(page, 'cell_1'), 'SELECT 10 AS first');
  t.is(await textOf(page, 'cell_2'), 'SELECT 20 AS second');
  t.is(await textOf(page, 'cell_2_1'), 'SELECT 22 AS second');
  t.is(await textOf(page, 'cell_3'), 'SELECT 3 AS third');

  await poll(ben.page);
  await ben.page.getByRole('button', { name: 'Show new version' }).click();
  await cell(ben.page, 'cell_2_1').waitFor();
  t.is(await textOf(ben.page, 'cell_2_1'), 'SELECT 22 AS second');
  t.deepEqual([...ann.complaints, ...ben.complaints], []);
});

browserTest(
  'a conflict keeps the user’s version as a copy; old versions can be restored',
  async (t) => {
    const { server } = await startServerForTwo(t);
    const ann = await arrived(t, server, 'ann');
    const { page } = ann;
    await newNotebook(page);
    await write(page, 'cell_1', 'SELECT 1');
    await save(page, 1);
    // A window of the same user in another browser, with separate storage.
    const other = await arrived(t, server, 'ann');
    await openFromPage(other.page, 'Notebook 1');
    await write(other.page, 'cell_1', 'SELECT 2');
    await save(other.page, 2);
    await write(page, 'cell_1', 'SELECT 3');
    await page.keyboard.press('Control+S');
    await page.getByRole('button', { name: 'Use theirs and keep mine as a copy' }).click();
    await page.getByRole('tab', { name: 'Notebook 1 (mine)' }).waitFor();
    t.is(await textOf(page, 'cell_1'), 'SELECT 2');
    await page.getByRole('tab', { name: 'Notebook 1 (mine)' }).click();
    await page.getByText('Only in this browser').waitFor();
    t.is(await textOf(page, 'cell_1'), 'SELECT 3');
    await page.getByRole('tab', { name: 'Notebook 1', exact: true }).click();
    await menu(page, 'Versions');
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: /^Version 1/ }).click();
    await dialog.getByText('SELECT 1').waitFor();
    await page.locator('dialog:modal').waitFor();
    await inThemes(t, page, 'kept-versions');
    await inThemes(t, page, 'kept-versions', PHONE);
    await page.setViewportSize({ width: 1440, height: 900 });
    await dialog.getByRole('button', { name: 'Restore as draft' }).click();
    t.is(await textOf(page, 'cell_1'), 'SELECT 1');
    await save(page, 3);
    await page.reload();
    await cell(page, 'cell_1').waitFor();
    await page.getByText('Version 3', { exact: true }).waitFor();
    t.deepEqual([...ann.complaints, ...other.complaints], []);
  },
);

browserTest('a link lets another user read a notebook and save changes as a copy', async (t) => {
  const { server } = await startServerForTwo(t);
  const ann = await arrived(t, server, 'ann');
  const { page } = ann;
  await newNotebook(page);
  await write(page, 'cell_1', 'SELECT 1 AS linked');
  await save(page, 1);
  await menu(page, 'Share');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Anyone with the link').check();
  await dialog.getByRole('button', { name: 'Share and copy link' }).click();
  await dialog.waitFor({ state: 'detached' });
  await menu(page, 'Share');
  const link = await dialog.locator('.share-link').innerText();
  await page.keyboard.press('Escape');
  const ben = await BrowserUser.arrive(t);
  await ben.page.goto(link);
  await ben.signIn('ben', 'p');
  await cell(ben.page, 'cell_1').waitFor();
  t.is(await textOf(ben.page, 'cell_1'), 'SELECT 1 AS linked');
  t.false(
    ben.requests.some(({ href }) => href.includes(link.slice(-32))),
    'the link appears in no requested URL',
  );
  await write(ben.page, 'cell_1', 'SELECT 2 AS mine');
  await ben.page.getByRole('button', { name: 'Save a copy' }).click();
  await ben.page.locator('.toast', { hasText: 'version 1 saved' }).waitFor();
  await ben.page.getByRole('navigation', { name: 'Main' }).getByLabel('Notebooks').click();
  await ben.page.getByRole('cell', { name: 'not shared' }).waitFor();
  t.is(await ben.page.getByRole('row').count(), 2, "the header row and ben's notebook");

  await page.getByRole('navigation', { name: 'Main' }).getByLabel('Notebooks').click();
  await page.getByRole('cell', { name: 'by link' }).waitFor();
  await inThemes(t, page, 'kept-page');
  await inThemes(t, page, 'kept-page', PHONE);
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.getByRole('button', { name: 'More actions for Notebook 1' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete Notebook 1' }).click();
  await page.getByText('No saved notebooks yet').waitFor();
  t.deepEqual([...ann.complaints, ...ben.complaints], []);
});

browserTest('a failed save is reported, and the unsaved text is kept', async (t) => {
  const { server } = await startServerForTwo(t);
  const { page } = await arrived(t, server, 'ann');
  await newNotebook(page);
  await write(page, 'cell_1', 'SELECT 1');
  await page.context().setOffline(true);
  await page.keyboard.press('Control+S');
  await page.locator('.toast', { hasText: 'is not responding' }).waitFor();
  await page.context().setOffline(false);
  await save(page, 1);
  await page.evaluate(`fetch('api/v1/notebooks').then((response) => response.json()).then((all) =>
    fetch('api/v1/notebook?id=' + all[0].id, { method: 'DELETE' }))`);
  await write(page, 'cell_1', 'SELECT 2');
  await page.keyboard.press('Control+S');
  await page.locator('.toast', { hasText: 'no longer' }).waitFor();
  t.is(await textOf(page, 'cell_1'), 'SELECT 2');
  await save(page, 1);
});
