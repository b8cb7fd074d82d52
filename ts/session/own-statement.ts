/**
 * A statement that the server executes itself. Preparing the statement parses it; executing it
 * performs its action.
 */
import { DatabaseError } from '../engine/error.js';
import type {
  Access,
  BatchReply,
  CopyAppender,
  ExecuteOptions,
  ExecuteReply,
  Parameters,
  Statement,
  StatementDescription,
} from '../engine/types.js';

/** The statement's action, which returns the values of its single row. */
export interface OwnAction {
  readonly accesses: readonly Access[];
  readonly notice?: string;
  /** Column names; empty if the statement returns no rows. */
  readonly columns: readonly string[];
  run(): Promise<readonly string[]>;
}

const NO_ROWS: ExecuteReply = {
  chunk: null,
  summary: { rowsReturned: 0, rowsTotal: 0, rowsAffected: 0, executeNanos: 0 },
  stream: null,
};

export class OwnStatement implements Statement {
  readonly description: StatementDescription;
  readonly #action: OwnAction;
  /** A query that returns the action's row, so that the engine encodes the row for the client. */
  readonly #answer: Statement | null;

  private constructor(command: string, action: OwnAction, answer: Statement | null) {
    const { accesses, notice } = action;
    this.#action = action;
    this.#answer = answer;
    this.description = {
      kind: 'ddl',
      command,
      columns: answer?.description.columns ?? [],
      timestamp: -1,
      parameters: [],
      accesses,
      ...(notice === undefined ? {} : { notice }),
    };
  }

  /** `prepare` binds the query that returns the row. */
  static async of(
    command: string,
    action: OwnAction,
    prepare: (sql: string) => Promise<Statement>,
  ): Promise<OwnStatement> {
    const placeholders = action.columns.map((name, at) => `CAST($${at + 1} AS STRING) ${name}`);
    const answer =
      placeholders.length === 0 ? null : await prepare(`SELECT ${placeholders.join(', ')}`);
    return new OwnStatement(command, action, answer);
  }

  async execute(_parameters: Parameters, options: ExecuteOptions): Promise<ExecuteReply> {
    const row = await this.#action.run();
    return this.#answer === null ? NO_ROWS : await this.#answer.execute(row, options);
  }

  executeBatch(): Promise<BatchReply> {
    const message = `${this.description.command} cannot run with multiple parameter rows`;
    return Promise.reject(new DatabaseError({ code: 'NotSupported', message }));
  }

  openCopy(): Promise<CopyAppender> {
    const message = `${this.description.command} does not accept COPY data`;
    return Promise.reject(new DatabaseError({ code: 'NotSupported', message }));
  }

  isCurrent(): boolean {
    return false;
  }

  close(): void {
    this.#answer?.close();
  }
}
