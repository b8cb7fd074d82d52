/** Decides which statements a read-only transaction refuses. */
import type { StatementDescription } from '../../session/index.js';
import { ProtocolError } from '../protocol/protocol-error.js';

interface ReadStatement {
  readonly description: StatementDescription;
  readonly locking: string | null;
}

/**
 * Commands of kind `ddl` that change neither rows nor definitions. A command that is not listed is
 * refused.
 */
const READ_ONLY_COMMANDS: ReadonlySet<string> = new Set([
  'ASSUME SERVICE ACCOUNT',
  'CHECK',
  'EXIT SERVICE ACCOUNT',
]);

/** Whether a command of kind `ddl` changes neither rows nor definitions. */
export function changesNothing(command: string): boolean {
  return READ_ONLY_COMMANDS.has(command);
}

/** Throws if the statement writes or locks rows. */
export function refuseWrite({ description, locking }: ReadStatement): void {
  refuseCommand(description.kind, locking ?? description.command, locking !== null);
}

/** Throws if a command of this kind writes. */
export function refuseCommand(
  kind: StatementDescription['kind'],
  command: string,
  isLocking = false,
): void {
  const isChange = kind === 'insert' || kind === 'update' || kind === 'ddl';
  const isWrite = isChange || isLocking || command === 'COMMENT';
  if (isWrite && !changesNothing(command)) {
    const written = command === 'TRUNCATE' ? 'TRUNCATE TABLE' : command;
    throw new ProtocolError('25006', `cannot execute ${written} in a read-only transaction`);
  }
}
