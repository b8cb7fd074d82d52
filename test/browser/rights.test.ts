/** The permission editor on a server with users and permissions. */
import type { ExecutionContext } from 'ava';
import type { Locator, Page } from 'playwright-core';

import type { TestServer } from '../golden/server.js';
import { seriousViolations } from './axe.js';
import { browserTest, inThemes, openBrowser, BrowserUser, serverFor } from './user.js';

openBrowser();

/** `login`: either `name:password` or a token. */
async function runQuery(server: TestServer, login: string, query: string): Promise<unknown> {
  const isToken = login.startsWith('tdm_');
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`, {
    headers: { Authorization: isToken ? `Bearer ${login}` : `Basic ${btoa(login)}` },
  });
  const body = (await response.json().catch(() => null)) as {
    dataset?: unknown;
    error?: string;
  } | null;
  return body?.dataset ?? body?.error ?? response.status;
}

async function signedIn(
  t: ExecutionContext,
  server: TestServer,
  [user, password] = ['admin', 'secret'],
): Promise<BrowserUser> {
  const admin = await BrowserUser.arrive(t);
  await admin.page.goto(`${server.url}/#access`);
  await admin.isOut();
  const card = admin.page.locator('.signin-card');
  await card.getByLabel('User', { exact: true }).fill(user);
  await card.getByLabel('Password').fill(password);
  await admin.page.keyboard.press('Enter');
  await admin.isIn(user);
  return admin;
}

browserTest('an administrator creates users and grants rights, without any SQL', async (t) => {
  const server = await serverFor(t, ['acl.enabled=true', 'acl.admin.password=secret']);
  await runQuery(
    server,
    'admin:secret',
    'CREATE TABLE readings (v INT, ts TIMESTAMP) TIMESTAMP(ts)',
  );
  const admin = await signedIn(t, server);
  const { page } = admin;
  const create = async (kind: string, name: string, password?: string): Promise<void> => {
    await page.getByRole('button', { name: new RegExp(`^${kind}s \\d`) }).click();
    await page.locator('.access-new input').first().fill(name);
    if (password !== undefined) {
      await page.getByLabel('Password (optional)').fill(password);
    }
    await page.getByRole('button', { name: /^Create / }).click();
    await page.locator('.access-main h2', { hasText: name }).waitFor();
  };
  const plan = (name: string): Promise<void> =>
    page.getByRole('button', { name: new RegExp(`^${name}: not granted`) }).click();
  const apply = async (): Promise<void> => {
    await page.locator('[data-action="apply"]').click();
    await page.getByText('0 changes pending').waitFor();
  };

  await create('Group', 'analysts');
  await plan('SELECT on readings');
  await apply();
  await create('User', 'ada', 'lovelace');
  await plan('HTTP on Console and HTTP');
  await apply();
  t.is(await runQuery(server, 'ada:lovelace', 'SELECT 1').then(JSON.stringify), '[[1]]');
  t.regex(
    String(await runQuery(server, 'ada:lovelace', 'SELECT * FROM readings')),
    /denied|SELECT/i,
  );
  await page.getByLabel('Add to a group').selectOption('analysts');
  await page.locator('.chip', { hasText: 'analysts' }).waitFor();
  await page.getByRole('button', { name: /^SELECT on readings: from analysts/ }).waitFor();
  t.deepEqual(await runQuery(server, 'ada:lovelace', 'SELECT * FROM readings'), []);
  t.deepEqual(await seriousViolations(page), []);

  const passwords = page.getByRole('dialog');
  const setPassword = async (first: string, second: string): Promise<void> => {
    await passwords.getByLabel('New password').fill(first);
    await passwords.getByLabel('Repeat password').fill(second);
    await passwords.getByRole('button', { name: 'Set password' }).click();
  };
  await page.getByRole('button', { name: 'More actions for ada' }).click();
  await page.getByRole('menuitem', { name: 'Set password…' }).click();
  await setPassword("it's new", 'it is new');
  await passwords.getByText('The passwords do not match.').waitFor();
  t.deepEqual(await seriousViolations(page), []);
  await setPassword("it's new", "it's new");
  await page.locator('.toast', { hasText: 'Password of ada changed' }).waitFor();
  await passwords.waitFor({ state: 'detached' });
  t.is(await runQuery(server, 'ada:lovelace', 'SELECT 1'), 401);
  t.deepEqual(await runQuery(server, "ada:it's new", 'SELECT 1'), [[1]]);
  t.false(
    admin.requests.some(({ href }) => /PASSWORD|it%27s/i.test(href)),
    'no password appears in a URL',
  );

  await page.getByRole('button', { name: 'More actions for ada' }).click();
  await page.getByRole('menuitem', { name: 'Disable login' }).click();
  await page.locator('.toast', { hasText: 'DISABLE' }).waitFor();
  t.is(await runQuery(server, "ada:it's new", 'SELECT 1'), 401);
  await page.getByRole('button', { name: 'More actions for ada' }).click();
  await page.getByRole('menuitem', { name: 'Drop user…' }).click();
  await page.getByRole('button', { name: 'Drop ada' }).click();
  await page.locator('.toast', { hasText: 'DROP USER ada' }).waitFor();
  t.notRegex(JSON.stringify(await runQuery(server, 'admin:secret', 'SHOW USERS')), /ada/);
  t.deepEqual(admin.complaints, []);
});

