/**
 * One statement's path: parse → prepare → authorise → execute. Every protocol goes this way.
 *
 * A session is one client's setting (user, read-only or not). It knows nothing of HTTP or of
 * the wire protocol; it holds no socket.
 */
import { DatabaseError } from '../engine/error.js';
import type {
  Access,
  Database,
  ExecuteOptions,
  ExecuteReply,
  ParameterValues,
  Statement,
  StatementContext,
  StatementDescription,
  Summary,
  Transaction,
} from '../engine/types.js';
import { asDatabaseError } from './error.js';
import { Executions } from './executions.js';
import {
  operationAnswer,
  type OperationName,
  operationName,
  type Operations,
} from './operations.js';
import { type Parse, StatementCache } from './statement-cache.js';

/** UTF-16 units of one statement. */
const LONGEST_STATEMENT = 16 * 1024 * 1024;
const CANCEL_RETRY_MS = 50;

export interface Principal {
  readonly name: string;
  readonly readOnly: boolean;
}

/** Throws `AccessDenied` when `principal` lacks a right; asked before every execution. */
export type Authorise = (principal: Principal, accesses: readonly Access[]) => void;

/** Parameter types the client declared, `null` where it left them open. */
export type ParameterTypes = readonly (string | null)[];

/** Statements that the server runs and the engine does not: COPY. */
export interface OwnStatements {
  owns(tree: object): boolean;
  /** Rejects with a `DatabaseError`. */
  prepare(tree: object, context: StatementContext): Promise<Statement>;
}

export interface SessionHostOptions {
  readonly database: Database;
  readonly parse: Parse;
  readonly own?: OwnStatements;
  readonly authorise?: Authorise;
  /** Absent where there is no server around the database. */
  readonly operations?: Operations;
  /** Time of a statement whose client names none. */
  readonly defaultTimeoutMs?: number;
  /** What a client may ask for at the most. */
  readonly maxTimeoutMs?: number;
}

/** What all sessions of a server share. */
export class SessionHost {
  readonly database: Database;
  readonly statements: StatementCache;
  readonly own: OwnStatements | undefined;
  readonly authorise: Authorise;
  readonly executions: Executions;
  readonly operations: Operations | null;
  readonly #defaultTimeoutMs: number;
  readonly #maxTimeoutMs: number;

  constructor(options: SessionHostOptions) {
    this.database = options.database;
    this.own = options.own;
    this.statements = new StatementCache(options.parse, (tree) => options.own?.owns(tree) === true);
    this.authorise = options.authorise ?? ((): void => undefined);
    this.executions = new Executions(options.database);
    this.operations = options.operations ?? null;
    this.#defaultTimeoutMs = options.defaultTimeoutMs ?? 60_000;
    this.#maxTimeoutMs = options.maxTimeoutMs ?? 3_600_000;
  }

  open(principal: Principal): Session {
    return new Session(this, principal);
  }

  timeoutMs(asked: number | undefined): number {
    return Math.min(asked ?? this.#defaultTimeoutMs, this.#maxTimeoutMs);
  }
}

export class Session {
  readonly principal: Principal;
  /**
   * The open BEGIN … COMMIT block, set by the protocol that has one. Statements prepared before
   * it follow: they are bound again at their next execution.
   */
  transaction: Transaction | null = null;
  readonly #host: SessionHost;

  constructor(host: SessionHost, principal: Principal) {
    this.#host = host;
    this.principal = principal;
  }

  get database(): Database {
    return this.#host.database;
  }

  /** Parses, binds and authorises `text`; rejects with a `DatabaseError`. */
  async prepare(text: string, parameterTypes?: ParameterTypes): Promise<PreparedStatement> {
    if (text.length > LONGEST_STATEMENT) {
      throw new DatabaseError({
        code: 'StatementTooComplex',
        message: `statement is too long [length=${text.length}, limit=${LONGEST_STATEMENT}]`,
      });
    }
    const nul = text.indexOf('\0');
    if (nul >= 0) {
      // Clients in C would read another statement than the one that runs.
      const message = 'a statement cannot contain a NUL character';
      throw new DatabaseError({ code: 'Syntax', message, start: nul, end: nul + 1 });
    }
    const statement = new PreparedStatement(this.#host, this, text, parameterTypes);
    await statement.bind();
    return statement;
  }
}

export class PreparedStatement {
  readonly text: string;
  readonly #host: SessionHost;
  readonly #session: Session;
  readonly #principal: Principal;
  readonly #context: StatementContext;
  /** The same for statements that may stand for each other; null for those that hardly do. */
  readonly #key: string | null;
  /** What the server itself does at every execution. */
  readonly #operation: OperationName | null;
  /** What is bound: the text, or the query that answers in its place. */
  #boundText: string;
  #statement: Statement | null = null;
  /** Whether others may run `#statement` too. */
  #isShared = false;
  /** The block `#statement` was bound in. */
  #transaction: Transaction | null = null;
  /** Executions without a reply. */
  #waiting = 0;
  readonly #streams: bigint[] = [];

