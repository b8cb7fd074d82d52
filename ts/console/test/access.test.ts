import test from 'ava';
import {
  applies,
  grantsOf,
  groupsOf,
  markOf,
  passwordStatement,
  stepsOf,
  toggled,
  type Change,
  type Place,
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

function at(table?: string, column?: string): Place {
  return { table, column };
}

function change(permission: string, place: Place, isGrant = true): Change {
  return { permission, ...place, isGrant };
}

test('a right is held here, passed on, from all tables, on some columns, or not', (t) => {
  t.is(markOf(GRANTS, 'SELECT', at('trades'), 'ann'), 'option');
  t.is(markOf(GRANTS, 'INSERT', at(), 'ann'), 'granted');
  t.is(markOf(GRANTS, 'INSERT', at('trades'), 'ann'), 'inherited');
  t.is(markOf(GRANTS, 'SELECT', at('clients'), 'ann'), 'part');
  t.is(markOf(GRANTS, 'SELECT', at(), 'ann'), 'none');
  t.is(markOf(GRANTS, 'HTTP', at(), 'ann'), 'option');
  const admin = [
    { permission: 'ALL', ...at(), option: false, isImplied: false, grantedTo: ['ann'] },
  ];
  t.is(markOf(admin, 'DROP TABLE', at('trades'), 'ann'), 'inherited');
});

test('a column has what is granted on it, what its table has, and what comes along', (t) => {
  t.is(markOf(GRANTS, 'SELECT', at('clients', 'ID'), 'ann'), 'granted');
  t.is(markOf(GRANTS, 'SELECT', at('clients', 'ts'), 'ann'), 'implied');
  t.is(markOf(GRANTS, 'SELECT', at('clients', 'email'), 'ann'), 'none');
  t.is(markOf(GRANTS, 'SELECT', at('trades', 'price'), 'ann'), 'inherited');
  t.is(markOf(GRANTS, 'UPDATE', at('clients', 'id'), 'ann'), 'none');
  t.true(applies('SELECT', 'column') && !applies('INSERT', 'column'));
  t.true(applies('SELECT', 'view') && !applies('UPDATE', 'view'));
});

test('a second click takes the plan back', (t) => {
  const once = toggled([], 'SELECT', at('clients'), 'part');
  t.deepEqual(once, [change('SELECT', at('clients'))]);
  t.deepEqual(toggled(once, 'SELECT', at('clients'), 'part'), []);
  t.false(toggled([], 'SELECT', at('trades'), 'option')[0]?.isGrant);
  const column = toggled(once, 'SELECT', at('clients', 'email'), 'none');
  t.is(column.length, 2, 'a column is planned beside its table');
});

test('a plan is SQL with names quoted where they must be', (t) => {
  const quants = { kind: 'group', name: 'the quants' } as const;
  const text = (one: Change): string | undefined => stepsOf([one], quants)[0]?.statement;
  t.is(text(change('SELECT', at('my "table"'))), 'GRANT SELECT ON "my ""table""" TO "the quants"');
  t.is(text(change('INSERT', at(), false)), 'REVOKE INSERT ON ALL TABLES FROM "the quants"');
  t.is(text(change('HTTP', at())), 'GRANT HTTP TO "the quants"');
});

test('columns that go together are one statement, behind what concerns their table', (t) => {
  const steps = stepsOf(
    [
      change('SELECT', at('clients', 'id')),
      change('SELECT', at('clients'), false),
      change('UPDATE', at('clients', 'id')),
      change('SELECT', at('clients', 'my tier')),
    ],
    { kind: 'user', name: 'ada' },
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

test('a password is a literal, whatever it holds', (t) => {
  const ada = { kind: 'user', name: 'ada' } as const;
  t.is(passwordStatement(ada, "it's"), "ALTER USER ada WITH PASSWORD 'it''s'");
  t.is(passwordStatement(ada, ''), 'ALTER USER ada WITH NO PASSWORD');
});

test('what comes from a group is not the own right of its members', (t) => {
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
  t.true(change?.isGrant, 'the member gets a right of its own; the group keeps its own');
});
