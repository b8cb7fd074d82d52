/**
 * The path of messages of the columnar protocol. They are read while those before them are
 * committed; commits that are asked for meanwhile become one transaction.
 */
import { DatabaseError } from '../../engine/error.js';
import type {
  AskedCommit,
  ColumnOptions,
  ColumnsAppender,
  MessagesProgress,
  RowsReply,
} from '../../engine/types.js';
import type { WebSocketReader } from '../../engine/websocket.js';
import type { WriteDoor } from '../../session/write-door.js';
import { type CommittedRows, commitRows, type RowsProtocol } from './commit-rows.js';

/** What the messages need of the database. */
interface ColumnDatabase {
  openColumns(options: ColumnOptions): Promise<ColumnsAppender>;
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

/** Who sends messages, as far as they are answered. */
export interface ColumnSender {
  /** Called in the order of the messages. */
  committed(commit: CommittedRows): Promise<void>;
  /** Nothing more is committed; `message`: the one that failed, from 0. */
  failed(error: unknown, message: number): Promise<void>;
}

/** The messages of one connection, in their order. */
export class ColumnFlow {
  readonly #appender: ColumnsAppender;
  readonly #door: WriteDoor;
  readonly #sender: ColumnSender;
  /** Runs as long as there is something to commit. */
  #commits: Promise<void> | null = null;
  #hasMore = false;
  #hasFailed = false;
  /** Messages that are read. */
  #read = 0;
  /** Messages that are answered. */
  #answered = 0;
  /** The message that asked for the commit at hand, from 1. */
  #last = 0;
  /** What the plan at hand would commit, as long as it is one. */
  #planned: readonly AskedCommit[] = [];

  private constructor(appender: ColumnsAppender, door: WriteDoor, sender: ColumnSender) {
    this.#appender = appender;
    this.#door = door;
    this.#sender = sender;
  }

  static async open(
    database: ColumnDatabase,
    options: ColumnOptions,
    door: WriteDoor,
    sender: ColumnSender,
  ): Promise<ColumnFlow> {
    return new ColumnFlow(await database.openColumns(options), door, sender);
  }

  /** Reads messages that wait; resolves when more may be read: null where nothing may. */
  async take(messages: WebSocketReader): Promise<MessagesProgress | null> {
    let progress;
    try {
      progress = await this.#appender.read(messages);
    } catch (error) {
      await this.#commits;
      await this.#fail(error, this.#read);
      return null;
    }
    this.#read = progress.messages;
    if (progress.whole || progress.ended) {
      this.#hasMore = true;
      this.#commits ??= this.#commitAll();
    }
    if (progress.full || progress.ended) {
      await this.#commits;
    }
    return this.#hasFailed ? null : progress;
  }

  /** Takes no more messages: the next one is answered with this error. */
  async refuse(error: Error): Promise<void> {
    await this.#commits;
    await this.#fail(error, this.#read);
  }

  /** Finishes what was asked for, and forgets the rows that wait. */
  async close(): Promise<void> {
    await this.#commits;
    await this.#appender.abort();
  }

  async #commitAll(): Promise<void> {
    try {
      while (this.#hasMore && !this.#hasFailed) {
        this.#hasMore = false;
        const commit = await this.#commitNext();
        this.#hasMore ||= commit.more;
        this.#answered += messagesOf(commit.commits);
        if (commit.commits.length > 0) {
          await this.#sender.committed(commit);
        }
      }
    } catch (error) {
      await this.#fail(error, this.#last - 1);
    } finally {
      this.#commits = null;
    }
  }

  async #fail(error: unknown, message: number): Promise<void> {
    if (!this.#hasFailed) {
      this.#hasFailed = true;
      await this.#sender.failed(error, message);
    }
  }

  async #commitNext(): Promise<CommittedRows> {
    try {
      return await this.#commit(false);
    } catch (error) {
      const isDenied = error instanceof DatabaseError && error.code === 'AccessDenied';
      if (!isDenied || this.#planned.length < 2) {
        throw error;
      }
      // The rights of one of them: those before it are committed.
      return await this.#commit(true);
    }
  }

  /** `split`: no more than the first of what was planned. */
  async #commit(split: boolean): Promise<CommittedRows> {
    let splits = split;
    const finish = async (): Promise<RowsReply> => {
      this.#planned = [];
      const reply = await this.#appender.finish(splits);
      splits = false;
      this.#note(reply);
      return reply;
    };
    return await commitRows(finish, this.#door, COLUMNS);
  }

  #note(reply: RowsReply): void {
    if (reply.state === 'planned') {
      this.#planned = reply.commits ?? [];
      this.#last = this.#answered + messagesOf(this.#planned.slice(0, 1));
    } else if (reply.state !== 'committed') {
      this.#last = reply.line;
    }
  }
}

function messagesOf(commits: readonly AskedCommit[]): number {
  return commits.reduce((sum, { messages }) => sum + messages, 0);
}
