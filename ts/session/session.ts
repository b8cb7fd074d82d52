/**
 * A statement's path in every protocol: parse → prepare → authorise → execute.
 *
 * A session is the context of one client (user, read-only or not). It is independent of HTTP and
 * the wire protocol, and has no socket.
 */
import { DatabaseError } from '../engine/error.js';
import type { LiftedQuery } from '../engine/literals.js';
import type {
  Database,
  HandoffResult,
  Handoff,
  HandoffTerms,
  Statement,
  Transaction,
} from '../engine/types.js';
import { quoteName } from '../sql/printer/print-expression.js';
import { asDatabaseError } from './error.js';
import { Backends } from './backends.js';
import type { ParameterTypes, PrepareOptions } from './binding.js';
import { ChangeFeed } from './change-feed.js';
import { Channels } from './channels.js';
import { FeedSlots } from './feed-slots.js';
import { SequenceValues } from './sequence-values.js';
import { refuseWithoutConnection, type ServerKind } from './dispatch.js';
import type { TextShapeDetector } from './text-shape.js';
import type { Guard, Principal } from './guard.js';
import type { Operations } from './operations.js';
import { isOfText, PreparedStatement } from './prepared-statement.js';
import type { ServerStatements, StatementHost, StatementSession } from './statement-host.js';
import { refuseTemporary } from './temporary.js';
import type { DurationObserver } from './duration-observer.js';
import { ALL_TIME } from './time-bounds.js';
import { type Parse, type ParsedStatement, StatementCache } from './statement-cache.js';

const DEFAULT_FEEDS = 256;
const MICROS = 1e6;

/** Maximum length of a statement, in UTF-16 code units. */
const MAX_STATEMENT_LENGTH = 16 * 1024 * 1024;

interface SessionHostOptions {
  readonly database: Database;
  readonly parse: Parse;
  /**
   * Handlers for server statements. Without a handler, the engine reports that it cannot run the
   * statement.
   */
  readonly server?: Readonly<Partial<Record<ServerKind, ServerStatements>>>;
  /** Absent without access control. */
  readonly guard?: Guard;
  /** Absent if the database is embedded without a server. */
  readonly operations?: Operations;
  /** Detects the schema of text files; absent if no text files can be read. */
  readonly detectTextShape?: TextShapeDetector;
  /** Timeout for statements when the client sets none. */
  readonly defaultTimeoutMs?: number;
  /** Maximum timeout that a client can request. */
  readonly maxTimeoutMs?: number;
  /** Maximum number of concurrent change feeds. */
  readonly maxFeeds?: () => number;
}

/** State that all sessions of a server share. */
export class SessionHost implements StatementHost {
  readonly database: Database;
  readonly statements: StatementCache;
  readonly server: Readonly<Partial<Record<ServerKind, ServerStatements>>>;
  readonly guard: Guard | undefined;
  readonly operations: Operations | null;
  readonly detectTextShape: TextShapeDetector | undefined;
  /** Connections, across all protocols, whose clients know their process id. */
  readonly backends = new Backends();
  readonly feeds: FeedSlots;
  /** Channels for notifications between sessions. */
  readonly channels = new Channels();
  readonly #handoffs = new Set<Handoff>();
  readonly #defaultTimeoutMs: number;
  readonly #maxTimeoutMs: number;
  #isStopping = false;

  constructor(options: SessionHostOptions) {
    this.database = options.database;
    this.server = options.server ?? {};
    this.guard = options.guard;
    this.statements = new StatementCache(options.parse, {
      readsLists: (tree) => options.guard?.readsLists(tree) === true,
      makesView: (tree) => options.guard?.makesView(tree) === true,
      serverAccesses: (tree) => options.guard?.serverAccesses(tree) ?? [],
    });
    this.operations = options.operations ?? null;
    this.detectTextShape = options.detectTextShape;
    this.feeds = new FeedSlots(options.maxFeeds ?? (() => DEFAULT_FEEDS));
    // Revokes handoffs, so that the permissions of their connections are checked again.
    options.guard?.watch(() => {
      this.revokeHandoffs();
    });
    this.#defaultTimeoutMs = options.defaultTimeoutMs ?? 60_000;
    this.#maxTimeoutMs = options.maxTimeoutMs ?? 3_600_000;
  }