browserTest('a group lists its members; on a phone its rights come first', async (t) => {
  const server = await serverFor(t, ['acl.enabled=true', 'acl.admin.password=secret']);
  for (const statement of [
    'CREATE TABLE readings (v INT, ts TIMESTAMP) TIMESTAMP(ts)',
    'CREATE GROUP analysts',
    "CREATE USER ada WITH PASSWORD 'p'",
    'ADD USER ada TO analysts',
  ]) {
    await runQuery(server, 'admin:secret', statement);
  }
  const admin = await signedIn(t, server);
  const { page } = admin;
  const pick = async (kind: string, name: string): Promise<void> => {
    await page.getByRole('button', { name: new RegExp(`^${kind}s \\d`) }).click();
    await page.locator('.access-entry', { hasText: name }).click();
    await page.locator('.access-main h2', { hasText: name }).waitFor();
  };
  await pick('Group', 'analysts');
  const members = page.getByRole('group', { name: 'Members' });
  await members.getByRole('button', { name: 'ada' }).click();
  await members.getByText('Members: 0').waitFor();
  t.deepEqual(await runQuery(server, 'admin:secret', 'SHOW GROUPS ada'), []);
  await members.getByLabel('Add a user').selectOption('ada');
  await members.getByText('Members: 1').waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  const matrix = await page.locator('.matrix').boundingBox();
  t.true((matrix?.y ?? Infinity) < 600, `the rights start at ${matrix?.y} of 844 pixels`);
  t.deepEqual(await seriousViolations(page), []);
  await page.getByRole('button', { name: 'All users and groups' }).click();
  await page.locator('.access-entry', { hasText: 'analysts' }).waitFor();
  await page.setViewportSize({ width: 1440, height: 900 });
  await pick('User', 'ada');
  await page.locator('.chip', { hasText: 'analysts' }).waitFor();
  t.deepEqual(admin.complaints, []);
});

browserTest('the access page requires LIST USERS, and its users can be filtered', async (t) => {
  const server = await serverFor(t, ['acl.enabled=true', 'acl.admin.password=secret']);
  for (const statement of [
    'CREATE TABLE readings (v INT, ts TIMESTAMP) TIMESTAMP(ts)',
    'CREATE TABLE orders (v INT, ts TIMESTAMP) TIMESTAMP(ts)',
    "CREATE USER ann WITH PASSWORD 'p'",
    "CREATE USER bob WITH PASSWORD 'p'",
    'GRANT HTTP TO ann',
  ]) {
    await runQuery(server, 'admin:secret', statement);
  }
  const ann = await signedIn(t, server, ['ann', 'p']);
  await ann.page.getByText('Access denied').waitFor();
  t.is(await ann.page.locator('.access-new').count(), 0, 'the form to create users is hidden');
  t.is(await ann.page.locator('.access-list').count(), 0);
  const rail = (user: BrowserUser) =>
    user.page.getByRole('navigation', { name: 'Main' }).getByLabel('Users and permissions');
  t.is(await rail(ann).count(), 0);
  t.deepEqual(await seriousViolations(ann.page), []);

  const admin = await signedIn(t, server);
  const { page } = admin;
  await rail(admin).waitFor();
  const names = page.locator('.access-entry');
  await names.filter({ hasText: 'bob' }).waitFor();
  await page.getByLabel('Filter users and groups by name').fill('AN');
  await names.filter({ hasText: 'bob' }).waitFor({ state: 'detached' });
  t.deepEqual(await names.allInnerTexts(), ['ann']);
  await names.first().click();
  await page.getByRole('button', { name: 'orders', exact: true }).waitFor();
  await page.getByLabel('Filter tables and views by name').fill('read');
  await page.getByRole('button', { name: 'orders', exact: true }).waitFor({ state: 'detached' });
  t.is(await page.getByRole('button', { name: 'readings', exact: true }).count(), 1);
  t.deepEqual(await seriousViolations(page), []);
  t.deepEqual([...ann.complaints, ...admin.complaints], []);
});

