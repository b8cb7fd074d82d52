import test from 'ava';
import { SqlError, Unreachable } from '../src/api/client.js';
import type { ServerEvent } from '../src/api/events.js';
import { watchTables, type WatchServer } from '../src/notebook/table-watch.js';

const ROWS: ServerEvent = { name: 'rows', id: '7', data: '{}' };
const SCHEMA: ServerEvent = { name: 'schema', id: undefined, data: '{}' };
const COMMENT: ServerEvent = { name: 'comment', id: undefined, data: '' };

interface Received {
  readonly changed: string[];
  readonly feeds: (readonly [string, string])[];
  readonly requested: (readonly string[])[];
}

/** Watches tables with scripted feeds until `isEnough` returns true. */
async function watch(
  tables: readonly string[],
  feed: (table: string, attempt: number) => readonly (ServerEvent | Error)[],
  transactions: (attempt: number) => ReadonlyMap<string, string>,
  isDone: (received: Received) => boolean,
): Promise<Received> {
  const received: Received = { changed: [], feeds: [], requested: [] };
  const abort = new AbortController();
  const check = (): void => {
    if (isDone(received)) {
      abort.abort();
    }
  };
  const never = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (signal.aborted) {
        resolve();
      }
      signal.addEventListener('abort', () => resolve());
    });
  const server: WatchServer = {
    changes: async function* (table, from, signal) {
      const attempt = received.feeds.filter(([one]) => one === table).length;
      received.feeds.push([table, from]);
      check();
      for (const event of feed(table, attempt)) {
        if (event instanceof Error) {
          throw event;
        }
        yield event;
      }
      await never(signal);
    },
    transactions: (requested) => {
      received.requested.push(requested);
      check();
      return Promise.resolve(transactions(received.requested.length));
    },
  };
  const changed = (table: string): void => {
    received.changed.push(table);
    check();
  };
  await watchTables(tables, changed, abort.signal, server);
  return received;
}

test('three tables have feeds; the others share one polling query', async (t) => {
  const received = await watch(
    ['a', 'b', 'c', 'd', 'e'],
    (table) => [COMMENT, SCHEMA, ...(table === 'b' ? [ROWS] : [])],
    (attempt) =>
      new Map([
        ['d', String(attempt > 1)],
        ['e', '1'],
      ]),
    ({ changed }) => changed.length >= 2,
  );
  t.deepEqual(received.feeds, [
    ['a', 'now'],
    ['b', 'now'],
    ['c', 'now'],
  ]);
  t.deepEqual(received.changed, ['b', 'd']);
  t.deepEqual(received.requested[0], ['d', 'e']);
});

test('an ended feed resumes; if its position expired, the table counts as changed', async (t) => {
  const resumed = await watch(
    ['a'],
    (_table, attempt) => (attempt === 0 ? [ROWS, new Unreachable('gone')] : [COMMENT]),
    () => new Map(),
    ({ feeds }) => feeds.length === 2,
  );
  t.deepEqual(resumed.feeds, [
    ['a', 'now'],
    ['a', '7'],
  ]);
  const secondWatch = await watch(
    ['a'],
    (_table, attempt) =>
      attempt === 0 ? [ROWS, new SqlError('too old', undefined, 410)] : [COMMENT],
    () => new Map(),
    ({ changed }) => changed.length === 2,
  );
  t.deepEqual(secondWatch.feeds.at(-1), ['a', 'now']);
  t.deepEqual(secondWatch.changed, ['a', 'a']);
});

test('a table without a feed is polled, and counts as changed if it is a view', async (t) => {
  const received = await watch(
    ['v'],
    () => [new SqlError('no room', undefined, 503)],
    () => new Map(),
    ({ changed }) => changed.length === 1,
  );
  t.is(received.feeds.length, 1);
  t.true(received.requested.length >= 4, 'the view counts as changed only after several polls');
  t.deepEqual(received.requested[0], ['v']);
});
