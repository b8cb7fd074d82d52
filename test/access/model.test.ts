import test from 'ava';

import { allPermissions, permissionsAt } from '../../ts/access/catalogue.js';
import { grant, grantRows, NO_GRANTS, refusal, revoke } from '../../ts/access/model.js';
import { suiteSeed } from '../seed.js';
import { differences } from './sequences.js';

const SCHEMA = {
  tables: (): string[] => ['t', 'u'],
  columns: (table: string): string[] => (table === 't' ? ['ts', 'a', 'b'] : ['ts', 'x']),
};

test('random grants, revokes and schema changes agree with the reference model', (t) => {
  t.deepEqual(differences(10_000, suiteSeed()), []);
});

test('a column-level revoke keeps the grants on the other columns and tables', (t) => {
  const all = grant(NO_GRANTS, 'SELECT', 'database', true);
  const less = revoke(all, 'SELECT', { table: 't', columns: ['A'] }, SCHEMA);
  t.deepEqual(
    grantRows(less).map(({ table, column, option }) => [table, column, option]),
    [
      ['t', 'b', true],
      ['t', 'ts', true],
      ['u', null, true],
    ],
  );
  const asks = (table: string): object | null =>
    refusal([less], { permission: 'SELECT', table, columns: [] });
  t.is(asks('u'), null);
  t.deepEqual(asks('new'), { column: null });
});

test('a database-level grant replaces table-level grants of the same permission', (t) => {
  let grants = grant(NO_GRANTS, 'INSERT', { table: 't' }, false);
  grants = grant(grants, 'INSERT', 'database', false);
  grants = grant(grants, 'INSERT', { table: 'u' }, false);
  t.deepEqual(grantRows(grants), [
    { permission: 'INSERT', table: null, column: null, option: false },
  ]);
});

test("the catalog has QuestDB's 70 permissions plus DELETE and file permissions", (t) => {
  t.is(allPermissions().length, 73);
  t.is(new Set(allPermissions().map(([name]) => name)).size, 73);
  t.true(permissionsAt('column').includes('SELECT'));
  t.false(permissionsAt('table').includes('HTTP'));
});