browserTest('column rights are granted and revoked in the rights table', async (t) => {
  const server = await serverFor(t, ['acl.enabled=true', 'acl.admin.password=secret']);
  for (const statement of [
    'CREATE TABLE clients (id INT, email VARCHAR, tier SYMBOL, ts TIMESTAMP) TIMESTAMP(ts)',
    "INSERT INTO clients VALUES (1, 'a@x', 'gold', '2026-01-01')",
    'CREATE VIEW tiers AS (SELECT tier FROM clients)',
    "CREATE USER ann WITH PASSWORD 'p'",
    'GRANT HTTP TO ann',
  ]) {
    await runQuery(server, 'admin:secret', statement);
  }
  const ann = (query: string): Promise<unknown> => runQuery(server, 'ann:p', query);
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
  // The table list changes, but the expanded table stays open.
  await runQuery(server, 'admin:secret', 'CREATE TABLE later (id INT)');
  await page.getByRole('button', { name: 'later', exact: true }).waitFor();
  await cell('SELECT on clients.id: not granted').click();
  await cell('SELECT on clients.tier: not granted').click();
  await page.getByText('GRANT SELECT ON clients(id, tier) TO ann').waitFor();
  t.is(await cell('INSERT on clients.id').count(), 0, 'INSERT can be granted only on whole tables');
  t.is(await cell('UPDATE on tiers').count(), 0, 'only SELECT can be granted on a view');
  await page.locator('[data-action="apply"]').click();
  await page.getByText('0 changes pending').waitFor();
  await cell('SELECT on clients: on some columns').waitFor();
  await cell('SELECT on clients.ts: implied by other columns').waitFor();
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

const LOGINS = ['acl.enabled=true', 'acl.admin.password=secret'];
const SIZES = [
  { width: 1440, height: 900 },
  { width: 1024, height: 768 },
  { width: 390, height: 844 },
] as const;

async function inAllSizes(t: ExecutionContext, page: Page, name: string): Promise<void> {
  for (const size of SIZES) {
    await inThemes(t, page, name, size);
    const rail = await page.evaluate<number>('document.querySelector(".rail").offsetWidth');
    const left = await page.evaluate<number>('document.querySelector(".page").offsetLeft');
    t.is(left, rail < size.width ? rail : 0, `${name}: the page starts next to the rail`);
    t.true(await page.evaluate<boolean>('document.body.scrollWidth <= innerWidth'), name);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
}

/** Returns everything on the page: its text, the field values, and the browser storage. */
async function traces(user: BrowserUser): Promise<string> {
  const inside = await user.page.evaluate<unknown>(`(async () => {
    const done = (request) => new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    const kept = [];
    for (const { name } of await indexedDB.databases()) {
      const database = await done(indexedDB.open(name));
      for (const store of database.objectStoreNames) {
        kept.push(store, await done(database.transaction(store).objectStore(store).getAll()));
      }
      database.close();
    }
    const fields = [...document.querySelectorAll('input, textarea')].map(({ value }) => value);
    return [kept, fields, document.documentElement.outerHTML, location.href, history.state];
  })()`);
  return JSON.stringify([inside, await user.stored(), user.requests]);
}

const LABELS = "[...document.querySelectorAll('.permission')].map(({ ariaLabel }) => ariaLabel)";

/** Creates a token for the shown user in the dialogs, and returns the token. */
async function newToken(page: Page, owner: string, ttl: string): Promise<string> {
  await page.getByRole('button', { name: 'New token…' }).click();
  const form = page.getByRole('dialog', { name: `New token for ${owner}` });
  await form.getByLabel('Time to live').fill(ttl);
  await form.getByRole('button', { name: 'Create token' }).click();
  return (await tokenOf(page, owner).locator('.token').innerText()).trim();
}

function tokenOf(page: Page, owner: string): Locator {
  return page.getByRole('dialog', { name: `New token for ${owner}` });
}

/**
 * Shows ann's permissions to an administrator on a page without HTTPS, where there is no clipboard.
 */
async function atAnn(t: ExecutionContext): Promise<{ server: TestServer; admin: BrowserUser }> {
  const server = await serverFor(t, LOGINS);
  for (const statement of [
    "CREATE USER ann WITH PASSWORD 'p'",
    'CREATE GROUP quants',
    'CREATE SERVICE ACCOUNT feed',
    'GRANT HTTP TO ann',
    'GRANT HTTP TO feed',
  ]) {
    t.is(await runQuery(server, 'admin:secret', statement), 200, statement);
  }
  const admin = await signedIn(t, server);
  await admin.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
  await admin.page.getByRole('button', { name: 'ann', exact: true }).click();
  return { server, admin };
}

const WHO = 'SELECT current_user()';

browserTest('a token is shown once, copied, and appears nowhere afterwards', async (t) => {
  const { server, admin } = await atAnn(t);
  const { page } = admin;
  const logins = page.getByRole('group', { name: 'Login methods' });
  await logins.getByText('Password').waitFor();
  await logins.getByRole('button', { name: 'New token…' }).click();
  const form = page.getByRole('dialog', { name: 'New token for ann' });
  await form.getByLabel('Time to live').fill('soon');
  await form.getByRole('button', { name: 'Create token' }).click();
  await form.getByRole('alert').getByText("from '1m' to '3650d'").waitFor();
  await inAllSizes(t, page, 'token-new');
  await form.getByRole('button', { name: 'Cancel' }).click();
  await form.waitFor({ state: 'detached' });
  const token = await newToken(page, 'ann', '1h');
  t.regex(token, /^tdm_[\w-]{49}$/);
  await inAllSizes(t, page, 'token-shown');
  await tokenOf(page, 'ann').getByRole('button', { name: 'Copy token' }).click();
  await tokenOf(page, 'ann').getByRole('button', { name: 'Copied' }).waitFor();
  t.true((await traces(admin)).includes(token), 'the search finds a visible token');
  await tokenOf(page, 'ann').getByRole('button', { name: 'Close' }).click();
  await logins.getByText('Token', { exact: true }).waitFor();
  t.false((await traces(admin)).includes(token));
  t.deepEqual(await runQuery(server, token, WHO), [['ann']]);
  await page.getByLabel('Filter users and groups by name').focus();
  await page.keyboard.press('Control+V');
  t.is(await page.getByLabel('Filter users and groups by name').inputValue(), token);
  await page.getByLabel('Filter users and groups by name').fill('');

  await page.getByRole('button', { name: /^Service accounts \d/ }).click();
  await page.getByRole('button', { name: 'feed', exact: true }).click();
  await logins.getByText('none').waitFor();
  const ofFeed = await newToken(page, 'feed', '30d');
  t.deepEqual(await runQuery(server, ofFeed, WHO), [['feed']]);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /^Groups \d/ }).click();
  await page.getByRole('button', { name: 'quants', exact: true }).click();
  await page.locator('.access-main h2', { hasText: 'quants' }).waitFor();
  t.is(await logins.count(), 0, 'a group cannot log in');
  t.deepEqual(admin.complaints, []);
});

browserTest('one token or all tokens can be dropped; both ask for confirmation', async (t) => {
  const { server, admin } = await atAnn(t);
  const { page } = admin;
  const logins = page.getByRole('group', { name: 'Login methods' });
  const dropAll = logins.getByRole('button', { name: 'Drop all tokens…' });
  const isRefused = async (token: string): Promise<boolean> =>
    (await runQuery(server, token, WHO)) === 401;
  await logins.getByText('Password').waitFor();
  t.is(await dropAll.count(), 0);
  const token = await newToken(page, 'ann', '1h');
  await page.keyboard.press('Escape');
  await tokenOf(page, 'ann').waitFor({ state: 'detached' });
  const other = await newToken(page, 'ann', '1d');
  await page.keyboard.press('Escape');
  t.deepEqual([await isRefused(token), await isRefused(other)], [false, false]);

  await logins.getByRole('button', { name: 'Drop a token…' }).click();
  const one = page.getByRole('dialog', { name: 'Drop a token of ann' });
  await one.getByLabel('Token').fill(token.slice(0, -1));
  await one.getByRole('button', { name: 'Drop token' }).click();
  await one.getByText('no such token').waitFor();
  await inAllSizes(t, page, 'token-drop');
  await one.getByLabel('Token').fill(token);
  await one.getByRole('button', { name: 'Drop token' }).click();
  await one.waitFor({ state: 'detached' });
  t.deepEqual([await isRefused(token), await isRefused(other)], [true, false]);

  await dropAll.click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  t.false(await isRefused(other));
  await dropAll.click();
  await page.getByRole('dialog').getByRole('button', { name: 'Drop all tokens' }).click();
  await dropAll.waitFor({ state: 'detached' });
  t.true(await isRefused(other));
  const left = await traces(admin);
  t.false(left.includes(token) || left.includes(other));
  t.deepEqual(admin.complaints, []);
});

browserTest('every right known to the server is shown, granted and revoked', async (t) => {
  const server = await serverFor(t, LOGINS);
  for (const statement of [
    'CREATE TABLE readings (v INT, ts TIMESTAMP) TIMESTAMP(ts)',
    'CREATE VIEW newest AS (SELECT v FROM readings)',
    "CREATE USER ann WITH PASSWORD 'p'",
    'CREATE GROUP quants',
    'CREATE SERVICE ACCOUNT "my feed"',
    'GRANT HTTP TO ann',
    'GRANT ASSUME SERVICE ACCOUNT "my feed" TO quants',
    'ADD USER ann TO quants',
  ]) {
    t.is(await runQuery(server, 'admin:secret', statement), 200, statement);
  }
  const admin = await signedIn(t, server);
  const { page } = admin;
  const cell = (name: string): Locator =>
    page.getByRole('button', { name: new RegExp(`^${name}`) });
  const choice = page.getByLabel('Permissions on tables and views');
  await page.getByRole('button', { name: 'ann', exact: true }).click();
  await page.getByText('Database permissions').click();
  await cell('CREATE TABLE: not granted').waitFor();
  const shown = new Set<string>();
  for (const set of await choice.locator('option').allInnerTexts()) {
    await choice.selectOption(set);
    const labels = await page.evaluate<string[]>(LABELS);
    for (const label of labels) {
      shown.add(label.replace(/(?: on .*)?: .*$/, ''));
    }
    await inAllSizes(t, page, `rights-${set.toLowerCase().replaceAll(' ', '-')}`);
  }
  const all = 'SELECT permission FROM all_permissions()';
  const known = (await runQuery(server, 'admin:secret', all)) as string[][];
  t.true(known.length > 60);
  t.deepEqual(
    [...shown].sort(),
    known
      .map(([name = '']) => (name === 'ASSUME SERVICE ACCOUNT' ? `${name} my feed` : name))
      .filter((name) => name !== 'ALL')
      .sort(),
  );

  await choice.selectOption('Views');
  t.is(await page.getByRole('button', { name: 'readings', exact: true }).count(), 0);
  await cell('DROP VIEW on newest: not granted').click();
  await cell('CREATE TABLE: not granted').click();
  await cell('ASSUME SERVICE ACCOUNT my feed: from quants').click();
  await page.getByText('GRANT DROP VIEW ON newest TO ann').waitFor();
  await page.getByText('GRANT ASSUME SERVICE ACCOUNT "my feed" TO ann').waitFor();
  await page.locator('[data-action="apply"]').click();
  await page.getByText('0 changes pending').waitFor();
  await cell('ASSUME SERVICE ACCOUNT my feed: granted, and from quants').waitFor();
  const ann = (query: string): Promise<unknown> => runQuery(server, 'ann:p', query);
  t.is(await ann('CREATE TABLE made (v INT)'), 200);
  t.is(await ann('DROP VIEW newest'), 200);
  await cell('CREATE TABLE: granted').click();
  await page.locator('[data-action="apply"]').click();
  await cell('CREATE TABLE: not granted').waitFor();
  t.regex(String(await ann('CREATE TABLE more (v INT)')), /Access denied/);

  await cell('DATABASE ADMIN: not granted').click();
  await page.locator('[data-action="apply"]').click();
  await cell('SQL ENGINE ADMIN: through DATABASE ADMIN').click();
  await page.getByText('GRANT SQL ENGINE ADMIN TO ann').waitFor();
  t.deepEqual(admin.complaints, []);
});
