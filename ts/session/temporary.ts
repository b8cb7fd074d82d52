/** Recognises statements that create temporary tables and views. */
import { DatabaseError } from '../engine/error.js';
import type { Tree } from '../sql/index.js';

/** A table or view that is dropped at the end of its session. */
export interface TemporaryTable {
  readonly name: string;
  readonly isView: boolean;
  /** Whether the object is dropped at the end of its block (ON COMMIT DROP). */
  readonly endsWithBlock: boolean;
}

/** The temporary table or view that a statement creates, if any. */
export function temporaryTable({ nodes, root }: Tree): TemporaryTable | null {
  const node = nodes[root];
  if (node?.kind !== 'CreateTable' && node?.kind !== 'CreateView') {
    return null;
  }
  const word = node.options.find(({ name }) => /^temp(?:orary)?$/i.test(name.text));
  if (word === undefined) {
    return null;
  }
  const endsWithBlock = word.value?.text.toUpperCase() === 'DROP';
  return { name: node.name.text, isView: node.kind === 'CreateView', endsWithBlock };
}

/**
 * Throws for a temporary table or view, because no persistent connection exists that could drop it.
 */
export function refuseTemporary(table: TemporaryTable | null): void {
  if (table !== null) {
    const what = table.isView ? 'views' : 'tables';
    const message = `temporary ${what} require a PostgreSQL wire protocol connection`;
    throw new DatabaseError({ code: 'NotSupported', message, start: 0, end: 0 });
  }
}
