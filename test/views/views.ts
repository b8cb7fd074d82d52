/** Helpers that wait for materialized views and compare them with the results of their queries. */
import { type Answer, exec, rows } from '../scenario/statements.js';
import type { TestServer } from '../golden/server.js';
import { until } from '../until.js';

const STATE = `SELECT view_status, invalidation_reason, refresh_base_table_txn, base_table_txn
  FROM materialized_views() WHERE view_name = `;

/** Waits until a view includes all rows of its base. */
export async function current(server: TestServer, ...views: readonly string[]): Promise<void> {
  for (const view of views) {
    await until(async () => {
      const [state] = await rows(server, `${STATE}'${view}'`);
      return state?.[0] === 'valid' && state[2] !== null && state[2] === state[3];
    }, `view ${view} is current`);
  }
}

/** Waits until a live view includes all rows of its base. */
export async function live(server: TestServer, ...views: readonly string[]): Promise<void> {
  for (const view of views) {
    const state = `SELECT view_status, lag_seqtxn, last_processed_seqtxn FROM live_views()
      WHERE view_name = '${view}'`;
    await until(async () => {
      const [found] = await rows(server, state);
      return found?.[0] === 'active' && found[1] === 0 && found[2] !== null;
    }, `live view ${view} is current`);
  }
}

/** Waits until a live view has the given status; returns the reason if it is invalid. */
export async function status(server: TestServer, view: string, expected: string): Promise<unknown> {
  let reason: unknown = null;
  await until(async () => {
    const [found] = await rows(
      server,
      `SELECT view_status, invalidation_reason FROM live_views() WHERE view_name = '${view}'`,
    );
    reason = found?.[1];
    return found?.[0] === expected;
  }, `live view ${view} is ${expected}`);
  return reason;
}

/** Waits until a view is invalid; returns the reason. */
export async function invalid(server: TestServer, view: string): Promise<unknown> {
  let reason: unknown = null;
  await until(async () => {
    const [state] = await rows(server, `${STATE}'${view}'`);
    reason = state?.[1];
    return state?.[0] === 'invalid';
  }, `view ${view} is invalid`);
  return reason;
}

/** Returns the sorted rows of a query, because views keep no order within a bucket. */
export async function sorted(server: TestServer, query: string): Promise<readonly string[]> {
  const found = await rows(server, query);
  return found.map((row) => JSON.stringify(row)).sort();
}

export async function error(server: TestServer, statement: string): Promise<string> {
  const answer: Answer = await exec(server, statement);
  return `${answer.position ?? ''}: ${answer.error ?? 'no error'}`;
}
