/** Session statements: each form, with whitespace, comments and quotes of every kind. */
import test from 'ava';

import { readStatement, type SessionStatement, SyntaxError_ } from '../../ts/sql/index.js';

const FORMS: readonly (readonly [SessionStatement, ...string[]])[] = [
  [
    { kind: 'Begin', modes: {} },
    'BEGIN',
    'begin work',
    'START TRANSACTION',
    'start /* x */ transaction -- y',
    ';;begin;',
  ],
  [
    { kind: 'Begin', modes: { isolation: 'serializable', readOnly: true } },
    'begin isolation level serializable, read only',
    'START TRANSACTION READ WRITE READ ONLY, ISOLATION LEVEL SERIALIZABLE',
  ],
  [
    { kind: 'Commit' },
    'COMMIT',
    'commit/**/work',
    'END',
    'end transaction;',
    'commit and no chain',
  ],
  [{ kind: 'Rollback' }, 'ROLLBACK', 'ROLLBACK WORK', 'abort', 'abort transaction -- now'],
  [{ kind: 'Chain' }, 'COMMIT AND CHAIN', 'rollback work and chain'],
  [
    { kind: 'TwoPhase' },
    "PREPARE TRANSACTION 'x'",
    "COMMIT PREPARED 'x'",
    "ROLLBACK /* x */ PREPARED 'x'",
  ],
  [{ kind: 'Savepoint', name: 'a' }, 'SAVEPOINT a', 'savepoint/**/A', 'savepoint "a"'],
  [{ kind: 'Savepoint', name: 'A "b"' }, 'savepoint "A ""b"""'],
  [{ kind: 'Release', name: 'a' }, 'RELEASE a', 'release savepoint A', 'release\n"a"'],
  [{ kind: 'Release', name: 'savepoint' }, 'RELEASE savepoint'],
  [
    { kind: 'RollbackTo', name: 'a' },
    'ROLLBACK TO a',
    'rollback to savepoint A',
    'rollback transaction to "a"',
    'abort to a',
  ],
  [{ kind: 'Deallocate', name: null }, 'DEALLOCATE ALL', 'deallocate prepare all'],
  [{ kind: 'Deallocate', name: 'A b' }, 'DEALLOCATE PREPARE "A b"', 'deallocate/**/"A b"'],
  [{ kind: 'Deallocate', name: '_pg3_0' }, 'deallocate _PG3_0'],
  [{ kind: 'CloseCursor', name: null }, 'CLOSE ALL', 'close -- x\nall'],
  [{ kind: 'CloseCursor', name: 'c' }, 'CLOSE c', 'close "c"'],
  [{ kind: 'Discard', what: 'ALL' }, 'DISCARD ALL', 'discard /* y */ all'],
  [{ kind: 'Discard', what: 'PLANS' }, 'DISCARD PLANS'],
  [{ kind: 'Reset' }, 'RESET ALL', 'reset /* y */ all'],
  [{ kind: 'Reset', name: 'search_path' }, 'RESET search_path', 'reset SEARCH_PATH'],
  [{ kind: 'Reset', name: 'session' }, 'RESET session'],
  [{ kind: 'ResetRole' }, 'RESET ROLE', 'reset/**/role', 'RESET SESSION AUTHORIZATION'],
  [{ kind: 'Listen', channel: 'x' }, 'LISTEN x', 'listen X'],
  [{ kind: 'Listen', channel: 'A b' }, 'LISTEN "A b"'],
  [{ kind: 'Notify', channel: 'x', payload: '' }, 'NOTIFY x', 'notify X'],
  [{ kind: 'Notify', channel: 'x', payload: "it's" }, "notify x, 'it''s'"],
  [{ kind: 'Unlisten', channel: null }, 'UNLISTEN *'],
  [{ kind: 'Unlisten', channel: 'x' }, 'unlisten x'],
  [
    { kind: 'Set', name: 'statement_timeout', value: '5s', local: false },
    "SET statement_timeout = '5s'",
    "set/**/statement_timeout to '5s' -- x",
    'SET SESSION statement_timeout TO 5s',
  ],
  [
    { kind: 'Set', name: 'statement_timeout', value: '5s', local: true },
    'set local Statement_Timeout=5s',
  ],
  [
    { kind: 'Set', name: 'x', value: null, local: true },
    'SET LOCAL x TO DEFAULT',
    'set local x = default',
  ],
  [
    { kind: 'Set', name: 'x', value: 'default', local: false },
    "SET x TO 'default'",
    'SET x TO "default"',
  ],
  [{ kind: 'Set', name: 'timezone', value: null, local: false }, 'SET TIME ZONE DEFAULT'],
  [
    { kind: 'Set', name: 'a.b', value: "it's", local: false },
    "SET a.b = 'it''s'",
    `set a."b" to 'it''s'`,
  ],
  [
    { kind: 'Set', name: 'search_path', value: '"$user", public', local: false },
    'SET search_path="$user", public',
    "SET search_path='$user', 'public'",
  ],
  [
    { kind: 'Set', name: 'timezone', value: 'UTC', local: false },
    "SET TIME ZONE 'UTC'",
    'set session time zone UTC',
  ],
  [
    { kind: 'Set', name: '', value: '', local: false },
    "SET NAMES 'UTF8'",
    'SET CONSTRAINTS ALL DEFERRED',
  ],
  [
    { kind: 'SetTransaction', modes: { isolation: 'read committed' }, defaults: false },
    'SET TRANSACTION ISOLATION LEVEL READ COMMITTED',
    'set local transaction isolation level read committed',
  ],
  [
    {
      kind: 'SetTransaction',
      modes: { readOnly: true, deferrable: false },
      defaults: true,
    },
    'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY, NOT DEFERRABLE',
  ],
  [
    { kind: 'SetRole', name: 'svc', local: false },
    'SET ROLE svc',
    "set role 'svc'",
    'SET SESSION ROLE TO "svc"',
  ],
  [{ kind: 'SetRole', name: 'svc', local: true }, 'set/**/local role = SVC'],
  [{ kind: 'SetRole', name: null, local: false }, 'SET ROLE NONE', 'set role to default'],
  [{ kind: 'SetAuthorization', name: 'joe' }, 'SET SESSION AUTHORIZATION joe'],
  [{ kind: 'SetAuthorization', name: null }, 'SET SESSION AUTHORIZATION DEFAULT'],
  [
    { kind: 'Fetch', name: 'c', step: { way: 'forward', rows: 1 } },
    'FETCH c',
    'fetch next from c',
    'FETCH FROM C',
    'fetch/**/forward in "c"',
    'FETCH FORWARD 1 c',
    'fetch backward -1 c',
  ],
  [
    { kind: 'Fetch', name: 'c', step: { way: 'forward', rows: Infinity } },
    'FETCH ALL FROM c',
    'fetch forward all c',
  ],
  [{ kind: 'Fetch', name: 'all', step: { way: 'forward', rows: 1 } }, 'FETCH all'],
  [
    { kind: 'Move', name: 'c', step: { way: 'forward', rows: 5 } },
    'MOVE 5 IN c',
    'move forward 5 from c -- x',
  ],
  [
    { kind: 'Fetch', name: 'c', step: { way: 'backward', rows: 1 } },
    'FETCH -1 FROM c',
    'FETCH PRIOR FROM c',
    'fetch backward c',
    'fetch forward -1 c',
  ],
  [{ kind: 'Move', name: 'c', step: { way: 'backward', rows: Infinity } }, 'MOVE BACKWARD ALL c'],
  [{ kind: 'Fetch', name: 'c', step: { way: 'forward', rows: 0 } }, 'FETCH 0 FROM c'],
  [
    { kind: 'Fetch', name: 'c', step: { way: 'absolute', rows: 1 } },
    'FETCH FIRST FROM c',
    'fetch absolute 1 c',
    'fetch absolute +1 c',
  ],
  [
    { kind: 'Fetch', name: 'c', step: { way: 'absolute', rows: -1 } },
    'FETCH LAST c',
    'fetch absolute -1 from c',
  ],
  [
    { kind: 'Move', name: 'c', step: { way: 'relative', rows: -3 } },
    'MOVE RELATIVE -3 FROM c',
    'move relative - 3 in c',
  ],
];

