/**
 * The end of rows that came without a statement: rights judged by what they came to, one commit.
 */
import { DatabaseError } from '../../engine/error.js';
import type {
  AskedCommit,
  ErrorCode,
  LinesRead,
  PlannedTable,
  RowsReply,
} from '../../engine/types.js';
import type { WriteDoor, WriteTarget } from '../../session/write-door.js';

/** How often a commit is planned anew while others change its tables. */
const MAX_PLANS = 100;

/** What is wrong with rows, as the engine tells it. */
type RefusedRows = Extract<RowsReply, { readonly state: 'refused' }>;

/** How a protocol calls things. */
export interface RowsProtocol {
  /** In the audit log. */
  readonly name: string;
  /** What is thrown where rows are wrong. */
  readonly refused: (reply: RefusedRows) => Error;
}

export interface CommittedRows {
  readonly rows: number;
  /** 0 where there was nothing to write. */
  readonly transaction: number;
  readonly tables: readonly string[];
  /** Of lines: what of the message is read. */
  readonly read: LinesRead;
  /** Of the columnar protocol: what was asked for, by its tables' places in `tables`. */
  readonly commits: readonly AskedCommit[];
  /** Whether there is more to commit, or to tell. */
  readonly more: boolean;
}

/** What tells a plan, and commits it when it is asked again. */
type Finish = () => Promise<RowsReply>;

/** Commits all rows that an appender holds, or none. */
export async function commitRows(
  finish: Finish,
  door: WriteDoor,
  protocol: RowsProtocol,
): Promise<CommittedRows> {
  let reply = await finish();
  let targets: WriteTarget[] = [];
  let read: LinesRead = { bytes: 0, lines: 0 };
  let commits: readonly AskedCommit[] = [];
  for (let plans = 0; reply.state === 'planned' && plans < MAX_PLANS; plans += 1) {
    read = reply.read ?? read;
    commits = reply.commits ?? [];
    targets = reply.tables.map(targetOf);
    door.authorise(...targets);
    reply = await door.commitAll(targets, finish);
    if (reply.state === 'committed') {
      recordChanges(targets, door, protocol);
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
      // What the reason tells of a table is for those who may write it.
      if (reply.table !== undefined) {
        door.authorise({ table: reply.table, creates: !reply.exists, overwrites: false });
      }
      throw protocol.refused(reply);
    case 'failed':
      throw new DatabaseError({ code: reply.code as ErrorCode, message: reply.reason });
    case 'planned':
      throw new DatabaseError({
        code: 'Busy',
        message: 'the tables were changed again and again: send the rows again',
        retryable: true,
      });
  }
}

function targetOf({ table, creates, adds }: PlannedTable): WriteTarget {
  return { table, creates, overwrites: false, adds };
}

/** The audit log tells of rows as of other writes: what changed the catalog has its line. */
function recordChanges(
  targets: readonly WriteTarget[],
  door: WriteDoor,
  { name }: RowsProtocol,
): void {
  for (const { table, creates, adds = [] } of targets) {
    if (creates) {
      door.committed(`${name}: table '${table}'`, 'CREATE TABLE');
    } else if (adds.length > 0) {
      door.committed(`${name}: columns of '${table}': ${adds.join(', ')}`, 'ALTER TABLE');
    }
  }
}
