/**
 * Commits rows that arrive without a statement. Checks the permissions that the planned changes
 * require, then writes all rows in a single commit.
 */
import { DatabaseError } from '../../engine/error.js';
import type {
  RequestedCommit,
  ErrorCode,
  LinesRead,
  PlannedTable,
  RowsReply,
} from '../../engine/types.js';
import type { WriteAuthorizer, WriteTarget } from '../../session/write-authorizer.js';

/** Maximum number of plans per commit. A commit is replanned if other users changed its tables. */
const MAX_PLANS = 100;

/** The engine's error for invalid rows. */
type RefusedRows = Extract<RowsReply, { readonly state: 'refused' }>;

/** Names and errors that are specific to a protocol. */
export interface RowsProtocol {
  /** The protocol's name in the audit log. */
  readonly name: string;
  /** Creates the error that reports invalid rows. */
  readonly refused: (reply: RefusedRows) => Error;
}

export interface CommittedRows {
  readonly rows: number;
  /** The commit's transaction number; 0 if nothing was written. */
  readonly transaction: number;
  readonly tables: readonly string[];
  /** For the line protocol: how much of the message was read. */
  readonly read: LinesRead;
  /** For the columnar protocol: the requested commits, with indices into `tables`. */
  readonly commits: readonly RequestedCommit[];
  /** Whether more commits or results follow. */
  readonly more: boolean;
}

/** Returns a plan at the first call, and commits the plan at the next call. */
type Finish = () => Promise<RowsReply>;

/** Commits all of an appender's rows, or none. */
export async function commitRows(
  finish: Finish,
  writeAuthorizer: WriteAuthorizer,
  protocol: RowsProtocol,
): Promise<CommittedRows> {
  let reply = await finish();
  let targets: WriteTarget[] = [];
  let read: LinesRead = { bytes: 0, lines: 0 };
  let commits: readonly RequestedCommit[] = [];
  for (let plans = 0; reply.state === 'planned' && plans < MAX_PLANS; plans += 1) {
    read = reply.read ?? read;
    commits = reply.commits ?? [];
    targets = reply.tables.map(targetOf);
    writeAuthorizer.authorise(...targets);
    reply = await writeAuthorizer.commitAll(targets, finish);
    if (reply.state === 'committed') {
      recordChanges(targets, writeAuthorizer, protocol);
    }
  }
  switch (reply.state) {
    case 'committed':
      return {
        rows: reply.rows,
        transaction: reply.transaction ?? 0,
        tables: targets.map(({ table }) => table),
        read,
        commits: reply.commits ?? commits,
        more: reply.more,
      };
    case 'refused':
      // The reason may reveal details of a table, so only users who may write to the table receive
      // it.
      if (reply.table !== undefined) {
        writeAuthorizer.authorise({
          table: reply.table,
          creates: !reply.exists,
          overwrites: false,
        });
      }
      throw protocol.refused(reply);
    case 'failed':
      throw new DatabaseError({ code: reply.code as ErrorCode, message: reply.reason });
    case 'planned':
      throw new DatabaseError({
        code: 'Busy',
        message: 'the schema changed concurrently too often: send the rows again',
        retryable: true,
      });
  }
}

function targetOf({ table, creates, adds }: PlannedTable): WriteTarget {
  return { table, creates, overwrites: false, adds };
}

/** Records the commit in the audit log like other writes, with one line per catalog change. */
function recordChanges(
  targets: readonly WriteTarget[],
  writeAuthorizer: WriteAuthorizer,
  { name }: RowsProtocol,
): void {
  for (const { table, creates, adds = [] } of targets) {
    if (creates) {
      writeAuthorizer.committed(`${name}: table '${table}'`, 'CREATE TABLE');
    } else if (adds.length > 0) {
      writeAuthorizer.committed(
        `${name}: columns of '${table}': ${adds.join(', ')}`,
        'ALTER TABLE',
      );
    }
  }
}