  /** Use `Session.prepare`. */
  constructor(
    host: SessionHost,
    session: Session,
    text: string,
    parameterTypes: ParameterTypes | undefined,
  ) {
    this.#host = host;
    this.#session = session;
    this.#principal = session.principal;
    this.text = text;
    const { name: user, readOnly } = session.principal;
    const base = { user, text, readOnly };
    this.#context = parameterTypes === undefined ? base : { ...base, parameterTypes };
    this.#operation = host.operations === null ? null : operationName(text);
    this.#boundText = this.#operation === null ? text : operationAnswer(this.#operation, false);
    this.#key =
      this.#operation === null ? StatementCache.key(user, readOnly, parameterTypes, text) : null;
  }

  get description(): StatementDescription {
    return this.#bound().description;
  }

  /** Runs once; rights are checked at every execution. */
  async execute(parameters: ParameterValues, options: ExecuteOptions): Promise<ExecuteReply> {
    const timeoutMs = this.#host.timeoutMs(options.timeoutMs);
    const { executions } = this.#host;
    await this.#operate();
    executions.began(this.#principal.name, this.text);
    this.#waiting += 1;
    try {
      const reply = await this.#run((statement) =>
        statement.execute(parameters, { ...options, timeoutMs }),
      );
      if (reply.stream !== null) {
        this.#streams.push(reply.queryId);
        executions.streams(reply.queryId);
      }
      return reply;
    } finally {
      this.#waiting -= 1;
      executions.replied(this.#principal.name, this.text);
    }
  }

  /** Many parameter rows of one INSERT or UPDATE: one crossing, one commit. */
  executeBatch(parameterRows: readonly ParameterValues[]): Promise<Summary> {
    return this.#run((statement) => statement.executeBatch(parameterRows));
  }

  /**
   * Stops an execution that still waits for its first rows; a stream has its own `cancel`. It is
   * tried until it works: the query may not be known yet, or not be told from its twin.
   */
  cancel(): void {
    const isWaiting = this.#waiting > 0;
    if (isWaiting && !this.#host.executions.cancelWaiting(this.#principal.name, this.text)) {
      setTimeout(() => {
        this.cancel();
      }, CANCEL_RETRY_MS).unref();
    }
  }

  close(): void {
    this.#host.executions.closed(this.#streams.splice(0));
    this.#letGo();
  }

  /** Called by `Session.prepare`, and again when the catalog moved. */
  async bind(): Promise<void> {
    const { statements } = this.#host;
    const transaction = this.#session.transaction;
    try {
      const known = transaction === null ? statements.query(this.#key) : undefined;
      const statement = known ?? (await this.#prepare(transaction));
      const isShared =
        known !== undefined || (transaction === null && statements.share(this.#key, statement));
      this.#hold(statement, isShared);
      this.#transaction = transaction;
      this.#host.authorise(this.#principal, this.description.accesses);
    } catch (error) {
      throw asDatabaseError(error);
    }
  }

  /** Does what the statement asks of the server, and binds the query that tells the result. */
  async #operate(): Promise<void> {
    const { operations } = this.#host;
    if (this.#operation === null || operations === null) {
      return;
    }
    if (this.#principal.readOnly) {
      const message = `${this.#operation}() changes the server: this session is read-only`;
      throw new DatabaseError({ code: 'ReadOnly', message });
    }
    const result = await operations[this.#operation]();
    this.#boundText = operationAnswer(this.#operation, result);
    await this.bind();
  }

  #prepare(transaction: Transaction | null): Promise<Statement> {
    const { database, own, statements } = this.#host;
    const parsed = statements.parsed(this.#boundText);
    if (own !== undefined && parsed.own !== null) {
      return own.prepare(parsed.own, this.#context);
    }
    return transaction === null
      ? database.prepare(parsed.tree, this.#context)
      : database.prepare(parsed.tree, this.#context, transaction);
  }

  #hold(statement: Statement, isShared: boolean): void {
    this.#letGo();
    this.#statement = statement;
    this.#isShared = isShared;
  }

  #letGo(): void {
    if (!this.#isShared) {
      this.#statement?.close();
    }
    this.#statement = null;
  }

  #bound(): Statement {
    if (this.#statement === null) {
      throw new DatabaseError({ code: 'Closed', message: 'the prepared statement is closed' });
    }
    return this.#statement;
  }

  async #run<T>(step: (statement: Statement) => Promise<T>): Promise<T> {
    if (this.#transaction !== this.#session.transaction && this.#statement !== null) {
      await this.#rebind();
    }
    this.#host.authorise(this.#principal, this.description.accesses);
    try {
      return await step(this.#bound());
    } catch (error) {
      const failure = asDatabaseError(error);
      if (failure.code !== 'Replan') {
        throw failure;
      }
    }
    await this.#rebind();
    try {
      return await step(this.#bound());
    } catch (error) {
      throw asDatabaseError(error);
    }
  }

  /** The client was told the shape of the rows: a statement that changed it must fail. */
  async #rebind(): Promise<void> {
    const before = shape(this.description);
    this.#host.statements.forget(this.#key);
    await this.bind();
    if (shape(this.description) !== before) {
      throw new DatabaseError({
        code: 'Replan',
        message: 'the tables of this statement changed, prepare it again',
        retryable: true,
      });
    }
  }
}

function shape(description: StatementDescription): string {
  const { kind, columns, parameters, timestamp } = description;
  return JSON.stringify([kind, columns, parameters, timestamp]);
}