for (const [statement, ...texts] of FORMS) {
  test(`session statement ${JSON.stringify(statement)}: ${texts.join(' | ')}`, (t) => {
    for (const text of texts) {
      t.deepEqual(readStatement(text).session, statement, text);
      t.is(readStatement(text).tree.nodes.at(-1)?.kind, 'Session', text);
    }
  });
}

test('a cursor keeps the SQL and position of its query', (t) => {
  const text = 'DECLARE /* x */ "C 1" BINARY NO SCROLL CURSOR WITH HOLD FOR select 1 -- y';
  t.deepEqual(readStatement(text).session, {
    kind: 'DeclareCursor',
    name: 'C 1',
    binary: true,
    scroll: false,
    hold: true,
    query: { text: 'select 1', start: 60 },
  });
  t.like(readStatement('declare c scroll cursor for t').session, { scroll: true, hold: false });
  t.is(readStatement('DECLARE @a := 1 SELECT @a').session, null);
});

test('unsupported cursor directions are refused', (t) => {
  const texts = ['FETCH SIDEWAYS c', 'MOVE ABSOLUTE c', 'FETCH 1.5 FROM c', 'FETCH FIRST 2 c'];
  for (const text of texts) {
    const { start } = t.throws(() => readStatement(text), { instanceOf: SyntaxError_ });
    t.is(start, text.indexOf(' ') + 1, text);
  }
});

test('COPY over the connection is distinguished from COPY with files', (t) => {
  t.like(readStatement('copy /* x */ t (a) from -- y\n stdin').session, {
    kind: 'CopyIn',
    table: 't',
    columns: ['a'],
  });
  t.like(readStatement('COPY (select 1) TO /**/ STDOUT').session, {
    kind: 'CopyOut',
    source: { text: 'select 1', start: 6 },
  });
  for (const text of [
    "COPY t FROM 'stdin'",
    "COPY t TO 'stdout' WITH FORMAT CSV",
    'COPY t CANCEL',
  ]) {
    t.is(readStatement(text).session, null, text);
  }
});

test('other statements are not session statements', (t) => {
  const texts = [
    'select 1 -- begin',
    '/* begin */ select 1',
    'end_of_day',
    'fetch WHERE x = 1',
    'move LATEST ON ts PARTITION BY s',
    'notify',
    'prepare',
    '"begin"',
  ];
  for (const text of texts) {
    t.is(readStatement(text).session, null, text);
  }
});

test('missing words are reported with their position', (t) => {
  const cases: readonly (readonly [string, string, number])[] = [
    ['SAVEPOINT', 'savepoint name expected', 9],
    ['DEALLOCATE', 'prepared statement name expected', 10],
    ['START over', "'transaction' expected", 6],
    ['COMMIT twice', 'unexpected token [twice]', 7],
    ['DECLARE c CURSOR FOR', 'query expected', 20],
    ['COPY t FROM STDIN (NOPE 1)', 'COPY option "nope" not recognized', 19],
  ];
  for (const [text, message, start] of cases) {
    const error = t.throws(() => readStatement(text), { instanceOf: SyntaxError_, message }, text);
    t.is(error.start, start, text);
  }
});
