/**
 * One statement's path: parse → prepare → authorise → execute. Every protocol goes this way.
 *
 * A session is one client's setting (user, read-only or not). It knows nothing of HTTP or of
 * the wire protocol; it holds no socket.
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
import { asDatabaseError } from './error.js';
import { Backends } from './backends.js';
import type { ParameterTypes, PrepareOptions } from './binding.js';
import { ChangeFeed } from './change-feed.js';
import { Channels } from './channels.js';
import { FeedSlots } from './feed-slots.js';
import { DrawnNumbers } from './drawn-numbers.js';
import { refuseWithoutConnection, type ServerKind } from './dispatch.js';
import type { Looks } from './looks.js';
import type { Guard, Principal } from './guard.js';
import type { Operations } from './operations.js';
import { isOfText, PreparedStatement } from './prepared-statement.js';
import type { ServerStatements, StatementHost, StatementSession } from './statement-host.js';
import { refuseTemporary } from './temporary.js';
import type { Seconds } from './seconds.js';
import { ALL_TIME } from './time-bounds.js';
import { type Parse, type ParsedStatement, StatementCache } from './statement-cache.js';

const DEFAULT_FEEDS = 256;
const MICROS = 1e6;

/** UTF-16 units of one statement. */
const MAX_STATEMENT_LENGTH = 16 * 1024 * 1024;

interface SessionHostOptions {
  readonly database: Database;
  readonly parse: Parse;
  /** Where one is absent, the engine says that it cannot run such statements. */
  readonly server?: Readonly<Partial<Record<ServerKind, ServerStatements>>>;
  /** Absent where every user may do everything. */
  readonly guard?: Guard;
  /** Absent where there is no server around the database. */
  readonly operations?: Operations;
  /** How texts in files are read; absent where there are none. */
  readonly looks?: Looks;
  /** Time of a statement whose client names none. */
  readonly defaultTimeoutMs?: number;
  /** The most that a client may ask for. */
  readonly maxTimeoutMs?: number;
  /** Feeds of changes at once. */
  readonly mostFeeds?: () => number;
}

