/** What has been run, kept in the browser: text, times, outcome, and the plan if asked for. */
import { loadAll, remove, saveDated } from './store.js';
import type { Dated } from '../api/workspace.js';
import type { Run } from './run.js';

export interface LogEntry {
  readonly run: Run;
  readonly at: Date;
  readonly tab: string;
  /** How the server would run it, or ran it, line by line. */
  readonly plan?: readonly string[];
}

type Kept = Dated & LogEntry;

const PREFIX = 'log/';
export const LOG_ENTRIES = 500;
/** Longer statements are in the log of this page alone. */
const LONGEST = 64 * 1024;
/** A statement with one of these words may have a secret in it: it is kept nowhere. */
const SECRET = /\b(?:password|token|secret)\b/i;

/** Whether a statement may be written down. */
export function mayBeKept(text: string): boolean {
  return text.length <= LONGEST && !SECRET.test(text);
}

/** Entries of earlier pages, the newest first; what is too old is forgotten. */
export async function keptLog(): Promise<readonly LogEntry[]> {
  const found = [...(await loadAll<Kept>(PREFIX))].sort(
    ([, left], [, right]) => right.changed - left.changed,
  );
  void remove(found.slice(LOG_ENTRIES).map(([key]) => key));
  return found.slice(0, LOG_ENTRIES).map(([, { run, at, tab, plan }]) => ({
    run,
    // The server has it as text.
    at: new Date(at),
    tab,
    ...(plan ? { plan } : {}),
  }));
}

export function keepEntry({ run, at, tab, plan }: LogEntry): void {
  const { text } = run.statement;
  if (!mayBeKept(text)) {
    return;
  }
  const key = `${PREFIX}${at.getTime()}-${run.id}`;
  const kept: Kept = {
    changed: at.getTime(),
    at,
    tab,
    run: { ...run, statement: { text, start: 0 } },
    ...(plan ? { plan: [...plan] } : {}),
  };
  void saveDated(new Map([[key, kept]]));
}

export async function forgetLog(): Promise<void> {
  await remove([...(await loadAll<Kept>(PREFIX)).keys()]);
}
