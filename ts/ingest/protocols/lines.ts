/** Ingestion of lines: reads bytes, and writes one commit for all tables. */
import type { LineOptions, RowsAppender } from '../../engine/types.js';
import type { WriteAuthorizer } from '../../session/write-authorizer.js';
import { commitRows, type CommittedRows, type RowsProtocol } from './commit-rows.js';

/** The database API for lines. */
export interface LineDatabase {
  openLines(options: LineOptions): Promise<RowsAppender>;
}

interface WrongLine {
  /** Line number, counted from 1. */
  readonly line: number;
  /** Offset of the line in the message, in bytes. */
  readonly at: number;
  readonly reason: string;
  /** Whether the error is that the lines exceed the size limit; they are otherwise valid. */
  readonly isTooLarge: boolean;
}

/** Reports an invalid line. Nothing from its message was written. */
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

/**
 * Writes the rows of one message, or no rows if one of them is invalid. Returns the number of rows.
 */
export async function writeLines(
  database: LineDatabase,
  options: LineOptions,
  content: AsyncIterable<Buffer>,
  writeAuthorizer: WriteAuthorizer,
): Promise<number> {
  const appender = await database.openLines(options);
  try {
    for await (const chunk of content) {
      const { ended } = await appender.transfer(chunk);
      if (ended === true) {
        break;
      }
    }
    return (await commitLines(appender, writeAuthorizer)).rows;
  } catch (error) {
    await appender.abort();
    throw error;
  }
}

/** Commits an appender's rows. */
export async function commitLines(
  appender: RowsAppender,
  writeAuthorizer: WriteAuthorizer,
): Promise<CommittedRows> {
  return await commitRows(() => appender.finish(), writeAuthorizer, LINES);
}