/** What all sessions of a server share. */
export class SessionHost implements StatementHost {
  readonly database: Database;
  readonly statements: StatementCache;
  readonly server: Readonly<Partial<Record<ServerKind, ServerStatements>>>;
  readonly guard: Guard | undefined;
  readonly operations: Operations | null;
  readonly looks: Looks | undefined;
  /** The connections of all protocols whose clients know their number. */
  readonly backends = new Backends();
  readonly feeds: FeedSlots;
  /** Where the sessions of the wire protocol hear each other. */
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
      asksLists: (tree) => options.guard?.asksLists(tree) === true,
      makesView: (tree) => options.guard?.makesView(tree) === true,
      serverAccesses: (tree) => options.guard?.serverAccesses(tree) ?? [],
    });
    this.operations = options.operations ?? null;
    this.looks = options.looks;
    this.feeds = new FeedSlots(options.mostFeeds ?? (() => DEFAULT_FEEDS));
    // Their clients are asked for their rights where they were handed off.
    options.guard?.watch(() => {
      this.revokeHandoffs();
    });
    this.#defaultTimeoutMs = options.defaultTimeoutMs ?? 60_000;
    this.#maxTimeoutMs = options.maxTimeoutMs ?? 3_600_000;
  }

  /**
   * `isLasting`: whether several statements follow each other in it; `seconds` receives how long
   * each took.
   */
  open(principal: Principal, isLasting = false, seconds?: Seconds): Session {
    return new Session(this, principal, isLasting, seconds);
  }

  timeoutMs(asked: number | undefined): number {
    return Math.min(asked ?? this.#defaultTimeoutMs, this.#maxTimeoutMs);
  }

  /**
   * Lets the engine answer a connection. It comes back when its client sends something else, when
   * the rights of any user change, and after a second in any case.
   */
  handOff(descriptor: number, terms: HandoffTerms, statements: readonly Statement[]): Handoff {
    const handoff = this.database.handOff(descriptor, terms, statements);
    this.#handoffs.add(handoff);
    const ended = handoff.ended.finally(() => this.#handoffs.delete(handoff));
    return { ...handoff, ended };
  }

  /** Ends all handoffs; statements that run may end. */
  revokeHandoffs(): void {
    for (const handoff of this.#handoffs) {
      handoff.revoke(true);
    }
  }

  /** Statements that run are stopped and others refused, because the server ends. */
  stop(): void {
    this.#isStopping = true;
    for (const handoff of this.#handoffs) {
      handoff.revoke(false);
    }
    for (const { queryId } of this.database.activeQueries()) {
      this.database.cancelQuery(queryId);
    }
  }

  /** Throws when the server ends. */
  refuseIfStopping(): void {
    if (this.#isStopping) {
      throw stopped();
    }
  }

  /** What a statement failed with, as its client is to know it: the server ended it, not a user. */
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
  readonly seconds: Seconds | undefined;
  /**
   * The open BEGIN … COMMIT block, set by the protocol that has one. Statements prepared before
   * it follow: they are bound again at their next execution.
   */
  transaction: Transaction | null = null;
  /** The number of its connection, where the client receives one. */
  backend = 0;
  /** What `lastval()` answers in it. */
  readonly drawn = new DrawnNumbers();
  readonly #host: SessionHost;
  readonly #login: Principal;
  #principal: Principal;

  constructor(host: SessionHost, principal: Principal, isLasting: boolean, seconds?: Seconds) {
    this.#host = host;
    this.seconds = seconds;
    this.#login = principal;
    this.#principal = principal;
    this.isLasting = isLasting;
  }

  /** The user who logged in, or the service account it assumed. */
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

  /** Lets the engine answer the connection of this session; see `SessionHost.handOff`. */
  handOff(
    descriptor: number,
    conversation: HandoffTerms['conversation'],
    statements: readonly Statement[],
    timeoutMs?: number,
  ): Handoff {
    const terms = { timeoutMs: this.#host.timeoutMs(timeoutMs), conversation };
    const handoff = this.#host.handOff(descriptor, terms, statements);
    // A text that says what is wrong runs once more, and has its time then.
    const runsAgain = (error: unknown): boolean =>
      conversation.protocol === 'http' && error !== null && isOfText(error);
    const ended = handoff.ended.then((back) => {
      this.#observe(back, back.reply !== null || runsAgain(back.error));
      return back;
    });
    return { ...handoff, ended };
  }

  /** Counts how long handed off executions took, whatever became of their connection. */
  #observe({ micros }: HandoffResult, lastGoesOn: boolean): void {
    for (const one of lastGoesOn ? micros.subarray(0, -1) : micros) {
      this.seconds?.observe(one / MICROS);
    }
  }

  /**
   * What the engine may run by itself for a while for a text, or for all texts that are lifted
   * alike; null where it is not bound, or something else has to be done at every execution.
   */
  eligible(text: string, lifted: LiftedQuery | null): Statement | null {
    const known = this.#host.statements.known(text, lifted);
    if (known === null) {
      return null;
    }
    return new PreparedStatement(this.#host, this, known).eligible(known);
  }

  /**
   * The changes of a table from now on, as this session's user may read it. What happens in the
   * session's own block does not concern it. It takes a place until it is closed.
   */
  async follow(table: string): Promise<ChangeFeed> {
    const free = this.#host.feeds.take();
    try {
      const name = `"${table.replaceAll('"', '""')}"`;
      const session = this.#host.open(this.#principal, true);
      return new ChangeFeed(await session.prepare(`SELECT * FROM ${name}`), 'now', {
        closed: free,
      });
    } catch (error) {
      free();
      throw error;
    }
  }

  /** What `text` says and who runs it; throws a `DatabaseError`. */
  read(text: string): ParsedStatement {
    if (text.length > MAX_STATEMENT_LENGTH) {
      throw new DatabaseError({
        code: 'StatementTooComplex',
        message: `statement is too long [length=${text.length}, limit=${MAX_STATEMENT_LENGTH}]`,
      });
    }
    const nul = text.indexOf('\0');
    if (nul >= 0) {
      // Clients in C would read another statement than the one that runs.
      const message = 'a statement cannot contain a NUL character';
      throw new DatabaseError({ code: 'Syntax', message, start: nul, end: nul + 1 });
    }
    return this.#host.statements.parsed(text);
  }

  /** Reads, binds and authorises a text; rejects with a `DatabaseError`. */
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
    const statement = new PreparedStatement(this.#host, this, plain, parameterTypes);
    const binding = statement.bind(options, plain);
    if (binding !== null) {
      await binding;
    }
    return statement;
  }

  /** Binds the query that a text is one of; null where that answers as another one. */
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
