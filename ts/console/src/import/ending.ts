/**
 * Determines the outcome of an import that ended without a response, because the user stopped it or
 * the server did not answer. The import may still have completed, so the state of the table is
 * queried.
 */
import { recordsOf } from '../api/cells.js';
import { query } from '../api/client.js';
import { rowsText } from '../model/format.js';
import type { Activity } from '../state/activity.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface TableState {
  readonly rows: string;
  /** Last transaction of the table, which differs after every change to the table. */
  readonly transaction: string;
}

/** Whether the server has received only a part of the file or may have received all of it. */
type Reach = 'part' | 'whole';

const MAX_POLLS = 20;
const POLL_MS = 250;

/** Returns the state of a table, or `undefined` if the table does not exist. */
export async function stateOf(table: string): Promise<TableState | undefined> {
  const answer = await query('SELECT table_name, table_row_count, table_txn FROM tables()');
  const cell = recordsOf(answer).find(
    (one) => String(one('table_name')).toLowerCase() === table.toLowerCase(),
  );
  return cell && { rows: String(cell('table_row_count')), transaction: String(cell('table_txn')) };
}

/** Waits until no running statement reads the file. Returns false if the wait takes too long. */
export async function isFinished(activity: Activity, path: string): Promise<boolean> {
  for (let poll = 0; poll < MAX_POLLS; poll += 1) {
    await activity.refresh();
    const queries = activity.queries();
    if (queries.state !== 'ready') {
      return false;
    }
    if (!queries.value.some(({ text }) => text.includes(path))) {
      return true;
    }
    await pause();
  }
  return false;
}

/**
 * Returns a sentence about the state of the table. It follows the explanation of why the import
 * ended.
 */
export async function endingOf(
  table: string,
  before: TableState | undefined,
  reach: Reach,
): Promise<string> {
  try {
    let after = await stateOf(table);
    // The server may still be writing.
    for (let poll = 1; reach === 'whole' && poll < MAX_POLLS && isSame(before, after); poll += 1) {
      await pause();
      after = await stateOf(table);
    }
    return endingText(table, before, after, reach);
  } catch {
    return endingText(table, before, before, reach);
  }
}

export function endingText(
  table: string,
  before: TableState | undefined,
  after: TableState | undefined,
  reach: Reach,
): string {
  if (!isSame(before, after)) {
    return after === undefined
      ? fill(texts.importReport.tableGone, { table })
      : fill(texts.importReport.tableChanged, { table, rows: rowsText(Number(after.rows)) });
  }
  return reach === 'part'
    ? texts.importReport.nothingWasWritten
    : fill(texts.importReport.mayStillBeWritten, { table });
}

function isSame(before: TableState | undefined, after: TableState | undefined): boolean {
  return before?.transaction === after?.transaction;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, POLL_MS));
}
