/** The path of messages of the columnar protocol: as many as are to be one commit, then that. */
import type { ColumnOptions, RowsAppender } from '../../engine/types.js';
import type { WriteDoor } from '../../session/write-door.js';
import { type CommittedRows, commitRows, type RowsProtocol } from './commit-rows.js';

/** What the messages need of the database. */
interface ColumnDatabase {
  openColumns(options: ColumnOptions): Promise<RowsAppender>;
}

/** A message that is wrong: nothing of it was written, and nothing after it is. */
export class MessageError extends Error {
  override readonly name = 'MessageError';
  /** As the protocol classes it. */
  readonly status: number;

  constructor(status: number, reason: string) {
    super(reason);
    this.status = status;
  }
}

const COLUMNS: RowsProtocol = {
  name: 'columnar protocol',
  refused: ({ status = 0, reason }) => new MessageError(status, reason),
};

/** What a message came to. */
interface TakenMessage {
  /** What was committed; null while rows wait, this message's among them. */
  readonly commit: CommittedRows | null;
  /** Whether it was committed though the client wanted to wait: too much was waiting. */
  readonly isForced: boolean;
}

/** The messages of one connection, in their order. */
export class ColumnFlow {
  readonly #appender: RowsAppender;
  readonly #door: WriteDoor;

  private constructor(appender: RowsAppender, door: WriteDoor) {
    this.#appender = appender;
    this.#door = door;
  }

  static async open(
    database: ColumnDatabase,
    options: ColumnOptions,
    door: WriteDoor,
  ): Promise<ColumnFlow> {
    return new ColumnFlow(await database.openColumns(options), door);
  }

  /** Takes a message; `defers`: its rows wait for a later one. After an error there is no later. */
  async take(message: Buffer, defers: boolean): Promise<TakenMessage> {
    const { rows, ended, full } = await this.#appender.write(message);
    const isForced = defers && full === true;
    if (defers && !isForced && ended !== true && rows > 0) {
      return { commit: null, isForced };
    }
    return { commit: await commitRows(this.#appender, this.#door, COLUMNS), isForced };
  }

  /** Forgets the rows that wait. */
  async close(): Promise<void> {
    await this.#appender.abort();
  }
}
