/** The path of lines: bytes in, rights judged by what they came to, one commit of all tables. */
import { DatabaseError } from '../engine/error.js';
import type { LineOptions, LinesRead, PlannedTable, RowsAppender } from '../engine/types.js';
import type { WriteDoor, WriteTarget } from '../session/write-door.js';

/** How often a commit is planned anew while others change its tables. */
const MOST_PLANS = 100;

/** What lines need of the database. */
export interface LineDatabase {
  openLines(options: LineOptions): Promise<RowsAppender>;
}

interface WrongLine {
  /** From 1. */
  readonly line: number;
  /** Bytes of the message before it. */
  readonly at: number;
  readonly reason: string;
  /** Whether no line is wrong, but all of them are too many. */
  readonly isTooLarge: boolean;
}

/** A line that is wrong: nothing of its message was written. */
export class LineError extends Error implements Omit<WrongLine, 'reason'> {
  override readonly name = 'LineError';
  readonly line: number;
  readonly at: number;
  readonly isTooLarge: boolean;

  constructor({ line, at, reason, isTooLarge }: WrongLine) {
    super(reason);
    this.line = line;
    this.at = at;
    this.isTooLarge = isTooLarge;
  }
}

/** Rows that are written, and the lines of the message that are read. */
interface LinesWritten {
  readonly rows: number;
  readonly read: LinesRead;
}

/** Writes the rows of one message, all of them or none; answers how many. */
export async function writeLines(
  database: LineDatabase,
  options: LineOptions,
  content: AsyncIterable<Buffer>,
  door: WriteDoor,
): Promise<number> {
  const appender = await database.openLines(options);
  try {
    for await (const chunk of content) {
      const { ended } = await appender.write(chunk);
      if (ended === true) {
        break;
      }
    }
    return (await commitLines(appender, door)).rows;
  } catch (error) {
    await appender.abort();
    throw error;
  }
}

function targetOf({ table, creates, adds }: PlannedTable): WriteTarget {
  return { table, creates, overwrites: false, adds };
}

/** Commits what an appender received. */
export async function commitLines(appender: RowsAppender, door: WriteDoor): Promise<LinesWritten> {
  let reply = await appender.finish();
  let read: LinesRead = { bytes: 0, lines: 0 };
  for (let plans = 0; reply.state === 'planned' && plans < MOST_PLANS; plans += 1) {
    read = reply.read ?? read;
    const targets = reply.tables.map(targetOf);
    door.authorise(...targets);
    reply = await door.commitAll(targets, () => appender.finish());
    if (reply.state === 'committed') {
      recordChanges(targets, door);
    }
  }
  switch (reply.state) {
    case 'committed':
      return { rows: reply.rows, read };
    case 'refused':
      // What the reason tells of a table is for those who may write it.
      if (reply.table !== undefined) {
        door.authorise({ table: reply.table, creates: !reply.exists, overwrites: false });
      }
      throw new LineError(reply);
    case 'planned':
      throw new DatabaseError({
        code: 'Busy',
        message: 'the tables were changed again and again: send the lines again',
        retryable: true,
      });
  }
}

/** The audit log tells of rows as of other writes: what changed the catalog has its line. */
function recordChanges(targets: readonly WriteTarget[], door: WriteDoor): void {
  for (const { table, creates, adds = [] } of targets) {
    if (creates) {
      door.committed(`line protocol: table '${table}'`, 'CREATE TABLE');
    } else if (adds.length > 0) {
      door.committed(`line protocol: columns of '${table}': ${adds.join(', ')}`, 'ALTER TABLE');
    }
  }
}
