import test from 'ava';
import { applies, catalogueOf, databaseGroups, rightSets } from '../src/access/catalogue.js';
import {
  assumes,
  grantsOf,
  groupsOf,
  markOf,
  passwordStatement,
  stepsOf,
  toggled,
  tokenEnd,
  tokenStatement,
  type Change,
  type GrantTarget,
} from '../src/access/model.js';

const COLUMNS = ['permission', 'table_name', 'column_name', 'grant_option', 'origin', 'granted_to'];
const GRANTS = grantsOf({
  head: { columns: COLUMNS.map((name) => ({ name, type: 'STRING' })) },
  rows: [
    ['SELECT', 'trades', null, true, 'G'],
    ['INSERT', null, null, false, 'G'],
    ['SELECT', 'clients', 'id', 'f', 'G'],
    ['SELECT', 'clients', 'ts', 'f', 'I'],
    ['HTTP', '', '', 't', 'G'],
  ],
});

/**
 * An example of a server response: permissions at each level, a permission that the page does not
 * list, and ALL.
 */
const CATALOGUE = catalogueOf({
  head: { columns: ['permission', 'levels'].map((name) => ({ name, type: 'STRING' })) },
  rows: [
    ['ALL', 'database, table, column'],
    ['ASSUME SERVICE ACCOUNT', 'service account'],
    ['CREATE TABLE', 'database'],
    ['DROP LIVE VIEW', 'database, table'],
    ['DROP VIEW', 'database, table'],
    ['HTTP', 'database'],
    ['INSERT', 'database, table'],
    ['PAINT DATABASE', 'database'],
    ['PAINT TABLE', 'database, table'],
    ['RESUME WAL', 'database, table'],
    ['SELECT', 'database, table, column'],
    ['UPDATE', 'database, table, column'],
  ],
});

function at(table?: string, column?: string): GrantTarget {
  return { table, column };
}

function change(permission: string, target: GrantTarget, isGrant = true): Change {
  return { permission, ...target, isGrant };
}

test('a permission is shown as granted, grantable, inherited, partial or missing', (t) => {
  t.is(markOf(GRANTS, 'SELECT', at('trades'), 'ann'), 'option');
  t.is(markOf(GRANTS, 'INSERT', at(), 'ann'), 'granted');
  t.is(markOf(GRANTS, 'INSERT', at('trades'), 'ann'), 'inherited');
  t.is(markOf(GRANTS, 'SELECT', at('clients'), 'ann'), 'part');
  t.is(markOf(GRANTS, 'SELECT', at(), 'ann'), 'none');
  t.is(markOf(GRANTS, 'HTTP', at(), 'ann'), 'option');
  const admin = [
    { permission: 'DATABASE ADMIN', ...at(), option: false, isImplied: false, grantedTo: ['ann'] },
  ];
  t.is(markOf(admin, 'DROP TABLE', at('trades'), 'ann'), 'administrator');
  t.is(markOf(admin, 'HTTP', at(), 'ann'), 'administrator');
  t.is(markOf(admin, 'DATABASE ADMIN', at(), 'ann'), 'granted');
  // Clicking grants the permission, because revoking one that was not granted directly has no
  // effect.
  t.true(toggled([], 'HTTP', at(), 'administrator')[0]?.isGrant);
});

test('a column shows its own grants, the grants on its table, and implied grants', (t) => {
  t.is(markOf(GRANTS, 'SELECT', at('clients', 'ID'), 'ann'), 'granted');
  t.is(markOf(GRANTS, 'SELECT', at('clients', 'ts'), 'ann'), 'implied');
  t.is(markOf(GRANTS, 'SELECT', at('clients', 'email'), 'ann'), 'none');
  t.is(markOf(GRANTS, 'SELECT', at('trades', 'price'), 'ann'), 'inherited');
  t.is(markOf(GRANTS, 'UPDATE', at('clients', 'id'), 'ann'), 'none');
});

test('a permission applies at the levels that the server lists, including on views', (t) => {
  const levels = ['all', 'table', 'column', 'view', 'materialized', 'live'] as const;
  const on = (permission: string): string =>
    levels.filter((what) => applies(CATALOGUE, permission, what)).join(' ');
  t.is(on('SELECT'), 'all table column view materialized live');
  t.is(on('UPDATE'), 'all table column');
  t.is(on('INSERT'), 'all table');
  t.is(on('DROP VIEW'), 'all view');
  t.is(on('RESUME WAL'), 'all table live');
  t.is(on('PAINT TABLE'), 'all table');
  t.is(on('CREATE TABLE'), '');
  t.is(on('NOT KNOWN'), '');
});

