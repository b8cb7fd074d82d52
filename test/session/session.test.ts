/** How a session handles a statement, tested without an engine. */
import test from 'ava';

import {
  asDatabaseError,
  DatabaseError,
  errorMeaning,
  SessionHost,
} from '../../ts/session/index.js';
import { StatementCache } from '../../ts/session/statement-cache.js';
import { ERROR_CODES } from '../../ts/border/types.generated.js';
import { fakeStatement } from '../fake-statement.js';
import { fakeDatabase, fakeParse } from '../http/fake-database.js';

const ROWS = { rows: { format: 'json' } } as const;

test('every error code has a status, an SQLSTATE and a level', (t) => {
  for (const code of ERROR_CODES) {
    const meaning = errorMeaning(code);
    t.true(meaning.httpStatus >= 400 && meaning.httpStatus < 600, code);
    t.regex(meaning.sqlState, /^[0-9A-Z]{5}$/, code);
  }
});

test('a repeated statement is parsed only once', (t) => {
  let parsed = 0;
  const cache = new StatementCache((text) => {
    parsed += 1;
    return fakeStatement(text);
  });
  t.is(cache.parsed('a'), cache.parsed('a'));
  t.is(parsed, 1);
});

test('rights are checked at prepare and at every execution', async (t) => {
  const database = fakeDatabase();
  let allowed = true;
  const host = new SessionHost({
    database,
    parse: fakeParse,
    guard: {
      watch: () => undefined,
      authorise: () => {
        if (!allowed) {
          throw new DatabaseError({ code: 'AccessDenied', message: 'no' });
        }
      },
      visibility: () => undefined,
      visibilityVersion: () => 0,
      readsLists: () => false,
      makesView: () => false,
      viewOwner: () => ({ name: '', id: null }),
      serverAccesses: () => [],
      lists: () => Promise.resolve({ lists: {}, tree: null }),
      follow: (_change, run) => run(),
      authoriseUnbound: () => undefined,
      importAccesses: () => [],
      creating: (_principal, _target, run) => run(),
      ran: () => undefined,
    },
  });
  const statement = await host.open({ name: 'u', readOnly: false }).prepare('rows 1');
  await statement.execute([], ROWS);
  allowed = false;
  await t.throwsAsync(() => statement.execute([], ROWS), { message: 'no' });
  t.is(database.journal.executed.length, 1);
});

test('after a catalog change, a statement is prepared again only once', async (t) => {
  const database = fakeDatabase();
  const host = new SessionHost({ database, parse: fakeParse });
  const statement = await host.open({ name: 'u', readOnly: false }).prepare('replan');
  await t.notThrowsAsync(() => statement.execute([], ROWS));
  t.deepEqual(database.journal.prepared, ['replan', 'replan']);
});

test('a replanned statement keeps its remaining time', async (t) => {
  const database = fakeDatabase();
  const host = new SessionHost({ database, parse: fakeParse });
  const session = host.open({ name: 'u', readOnly: false });
  const statement = await session.prepare('replan', undefined, { timeoutMs: 900, elapsedMs: 5 });
  await statement.execute([], ROWS, { timeoutMs: 800, elapsedMs: 300 });
  const [first, again] = database.journal.bounds;
  t.deepEqual(first, { timeoutMs: 900, elapsedMs: 5 });
  t.is(again?.timeoutMs, 800);
  t.true((again?.elapsedMs ?? 0) >= 300);
});

test('a statement fails if the catalog changes at every attempt', async (t) => {
  const database = fakeDatabase();
  const host = new SessionHost({ database, parse: fakeParse });
  const statement = await host.open({ name: 'u', readOnly: false }).prepare('replan always');
  await t.throwsAsync(() => statement.execute([], ROWS), { message: 'moved' });
  t.is(database.journal.prepared.length, 64);
});

test('a repeated query is planned once per user until its tables change', async (t) => {
  const database = fakeDatabase();
  const host = new SessionHost({ database, parse: fakeParse });
  const run = async (name: string, text: string): Promise<void> => {
    const statement = await host.open({ name, readOnly: false }).prepare(text);
    await statement.execute([], ROWS);
    statement.close();
  };
  await run('u', 'rows 1');
  await run('u', 'rows 1');
  t.is(database.journal.prepared.length, 1);
  await run('v', 'rows 1');
  t.is(database.journal.prepared.length, 2);
  database.journal.current = false;
  await run('u', 'rows 1');
  t.is(database.journal.prepared.length, 3);
  database.journal.current = true;
  await run('u', 'rows 1');
  await run('u', 'insert 1');
  await run('u', 'insert 1');
  t.is(database.journal.prepared.length, 5);
  t.is(database.journal.executed.length, 7);
  // The two inserts are closed, because they are not shared.
  t.is(database.journal.closed, 2);
});

test('time limits have a default and a maximum', (t) => {
  const host = new SessionHost({
    database: fakeDatabase(),
    parse: fakeParse,
    defaultTimeoutMs: 10,
    maxTimeoutMs: 100,
  });
  t.is(host.timeoutMs(undefined), 10);
  t.is(host.timeoutMs(50), 50);
  t.is(host.timeoutMs(5000), 100);
});

test('a closed statement is refused', async (t) => {
  const host = new SessionHost({ database: fakeDatabase(), parse: fakeParse });
  const statement = await host.open({ name: 'u', readOnly: false }).prepare('rows 1');
  statement.close();
  t.throws(() => statement.description, { message: /closed/ });
});

test('an internal error shows an id, and its cause is logged', (t) => {
  const cause = new TypeError('secret detail');
  const error = asDatabaseError(cause);
  t.is(error.code, 'Internal');
  t.regex(error.message, /^internal error \[id=[0-9a-f]{12}\]$/);
  t.is(error.cause, cause);
});