  /**
   * `isLasting` states whether the session can run several statements. `seconds` records the
   * durations of its statements.
   */
  open(principal: Principal, isLasting = false, seconds?: DurationObserver): Session {
    return new Session(this, principal, isLasting, seconds);
  }

  timeoutMs(asked: number | undefined): number {
    return Math.min(asked ?? this.#defaultTimeoutMs, this.#maxTimeoutMs);
  }

  /**
   * Hands a connection off to the engine. The handoff ends when the client sends anything else,
   * when any user's permissions change, or after a second at the latest.
   */
  handOff(descriptor: number, terms: HandoffTerms, statements: readonly Statement[]): Handoff {
    const handoff = this.database.handOff(descriptor, terms, statements);
    this.#handoffs.add(handoff);
    const ended = handoff.ended.finally(() => this.#handoffs.delete(handoff));
    return { ...handoff, ended };
  }

  /** Revokes all handoffs; running statements may finish. */
  revokeHandoffs(): void {
    for (const handoff of this.#handoffs) {
      handoff.revoke(true);
    }
  }

  /** Cancels running statements and refuses new ones, because the server is stopping. */
  stop(): void {
    this.#isStopping = true;
    for (const handoff of this.#handoffs) {
      handoff.revoke(false);
    }
    for (const { queryId } of this.database.activeQueries()) {
      this.database.cancelQuery(queryId);
    }
  }

  /** Throws if the server is stopping. */
  refuseIfStopping(): void {
    if (this.#isStopping) {
      throw stopped();
    }
  }

  /**
   * Converts an error for the client. While the server is stopping, a cancellation is reported as a
   * shutdown.
   */
  failure(error: unknown): DatabaseError {
    const failure = asDatabaseError(error);
    return this.#isStopping && failure.code === 'Cancelled' ? stopped() : failure;
  }
}

function stopped(): DatabaseError {
  return new DatabaseError({ code: 'Closed', message: 'the server is shutting down' });
}

export class Session implements StatementSession {
  readonly isLasting: boolean;
  readonly seconds: DurationObserver | undefined;
  /**
   * The open BEGIN … COMMIT block, set by the protocol. Statements prepared earlier are rebound at
   * their next execution.
   */
  transaction: Transaction | null = null;
  /** Process id of the session's connection, if its client receives one. */
  backend = 0;
  /** Sequence values that `lastval()` returns. */
  readonly sequenceValues = new SequenceValues();
  readonly #host: SessionHost;
  readonly #login: Principal;
  #principal: Principal;

  constructor(
    host: SessionHost,
    principal: Principal,
    isLasting: boolean,
    seconds?: DurationObserver,
  ) {
    this.#host = host;
    this.seconds = seconds;
    this.#login = principal;
    this.#principal = principal;
    this.isLasting = isLasting;
  }

  /** The user who logged in, or the service account that this user assumed. */
  get principal(): Principal {
    return this.#principal;
  }

  become(principal: Principal | null): void {
    this.#principal = principal ?? this.#login;
  }

  get database(): Database {
    return this.#host.database;
  }

  get channels(): Channels {
    return this.#host.channels;
  }

  /** Hands this session's connection off to the engine; see `SessionHost.handOff`. */
  handOff(
    descriptor: number,
    conversation: HandoffTerms['conversation'],
    statements: readonly Statement[],
    timeoutMs?: number,
  ): Handoff {
    const terms = { timeoutMs: this.#host.timeoutMs(timeoutMs), conversation };
    const handoff = this.#host.handOff(descriptor, terms, statements);
    // After an error about the SQL text, the statement is executed again. Only the duration of that
    // second execution is recorded.
    const isRetried = (error: unknown): boolean =>
      conversation.protocol === 'http' && error !== null && isOfText(error);
    const ended = handoff.ended.then((back) => {
      this.#observe(back, back.reply !== null || isRetried(back.error));
      return back;
    });
    return { ...handoff, ended };
  }

  /** Records the durations of executions during a handoff, even if the connection was lost. */
  #observe({ micros }: HandoffResult, isLastRunning: boolean): void {
    for (const duration of isLastRunning ? micros.subarray(0, -1) : micros) {
      this.seconds?.observe(duration / MICROS);
    }
  }

  /**
   * Returns the statement that the engine may run without involving the session. It covers a single
   * SQL text, or all texts that differ from it only in literals. Returns `null` if no binding
   * exists, or if the session must act at every execution.
   */
  eligible(text: string, lifted: LiftedQuery | null): Statement | null {
    const known = this.#host.statements.known(text, lifted);
    if (known === null) {
      return null;
    }
    return new PreparedStatement(this.#host, this, known).eligible(known);
  }

  /**
   * Follows future changes to a table, with the permissions of this session's user. Uncommitted
   * changes in the session's own block are not included. The feed occupies a slot until it is
   * closed.
   */
  async follow(table: string): Promise<ChangeFeed> {
    const free = this.#host.feeds.acquire();
    try {
      const session = this.#host.open(this.#principal, true);
      return new ChangeFeed(await session.prepare(`SELECT * FROM ${quoteName(table)}`), 'now', {
        closed: free,
      });
    } catch (error) {
      free();
      throw error;
    }
  }

  /** Parses `text` and determines its runner; throws a `DatabaseError`. */
  read(text: string): ParsedStatement {
    if (text.length > MAX_STATEMENT_LENGTH) {
      throw new DatabaseError({
        code: 'StatementTooComplex',
        message: `statement is too long [length=${text.length}, limit=${MAX_STATEMENT_LENGTH}]`,
      });
    }
    const nul = text.indexOf('\0');
    if (nul >= 0) {
      // C clients would stop reading at the NUL and thus see a different statement.
      const message = 'a statement cannot contain a NUL character';
      throw new DatabaseError({ code: 'Syntax', message, start: nul, end: nul + 1 });
    }
    return this.#host.statements.parsed(text);
  }

  /** Parses, binds and authorises SQL text; rejects with a `DatabaseError`. */
  async prepare(
    text: string | ParsedStatement,
    parameterTypes?: ParameterTypes,
    options: PrepareOptions = ALL_TIME,
  ): Promise<PreparedStatement> {
    const parsed = typeof text === 'string' ? this.read(text) : text;
    if (parsed.dispatch.runner === 'session') {
      refuseWithoutConnection(parsed.dispatch.statement);
    }
    if (!this.isLasting) {
      refuseTemporary(parsed.temporary);
    }
    if (parsed.lifted !== null && (parameterTypes ?? []).length === 0) {
      const statement = await this.#prepareLifted(parsed, parsed.lifted, options);
      if (statement !== null) {
        return statement;
      }
    }
    const plain = parsed.lifted === null ? parsed : this.#host.statements.plain(parsed.text);
    const named = { ...plain, shows: parsed.shows };
    const statement = new PreparedStatement(this.#host, this, named, parameterTypes);
    const binding = statement.bind(options, plain);
    if (binding !== null) {
      await binding;
    }
    return statement;
  }

  /**
   * Binds the parameterised query; returns `null` if its result would differ from the original
   * text's.
   */
  async #prepareLifted(
    parsed: ParsedStatement,
    lifted: LiftedQuery,
    options: PrepareOptions,
  ): Promise<PreparedStatement | null> {
    const { statements } = this.#host;
    const statement = new PreparedStatement(this.#host, this, parsed);
    try {
      const binding = statement.bind(options, parsed);
      if (binding !== null) {
        await binding;
      }
    } catch (error) {
      if (!isOfText(error)) {
        throw error;
      }
      statements.refuse(lifted);
      return null;
    }
    if (statement.answersAsText) {
      return statement;
    }
    statement.close();
    statements.refuse(lifted);
    return null;
  }
}
