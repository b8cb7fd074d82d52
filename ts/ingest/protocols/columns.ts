/**
 * Ingestion over the columnar protocol. Messages are read while earlier ones are being committed.
 * Commits that are requested in the meantime are combined into one transaction.
 */
import { DatabaseError } from '../../engine/error.js';
import type {
  RequestedCommit,
  ColumnOptions,
  ColumnsAppender,
  MessagesProgress,
  RowsReply,
} from '../../engine/types.js';
import type { WebSocketReader } from '../../engine/websocket.js';
import type { WriteAuthorizer } from '../../session/write-authorizer.js';
import { type CommittedRows, commitRows, type RowsProtocol } from './commit-rows.js';

/** The database API for columnar messages. */
interface ColumnDatabase {
  openColumns(options: ColumnOptions): Promise<ColumnsAppender>;
}

/** Reports an invalid message. Neither this message nor any later one was written. */
export class MessageError extends Error {
  override readonly name = 'MessageError';
  /** Status code in the protocol. */
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

/** Sends the results to a client. */
export interface ColumnSender {
  /** Called for each commit, in message order. */
  committed(commit: CommittedRows): Promise<void>;
  /**
   * Called when a message has failed; no further commits follow. `message` is the message's number,
   * counted from 0.
   */
  failed(error: unknown, message: number): Promise<void>;
}

/** Processes the messages of one connection in order. */
export class ColumnFlow {
  readonly #appender: ColumnsAppender;
  readonly #writeAuthorizer: WriteAuthorizer;
  readonly #sender: ColumnSender;
  /** Resolves when no requested commit is left; `null` if no commit is running. */
  #commits: Promise<void> | null = null;
  #hasMore = false;
  #hasFailed = false;
  /** Number of messages read. */
  #read = 0;
  /** Number of answered messages. */
  #answered = 0;
  /** Number of the last message whose commit was requested, counted from 1. */
  #last = 0;
  /** Commits in the current plan; empty if there is no plan. */
  #planned: readonly RequestedCommit[] = [];

  private constructor(
    appender: ColumnsAppender,
    writeAuthorizer: WriteAuthorizer,
    sender: ColumnSender,
  ) {
    this.#appender = appender;
    this.#writeAuthorizer = writeAuthorizer;
    this.#sender = sender;
  }

  static async open(
    database: ColumnDatabase,
    options: ColumnOptions,
    writeAuthorizer: WriteAuthorizer,
    sender: ColumnSender,
  ): Promise<ColumnFlow> {
    return new ColumnFlow(await database.openColumns(options), writeAuthorizer, sender);
  }

  /**
   * Reads the buffered messages. Resolves when more messages may be read, or to `null` if the
   * connection must stop reading.
   */
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
    if (progress.commitPending || progress.ended) {
      this.#hasMore = true;
      this.#commits ??= this.#commitAll();
    }
    if (progress.full || progress.ended) {
      await this.#commits;
    }
    return this.#hasFailed ? null : progress;
  }

  /** Refuses further messages. The next message is answered with this error. */
  async refuse(error: Error): Promise<void> {
    await this.#commits;
    await this.#fail(error, this.#read);
  }

  /** Completes all requested commits, and discards uncommitted rows. */
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
      // If access to one of the commits is denied, the commits before it are still written.
      return await this.#commit(true);
    }
  }

  /** Commits the planned commits; with `split`, only the first one. */
  async #commit(split: boolean): Promise<CommittedRows> {
    let splits = split;
    const finish = async (): Promise<RowsReply> => {
      this.#planned = [];
      const reply = await this.#appender.finish(splits);
      splits = false;
      this.#note(reply);
      return reply;
    };
    return await commitRows(finish, this.#writeAuthorizer, COLUMNS);
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

function messagesOf(commits: readonly RequestedCommit[]): number {
  return commits.reduce((sum, { messages }) => sum + messages, 0);
}
