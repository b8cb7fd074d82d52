/**
 * The permission editor. The server tests cover the permissions themselves. Here the page receives
 * prepared lists, and the tests check the statements that it sends.
 */
import type { Page } from 'playwright-core';

import { allPermissions } from '../../ts/access/catalogue.js';
import { seriousViolations } from './axe.js';
import { statementOf } from './console-page.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage, rows } = browserSuite('permissions in a browser', {
  args: ['--demo'],
});

const GRANTS: readonly (readonly unknown[])[] = [
  ['HTTP', null, null, false, 'G'],
  ['SELECT', 'trades', null, true, 'G'],
  ['INSERT', null, null, false, 'G'],
  ['SELECT', 'quotes', 'bid', false, 'G'],
  ['UPDATE', 'quotes', null, false, 'G', 'quants'],
];
const RIGHTS = ['permission', 'table_name', 'column_name', 'grant_option', 'origin', 'granted_to'];

function list(names: readonly string[], dataset: readonly (readonly unknown[])[]): string {
  const columns = names.map((name) => ({ name, type: 'STRING' }));
  return JSON.stringify({ query: '', columns, timestamp: -1, dataset, count: dataset.length });
}

const LISTS: Readonly<Record<string, string>> = {
  'SHOW USERS': list(['name'], [['ada'], ['<b>eve</b>']]),
  'SHOW GROUPS': list(['name'], [['quants'], ['risk']]),
  'SHOW SERVICE ACCOUNTS': list(['name'], [['feed']]),
  'SHOW GROUPS ada': list(['name'], [['quants']]),
  'SHOW GROUPS "<b>eve</b>"': list(['name'], []),
  'SHOW PERMISSIONS ada': list(RIGHTS, GRANTS),
  'SHOW PERMISSIONS quants': list(RIGHTS, []),
  'SHOW USER ada': list(
    ['auth_type', 'enabled'],
    [
      ['Password', true],
      ['REST Token', false],
    ],
  ),
  'SELECT permission, levels FROM all_permissions()': list(
    ['permission', 'levels'],
    allPermissions(),
  ),
};

/**
 * Answers the page's queries about permissions. Collects, in order, the statements that would
 * change permissions.
 */
async function prepare(page: Page, refused = ''): Promise<string[]> {
  const sent: string[] = [];
  await page.route('**/exec?*', async (route) => {
    const query = statementOf(route.request());
    const known = LISTS[query];
    if (known !== undefined) {
      await route.fulfill({ contentType: 'application/json', body: known });
    } else if (/^(?:GRANT|REVOKE|CREATE USER|ADD USER)\b/.test(query)) {
      sent.push(query);
      const isRefused = query === refused;
      const body = isRefused ? { query, error: 'permission denied', position: 0 } : { ddl: 'OK' };
      await route.fulfill({ status: isRefused ? 400 : 200, json: body });
    } else {
      await route.continue();
    }
  });
  return sent;
}

browserTest('changes made by clicking are queued, and Apply runs them in order', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const sent = await prepare(page);
    await page.evaluate("location.hash = '#access/ada'");
    const cell = (name: string): ReturnType<Page['getByRole']> =>
      page.getByRole('button', { name: new RegExp(`^${name}`) });
    await cell('SELECT on trades: granted with grant option').waitFor();
    await cell('INSERT on trades: from all tables').waitFor();
    await cell('UPDATE on quotes: from quants').waitFor();
    t.deepEqual(await page.locator('.access-legend span').allInnerTexts(), [
      'granted',
      'granted with grant option',
      'from a group',
      'from all tables',
      'on some columns',
    ]);
    await cell('SELECT on quotes: on some columns').click();
    await cell('SELECT on trades').click();
    await cell('PGWIRE on PostgreSQL clients').click();
    await cell('UPDATE on quotes').click();
    await cell('UPDATE on quotes').click();
    await inEveryTheme(shown, async (theme) => {
      t.deepEqual(await seriousViolations(page), [], theme);
      await shown.screenshot(picture(`access-${theme}`));
    });
    t.deepEqual(sent, []);
    const pick = async (kind: string, name: string): Promise<void> => {
      await page.getByRole('button', { name: new RegExp(`^${kind} \\d`) }).click();
      await page.locator('.access-entry', { hasText: name }).click();
      await page.locator('.access-main h2', { hasText: name }).waitFor();
    };
    await pick('Groups', 'quants');
    await cell('SELECT on trades: not granted').waitFor();
    t.is(await page.getByText('3 changes pending').count(), 0);
    const members = page.getByRole('group', { name: 'Members' });
    t.deepEqual(await members.locator('.chip').allInnerTexts(), ['ada']);
    t.deepEqual(await members.locator('option').allInnerTexts(), ['Add user…', '<b>eve</b>']);
    t.deepEqual(await seriousViolations(page), []);
    await pick('Users', 'ada');
    await page.getByText('3 changes pending').waitFor();
    await page.locator('[data-action="apply"]').click();
    await page.getByText('0 changes pending').waitFor();
    t.deepEqual(sent, [
      'GRANT SELECT ON quotes TO ada',
      'REVOKE SELECT ON trades FROM ada',
      'GRANT PGWIRE TO ada',
    ]);
    await page.getByLabel('Add to a group').selectOption('risk');
    t.is(await page.locator('.access-entry bdi').nth(1).innerText(), '<b>eve</b>');
  });
});

browserTest('a failed change is reported, and the remaining changes stay pending', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const sent = await prepare(page, 'GRANT SELECT ON trades TO quants');
    await page.evaluate("location.hash = '#access/quants'");
    await page.getByRole('button', { name: /^SELECT on trades/ }).click();
    await page.getByRole('button', { name: /^INSERT on trades/ }).click();
    await page.locator('[data-action="apply"]').click();
    await page.locator('.access-pending', { hasText: 'permission denied' }).waitFor();
    t.is(sent.length, 1);
    await page.getByText('2 changes pending').waitFor();
  });
});

browserTest('the access page is offered only if the server has users', async (t) => {
  t.deepEqual(await rows('SELECT 1'), [[1]]);
  await onPage(t, async (shown) => {
    const entry = shown.page.getByRole('link', { name: 'Users and permissions' });
    t.is(await entry.count(), 0);
    await prepare(shown.page);
    await shown.page.route('**/settings', async (route) => {
      const body = { config: { 'acl.enabled': true }, preferences: {} };
      await route.fulfill({ json: body });
    });
    await shown.page.reload();
    await entry.waitFor();
  });
});
