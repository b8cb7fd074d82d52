/**
 * The stored query log: SQL text, times and outcome of each run, and the plan if the user requested
 * it.
 */
import { loadAll, remove, saveDated } from './store.js';
import type { Dated } from '../api/workspace.js';
import type { Run } from './run.js';

export interface LogEntry {
  readonly run: Run;
  readonly at: Date;
  readonly tab: string;
  /** Lines of the query plan, estimated or measured. */
  readonly plan?: readonly string[];
}

type StoredEntry = Dated & LogEntry;

const PREFIX = 'log/';
export const LOG_ENTRIES = 500;
/** Maximum length of a stored statement. Longer statements remain only in this page's log. */
const MAX_STATEMENT_LENGTH = 64 * 1024;
/** Matches statements that may contain a secret. Such statements are never stored. */
const SECRET = /\b(?:password|token|secret)\b/i;

/** True if a statement may be stored. */
export function mayBeStored(text: string): boolean {
  return text.length <= MAX_STATEMENT_LENGTH && !SECRET.test(text);
}

/** Loads the stored entries, newest first, and removes the oldest entries above `LOG_ENTRIES`. */
export async function storedLog(): Promise<readonly LogEntry[]> {
  const found = [...(await loadAll<StoredEntry>(PREFIX))].sort(
    ([, left], [, right]) => right.changed - left.changed,
  );
  void remove(found.slice(LOG_ENTRIES).map(([key]) => key));
  return found.slice(0, LOG_ENTRIES).map(([, { run, at, tab, plan }]) => ({
    run,
    // On the server, the time is stored as a string.
    at: new Date(at),
    tab,
    ...(plan ? { plan } : {}),
  }));
}

export function storeEntry({ run, at, tab, plan }: LogEntry): void {
  const { text } = run.statement;
  if (!mayBeStored(text)) {
    return;
  }
  const key = `${PREFIX}${at.getTime()}-${run.id}`;
  const stored: StoredEntry = {
    changed: at.getTime(),
    at,
    tab,
    run: { ...run, statement: { text, start: 0 } },
    ...(plan ? { plan: [...plan] } : {}),
  };
  void saveDated(new Map([[key, stored]]));
}

export async function forgetLog(): Promise<void> {
  await remove([...(await loadAll<StoredEntry>(PREFIX)).keys()]);
}
