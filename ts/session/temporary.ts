/** Temporary tables: which statement makes one. */
import { DatabaseError } from '../engine/error.js';
import type { Tree } from '../sql/index.js';

/** A table that goes with its session. */
export interface TemporaryTable {
  readonly name: string;
  /** ON COMMIT DROP: it goes with its block. */
  readonly endsWithBlock: boolean;
}

/** The temporary table that a statement makes, or null. */
export function temporaryTable({ nodes, root }: Tree): TemporaryTable | null {
  const node = nodes[root];
  if (node?.kind !== 'CreateTable') {
    return null;
  }
  const word = node.options.find(({ name }) => /^temp(?:orary)?$/i.test(name.text));
  return word === undefined
    ? null
    : { name: node.name.text, endsWithBlock: word.value?.text.toUpperCase() === 'DROP' };
}

/** Throws where no connection lasts that could drop the table. */
export function refuseTemporary(table: TemporaryTable | null): void {
  if (table !== null) {
    const message = 'temporary tables need a connection of the PostgreSQL wire protocol';
    throw new DatabaseError({ code: 'NotSupported', message, start: 0, end: 0 });
  }
}
