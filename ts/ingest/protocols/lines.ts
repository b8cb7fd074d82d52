/** The path of lines: bytes in, one commit of all tables. */
import type { LineOptions, RowsAppender } from '../../engine/types.js';
import type { WriteDoor } from '../../session/write-door.js';
import { commitRows, type CommittedRows, type RowsProtocol } from './commit-rows.js';

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

const LINES: RowsProtocol = {
  name: 'line protocol',
  refused: (reply) => new LineError(reply),
};

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
      const { ended } = await appender.give(chunk);
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

/** Commits what an appender received. */
export async function commitLines(appender: RowsAppender, door: WriteDoor): Promise<CommittedRows> {
  return await commitRows(() => appender.finish(), door, LINES);
}
