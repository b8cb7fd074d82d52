/**
 * Results that survive a reload: the first rows of each tab's result, for the user who saw them.
 * The console labels them with the time at which they were read, and does not run any statement
 * again.
 */
import type { AnswerHead, Row } from '../api/answer.js';
import { Result } from '../model/result.js';
import { mayBeStored } from './history.js';
import type { EarlierResult } from './run.js';
import { loadAll, remove, saveDated } from './store.js';
import type { Dated } from '../api/workspace.js';

interface StoredResult extends Dated {
  /** Name of the user who saw the result; empty if no login is required. */
  readonly user: string;
  readonly statement: string;
  readonly head: AnswerHead;
  readonly rows: readonly Row[];
  readonly total: number;
}

const PREFIX = 'result/';
const MAX_STORED_ROWS = 1000;
/**
 * Maximum number of characters in a stored result. The wider the rows, the fewer rows are stored.
 */
const MAX_RESULT_LENGTH = 1_000_000;
const MAX_RESULTS = 20;

/** Stores the first rows of a tab's result. */
export async function storeResult(tab: string, result: Result, user: string): Promise<void> {
  const { statement, columns, timestamp, total = result.rows.length } = result;
  const key = PREFIX + tab;
  const rows: Row[] = [];
  let length = 0;
  for (const row of result.rows.slice(0, MAX_STORED_ROWS)) {
    length += JSON.stringify(row).length;
    if (length > MAX_RESULT_LENGTH) {
      break;
    }
    rows.push(row);
  }
  if (!mayBeStored(statement) || rows.length === 0 || result.skipped > 0) {
    await remove([key]);
    return;
  }
  const head = { query: statement, columns: [...columns], timestamp };
  const stored: StoredResult = { changed: Date.now(), user, statement, head, rows, total };
  await saveDated(new Map([[key, stored]]));
}

/** Loads a user's results by tab. Results of other users and the oldest results are removed. */
export async function storedResults(user: string): Promise<ReadonlyMap<string, EarlierResult>> {
  const found = [...(await loadAll<StoredResult>(PREFIX))].sort(
    ([, left], [, right]) => right.changed - left.changed,
  );
  const own = found.filter(([, stored]) => stored.user === user).slice(0, MAX_RESULTS);
  await remove(found.filter((one) => !own.includes(one)).map(([key]) => key));
  return new Map(
    own.map(([key, { statement, head, rows, changed, total }]) => {
      const result = new Result(head, statement);
      result.append(rows);
      // Views treat the stored result as complete, so that no view requests the remaining rows.
      result.total = rows.length;
      return [key.slice(PREFIX.length), { result, at: new Date(changed), total }];
    }),
  );
}

export async function forgetResult(tab: string): Promise<void> {
  await remove([PREFIX + tab]);
}