test('every server permission is listed once, even one that the console does not know', (t) => {
  const ofTables = rightSets(CATALOGUE).map(
    ({ name, groups }) => `${name}: ${groups.flatMap(({ rights }) => rights).join(', ')}`,
  );
  t.deepEqual(ofTables, [
    'Common: SELECT, INSERT, UPDATE',
    'Tables and partitions: RESUME WAL',
    'Views: DROP VIEW, DROP LIVE VIEW',
    'Other permissions: PAINT TABLE',
  ]);
  t.deepEqual(databaseGroups(CATALOGUE), [
    { name: 'Tables and views', rights: ['CREATE TABLE'] },
    { name: 'Other', rights: ['PAINT DATABASE'] },
  ]);
});

test('a second click cancels the pending change', (t) => {
  const once = toggled([], 'SELECT', at('clients'), 'part');
  t.deepEqual(once, [change('SELECT', at('clients'))]);
  t.deepEqual(toggled(once, 'SELECT', at('clients'), 'part'), []);
  t.false(toggled([], 'SELECT', at('trades'), 'option')[0]?.isGrant);
  const column = toggled(once, 'SELECT', at('clients', 'email'), 'none');
  t.is(column.length, 2, 'the column change is added to the table change');
});

test('pending changes become SQL with names quoted where necessary', (t) => {
  const quants = { kind: 'group', name: 'the quants' } as const;
  const text = (one: Change): string | undefined => stepsOf([one], quants, CATALOGUE)[0]?.statement;
  t.is(text(change('SELECT', at('my "table"'))), 'GRANT SELECT ON "my ""table""" TO "the quants"');
  t.is(text(change('INSERT', at(), false)), 'REVOKE INSERT ON ALL TABLES FROM "the quants"');
  t.is(text(change('HTTP', at())), 'GRANT HTTP TO "the quants"');
  t.is(
    text(change(assumes('my feed'), at(), false)),
    'REVOKE ASSUME SERVICE ACCOUNT "my feed" FROM "the quants"',
  );
});

test('table changes come first; column changes of the same kind share one statement', (t) => {
  const steps = stepsOf(
    [
      change('SELECT', at('clients', 'id')),
      change('SELECT', at('clients'), false),
      change('UPDATE', at('clients', 'id')),
      change('SELECT', at('clients', 'my tier')),
    ],
    { kind: 'user', name: 'ada' },
    CATALOGUE,
  );
  t.deepEqual(
    steps.map(({ statement, changes }) => [statement, changes.length]),
    [
      ['REVOKE SELECT ON clients FROM ada', 1],
      ['GRANT SELECT ON clients(id, "my tier") TO ada', 2],
      ['GRANT UPDATE ON clients(id) TO ada', 1],
    ],
  );
});

test('a password is quoted as a string literal, whatever characters it contains', (t) => {
  const ada = { kind: 'user', name: 'ada' } as const;
  t.is(passwordStatement(ada, "it's"), "ALTER USER ada WITH PASSWORD 'it''s'");
  t.is(passwordStatement(ada, ''), 'ALTER USER ada WITH NO PASSWORD');
});

test('tokens are created and dropped with string literals', (t) => {
  const feed = { kind: 'service account', name: 'my feed' } as const;
  const alteration = 'ALTER SERVICE ACCOUNT "my feed"';
  t.is(tokenStatement(feed, '1d', false), `${alteration} CREATE TOKEN TYPE REST WITH TTL '1d'`);
  t.is(
    tokenStatement(feed, "1d' REFRESH --", true),
    `${alteration} CREATE TOKEN TYPE REST WITH TTL '1d'' REFRESH --' REFRESH`,
  );
  t.is(tokenEnd(feed), `${alteration} DROP TOKEN TYPE REST`);
  t.is(tokenEnd(feed, "tdm_'x"), `${alteration} DROP TOKEN TYPE REST 'tdm_''x'`);
});

test('a grant through a group is not shown as a direct grant', (t) => {
  const rows = [
    ['SELECT', 'clients', null, false, 'G', 'quants'],
    ['UPDATE', 'clients', null, false, 'G', 'Ann, quants'],
    ['INSERT', 'clients', null, false, 'G', 'ann'],
  ];
  const head = { columns: COLUMNS.map((name) => ({ name, type: 'STRING' })) };
  const grants = grantsOf({ head, rows });
  t.is(markOf(grants, 'SELECT', at('clients'), 'ann'), 'group');
  t.deepEqual(groupsOf(grants, 'SELECT', at('clients'), 'ann'), ['quants']);
  t.is(markOf(grants, 'UPDATE', at('clients'), 'ann'), 'granted');
  t.deepEqual(groupsOf(grants, 'UPDATE', at('clients'), 'ann'), ['quants']);
  t.is(markOf(grants, 'INSERT', at('clients'), 'ann'), 'granted');
  t.deepEqual(groupsOf(grants, 'INSERT', at('clients'), 'ann'), []);
  const [change] = toggled([], 'SELECT', at('clients'), 'group');
  t.true(change?.isGrant, 'a direct grant to the member is pending; the group keeps its grant');
});
