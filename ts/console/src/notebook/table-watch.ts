/**
 * Detects changes to a set of tables. The first few tables are watched through change feeds. For
 * all other tables, one statement per second polls the server for their last visible transactions.
 */
import { changes, query, SqlError } from '../api/client.js';
import type { ServerEvent } from '../api/events.js';
import { pause, waitAfter } from '../follow/source.js';
import { literal } from '../sql/names.js';

/**
 * Browsers open at most six connections per server, and statements need some of those connections.
 */
const MAX_FEEDS = 3;
const POLL_MS = 1000;
/** Interval at which objects without transactions, such as views, are assumed to have changed. */
const UNKNOWN_MS = 5000;
const GONE = 410;

/** Requests that this module sends to the server. */
export interface WatchServer {
  readonly changes: (
    table: string,
    from: string,
    signal: AbortSignal,
  ) => AsyncIterable<ServerEvent>;
  /** Returns the last visible transaction of each table that has transactions. */
  readonly transactions: (
    tables: readonly string[],
    signal: AbortSignal,
  ) => Promise<ReadonlyMap<string, string>>;
}

const SERVER: WatchServer = {
  changes: (table, from, signal) => changes(table, from, signal),
  transactions: async (tables, signal) => {
    const names = tables.map(literal).join(', ');
    const { rows } = await query(
      `SELECT table_name, table_txn FROM tables() WHERE table_name IN (${names})`,
      { signal },
    );
    return new Map(rows.map(([name, txn]) => [String(name), String(txn)]));
  },
};

/** Calls `changed` with each table whose rows may have changed, until the signal aborts. */
export async function watchTables(
  tables: readonly string[],
  changed: (table: string) => void,
  signal: AbortSignal,
  server: WatchServer = SERVER,
): Promise<void> {
  const watched = new Set(tables.slice(MAX_FEEDS));
  const feeds = tables.slice(0, MAX_FEEDS).map(async (table) => {
    await followFeed(table, changed, signal, server);
    // The server has no feed for this table, so the table is polled from now on.
    watched.add(table);
  });
  await Promise.all([...feeds, pollTables(watched, changed, signal, server)]);
}

/** Follows a table's change feed until the signal aborts or the server refuses the feed. */
async function followFeed(
  table: string,
  changed: (table: string) => void,
  signal: AbortSignal,
  server: WatchServer,
): Promise<void> {
  let position = 'now';
  let failures = 0;
  const isOver = (): boolean => signal.aborted;
  while (!isOver()) {
    try {
      for await (const event of server.changes(table, position, signal)) {
        position = event.id ?? position;
        if (failures > 0 && position === 'now') {
          // Changes between the two feeds are unknown.
          changed(table);
        }
        failures = 0;
        if (event.name !== 'comment' && event.name !== 'schema') {
          changed(table);
        }
      }
    } catch (cause) {
      const isRefused = cause instanceof SqlError && cause.status !== GONE;
      if (isRefused || isOver()) {
        return;
      }
      if (cause instanceof SqlError) {
        position = 'now';
      }
    }
    failures += 1;
    await pause(waitAfter(failures), signal);
  }
}

async function pollTables(
  tables: ReadonlySet<string>,
  changed: (table: string) => void,
  signal: AbortSignal,
  server: WatchServer,
): Promise<void> {
  let before = new Map<string, string>();
  let unknownAt = Date.now();
  let failures = 0;
  const isOver = (): boolean => signal.aborted;
  while (!isOver()) {
    await pause(failures > 0 ? waitAfter(failures) : POLL_MS, signal);
    if (tables.size === 0 || isOver()) {
      continue;
    }
    try {
      const now = await server.transactions([...tables], signal);
      const isUnknownDue = Date.now() - unknownAt >= UNKNOWN_MS;
      for (const table of tables) {
        const txn = now.get(table);
        const last = before.get(table);
        if (txn === undefined ? isUnknownDue : last !== undefined && last !== txn) {
          changed(table);
        }
      }
      unknownAt = isUnknownDue ? Date.now() : unknownAt;
      before = new Map(now);
      failures = 0;
    } catch {
      failures += 1;
    }
  }
}
