import test from 'ava';
import { grantsOf, markOf, statementOf, toggled, type Change } from '../src/access/model.js';

const COLUMNS = ['permission', 'table_name', 'column_name', 'grant_option', 'origin'];
const GRANTS = grantsOf({
  head: { columns: COLUMNS.map((name) => ({ name, type: 'STRING' })) },
  rows: [
    ['SELECT', 'trades', null, true, 'G'],
    ['INSERT', null, null, false, 'G'],
    ['SELECT', 'clients', 'id', 'f', 'G'],
    ['HTTP', '', '', 't', 'G'],
  ],
});

test('a right is held here, passed on, from all tables, on some columns, or not', (t) => {
  t.is(markOf(GRANTS, 'SELECT', 'trades'), 'option');
  t.is(markOf(GRANTS, 'INSERT', undefined), 'granted');
  t.is(markOf(GRANTS, 'INSERT', 'trades'), 'inherited');
  t.is(markOf(GRANTS, 'SELECT', 'clients'), 'part');
  t.is(markOf(GRANTS, 'SELECT', undefined), 'none');
  t.is(markOf(GRANTS, 'HTTP', undefined), 'option');
  const admin = [{ permission: 'ALL', table: undefined, column: undefined, option: false }];
  t.is(markOf(admin, 'DROP TABLE', 'trades'), 'inherited');
});

test('a second click takes the plan back', (t) => {
  const once = toggled([], 'SELECT', 'clients', 'part');
  t.deepEqual(once, [{ permission: 'SELECT', table: 'clients', isGrant: true }]);
  t.deepEqual(toggled(once, 'SELECT', 'clients', 'part'), []);
  t.false(toggled([], 'SELECT', 'trades', 'option')[0]?.isGrant);
});

test('a plan is SQL with names quoted where they must be', (t) => {
  const quants = { kind: 'group', name: 'the quants' } as const;
  const text = (change: Change): string => statementOf(change, quants);
  const grant = { permission: 'SELECT', table: 'my "table"', isGrant: true };
  t.is(text(grant), 'GRANT SELECT ON "my ""table""" TO "the quants"');
  t.is(
    text({ permission: 'INSERT', table: undefined, isGrant: false }),
    'REVOKE INSERT ON ALL TABLES FROM "the quants"',
  );
  t.is(text({ permission: 'HTTP', table: undefined, isGrant: true }), 'GRANT HTTP TO "the quants"');
});
