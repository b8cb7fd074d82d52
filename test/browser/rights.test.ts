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
  await page.getByRole('button', { name: /^SELECT on readings: from analysts/ }).waitFor();
  t.deepEqual(await ask(server, 'ada:lovelace', 'SELECT * FROM readings'), []);
  t.deepEqual(await seriousViolations(page), []);

  const passwords = page.getByRole('dialog');
  const setPassword = async (first: string, second: string): Promise<void> => {
    await passwords.getByLabel('New password').fill(first);
    await passwords.getByLabel('The same again').fill(second);
    await passwords.getByRole('button', { name: 'Set password' }).click();
  };
  await page.getByRole('button', { name: 'More about ada' }).click();
  await page.getByRole('menuitem', { name: 'Set the password…' }).click();
  await setPassword("it's new", 'it is new');
  await passwords.getByText('The two passwords differ.').waitFor();
  t.deepEqual(await seriousViolations(page), []);
  await setPassword("it's new", "it's new");
  await page.locator('.toast', { hasText: 'ada has a new password' }).waitFor();
  await passwords.waitFor({ state: 'detached' });
  t.is(await ask(server, 'ada:lovelace', 'SELECT 1'), 401);
  t.deepEqual(await ask(server, "ada:it's new", 'SELECT 1'), [[1]]);
  t.false(
    admin.requests.some(({ href }) => /PASSWORD|it%27s/i.test(href)),
    'no password stands in an address',
  );

  await page.getByRole('button', { name: 'More about ada' }).click();
  await page.getByRole('menuitem', { name: 'Keep from logging in' }).click();
  await page.locator('.toast', { hasText: 'DISABLE' }).waitFor();
  t.is(await ask(server, "ada:it's new", 'SELECT 1'), 401);
  await page.getByRole('button', { name: 'More about ada' }).click();
  await page.getByRole('menuitem', { name: 'Drop user…' }).click();
  await page.getByRole('button', { name: 'Drop ada' }).click();
  await page.locator('.toast', { hasText: 'DROP USER ada' }).waitFor();
  t.notRegex(JSON.stringify(await ask(server, 'admin:secret', 'SHOW USERS')), /ada/);
  t.deepEqual(admin.complaints, []);
});

browserTest('rights on single columns are given and taken in the table of rights', async (t) => {
  const server = await serverFor(t, ['acl.enabled=true', 'acl.admin.password=secret']);
  for (const statement of [
    'CREATE TABLE clients (id INT, email VARCHAR, tier SYMBOL, ts TIMESTAMP) TIMESTAMP(ts)',
    "INSERT INTO clients VALUES (1, 'a@x', 'gold', '2026-01-01')",
    'CREATE VIEW tiers AS (SELECT tier FROM clients)',
    "CREATE USER ann WITH PASSWORD 'p'",
    'GRANT HTTP TO ann',
  ]) {
    await ask(server, 'admin:secret', statement);
  }
  const ann = (query: string): Promise<unknown> => ask(server, 'ann:p', query);
  const admin = await signedIn(t, server);
  const { page } = admin;
  const cell = (name: string): ReturnType<typeof page.getByRole> =>
    page.getByRole('button', { name: new RegExp(`^${name}`) });
  await page.evaluate("location.hash = '#sql'");
  await page.locator('.cm-content').waitFor();
  await page.keyboard.press('Control+K');
  await page.getByRole('combobox').fill('users and perm');
  await page.getByRole('option', { name: /users and permissions/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'ann', exact: true }).click();
  await page.getByRole('button', { name: 'clients', exact: true }).click();
  // The list of tables is another one: the table stays open.
  await ask(server, 'admin:secret', 'CREATE TABLE later (id INT)');
  await page.getByRole('button', { name: 'later', exact: true }).waitFor();
  await cell('SELECT on clients.id: not granted').click();
  await cell('SELECT on clients.tier: not granted').click();
  await page.getByText('GRANT SELECT ON clients(id, tier) TO ann').waitFor();
  t.is(await cell('INSERT on clients.id').count(), 0, 'INSERT is of whole tables');
  t.is(await cell('UPDATE on tiers').count(), 0, 'a view is read');
  await page.locator('[data-action="apply"]').click();
  await page.getByText('0 changes not applied yet').waitFor();
  await cell('SELECT on clients: on some columns').waitFor();
  await cell('SELECT on clients.ts: comes with other columns').waitFor();
  t.deepEqual(await seriousViolations(page), []);
  t.deepEqual(await ann('SELECT id, tier FROM clients'), [[1, 'gold']]);
  t.regex(String(await ann('SELECT email FROM clients')), /Access denied/);

  await cell('SELECT on clients.id: granted').click();
  await page.locator('[data-action="apply"]').click();
  await cell('SELECT on clients.id: not granted').waitFor();
  t.regex(String(await ann('SELECT id FROM clients')), /Access denied/);
  t.deepEqual(await ann('SELECT tier FROM clients'), [['gold']]);
  t.deepEqual(admin.complaints, []);
});
