/** The permission editor against the server's own users and rights. */
import type { ExecutionContext } from 'ava';

import type { TestServer } from '../golden/server.js';
import { seriousViolations } from './axe.js';
import { browserTest, openBrowser, Person, serverFor } from './person.js';

openBrowser();

async function ask(server: TestServer, login: string, query: string): Promise<unknown> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`, {
    headers: { Authorization: `Basic ${btoa(login)}` },
  });
  const body = (await response.json().catch(() => null)) as {
    dataset?: unknown;
    error?: string;
  } | null;
  return body?.dataset ?? body?.error ?? response.status;
}

async function signedIn(t: ExecutionContext, server: TestServer): Promise<Person> {
  const admin = await Person.arrive(t);
  await admin.page.goto(`${server.url}/#access`);
  await admin.isOut();
  const card = admin.page.locator('.signin-card');
  await card.getByLabel('User', { exact: true }).fill('admin');
  await card.getByLabel('Password').fill('secret');
  await admin.page.keyboard.press('Enter');
  await admin.isIn('admin');
  return admin;
}

browserTest('an administrator makes people and gives them rights, without any SQL', async (t) => {
  const server = await serverFor(t, ['acl.enabled=true', 'acl.admin.password=secret']);
  await ask(server, 'admin:secret', 'CREATE TABLE readings (v INT, ts TIMESTAMP) TIMESTAMP(ts)');
  const admin = await signedIn(t, server);
  const { page } = admin;
  const create = async (kind: string, name: string, password?: string): Promise<void> => {
    await page.getByRole('button', { name: new RegExp(`^${kind}s \\d`) }).click();
    await page.locator('.access-new input').first().fill(name);
    if (password !== undefined) {
      await page.getByLabel('Password, if it has one').fill(password);
    }
    await page.getByRole('button', { name: /^Create / }).click();
    await page.locator('.access-main h2', { hasText: name }).waitFor();
  };
  const plan = (name: string): Promise<void> =>
    page.getByRole('button', { name: new RegExp(`^${name}: not granted`) }).click();
  const apply = async (): Promise<void> => {
    await page.locator('[data-action="apply"]').click();
    await page.getByText('0 changes not applied yet').waitFor();
  };

  await create('Group', 'analysts');
  await plan('SELECT on readings');
  await apply();
  await create('User', 'ada', 'lovelace');
  await plan('HTTP on Console and HTTP');
  await apply();
  t.is(await ask(server, 'ada:lovelace', 'SELECT 1').then(JSON.stringify), '[[1]]');
  t.regex(String(await ask(server, 'ada:lovelace', 'SELECT * FROM readings')), /denied|SELECT/i);
  await page.getByLabel('Put into a group').selectOption('analysts');
  await page.locator('.chip', { hasText: 'analysts' }).waitFor();
  await page.getByRole('button', { name: /^SELECT on readings: granted/ }).waitFor();
  t.deepEqual(await ask(server, 'ada:lovelace', 'SELECT * FROM readings'), []);
  t.deepEqual(await seriousViolations(page), []);

  await page.getByRole('button', { name: 'More about ada' }).click();
  await page.getByRole('menuitem', { name: 'Keep from logging in' }).click();
  await page.locator('.toast', { hasText: 'DISABLE' }).waitFor();
  t.is(await ask(server, 'ada:lovelace', 'SELECT 1'), 401);
  await page.getByRole('button', { name: 'More about ada' }).click();
  await page.getByRole('menuitem', { name: 'Drop user…' }).click();
  await page.getByRole('button', { name: 'Drop ada' }).click();
  await page.locator('.toast', { hasText: 'DROP USER ada' }).waitFor();
  t.notRegex(JSON.stringify(await ask(server, 'admin:secret', 'SHOW USERS')), /ada/);
  t.deepEqual(admin.complaints, []);
});
