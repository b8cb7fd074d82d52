/** The path of lines: bytes in, one commit of all tables. */
import type { LineOptions, RowsAppender } from '../engine/types.js';
import type { WriteDoor } from '../session/write-door.js';
import { commitRows, type RowsProtocol } from './commit-rows.js';

/** What lines need of the database. */
interface LineDatabase {
  openLines(options: LineOptions): Promise<RowsAppender>;
}

/** A line that is wrong: nothing of its message was written. */
export class LineError extends Error {
  override readonly name = 'LineError';
  /** From 1. */
  readonly line: number;
  /** Whether no line is wrong, but all of them are too many. */
  readonly isTooLarge: boolean;

  constructor(line: number, reason: string, isTooLarge: boolean) {
    super(reason);
    this.line = line;
    this.isTooLarge = isTooLarge;
  }
}

const LINES: RowsProtocol = {
  name: 'line protocol',
  refused: ({ line, reason, isTooLarge }) => new LineError(line, reason, isTooLarge),
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
      const { ended } = await appender.write(chunk);
      if (ended === true) {
        break;
      }
    }
    const { rows } = await commitRows(appender, door, LINES);
    return rows;
  } catch (error) {
    await appender.abort();
    throw error;
  }
}
