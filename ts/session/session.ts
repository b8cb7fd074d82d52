/**
 * One statement's path: parse → prepare → authorise → execute. Every protocol goes this way.
 *
 * A session is one client's setting (user, read-only or not). It knows nothing of HTTP or of
 * the wire protocol; it holds no socket.
 */
import { setTimeout } from 'node:timers/promises';

import { DatabaseError } from '../engine/error.js';
import { ParameterBatch } from '../engine/parameters.js';
import type {
  Access,
  AllExecuteOptions,
  CopyAppender,
  CopyForm,
  Database,
  ExecuteOptions,
  ExecuteReply,
  Owner,
  Parameters,
  Statement,
  StatementContext,
  StatementDescription,
  Summary,
  Transaction,
} from '../engine/types.js';
import type { Tree } from '../sql/index.js';
import { asDatabaseError, ChangedResult } from './error.js';
import { Backends } from './backends.js';
import { ChangeFeed } from './change-feed.js';
import { Channels } from './channels.js';
import { FeedSlots } from './feed-slots.js';
import { DrawnNumbers } from './drawn-numbers.js';
import { refuseWithoutConnection, type ServerKind } from './dispatch.js';
import { HostStream } from './host-stream.js';
import { type Looks, looksWithin } from './looks.js';
import { allowing, type Guard, type Listed, type Principal, principalKey } from './guard.js';
import {
  numbersOf,
  type Operated,
  operated,
  type OperationCall,
  type Operations,
  typesWithResults,
} from './operations.js';
import { withoutSecrets } from './secrets.js';
import { refuseTemporary, type TemporaryTable } from './temporary.js';
import type { Seconds } from './seconds.js';
import { ALL_TIME, timeBounds, type TimeBounds } from './time-bounds.js';
import { type Parse, type ParsedStatement, StatementCache } from './statement-cache.js';

/** How often a statement runs at most when its tables change each time before it does. */
const MOST_ATTEMPTS = 64;
/** Attempts that follow each other at once; later ones let those who change the table be done. */
const QUICK_ATTEMPTS = 4;
const LONGEST_PAUSE_MS = 64;

const DEFAULT_FEEDS = 256;

/** UTF-16 units of one statement. */
const LONGEST_STATEMENT = 16 * 1024 * 1024;

/** The session as a statement of the server's own sees it. */
export interface Actor {
  readonly principal: Principal;
  /** Whether the session outlives the statement. */
  readonly isLasting: boolean;
  /** Goes on as another user; null: as the user who logged in. */
  become(principal: Principal | null): void;
}

/** Parameter types the client declared, `null` where it left them open. */
export type ParameterTypes = readonly (string | null)[];

/**
 * How a statement runs. A function is for callers that have not sent the shape of the rows yet:
 * it is asked again when the statement was bound anew to tables that have changed.
 */
type Execute = RowOptions | ((description: StatementDescription) => RowOptions);

/** Which rows of a statement, in which form. */
export type RowOptions = Omit<ExecuteOptions, Bounds>;

/** What ends a preparation before it is done. */
interface PrepareOptions extends TimeBounds {
  readonly signal?: AbortSignal;
}

/** Statements of one kind that the server runs and the engine does not: COPY, GRANT. */
export interface ServerStatements {
  /** Rejects with a `DatabaseError`. */
  prepare(tree: Tree, context: StatementContext, actor: Actor): Promise<Statement>;
}

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
export class SessionHost {
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

  /** Statements that run are stopped and others refused, because the server ends. */
  stop(): void {
    this.#isStopping = true;
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

export class Session implements Actor {
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
    const statement = new PreparedStatement(this.#host, this, parsed, parameterTypes);
    const binding = statement.bind(options, parsed);
    if (binding !== null) {
      await binding;
    }
    return statement;
  }
}

const NOTHING_OPERATED = { calls: [], parameters: 0 };

/** A run of a statement that has no reply yet. Its statement may be bound again on the way. */
interface Execution {
  readonly queryId: bigint;
  isCancelled: boolean;
}

export class PreparedStatement {
  readonly text: string;
  /** The temporary table that it makes. */
  readonly temporary: TemporaryTable | null;
  readonly #host: SessionHost;
  readonly #session: Session;
  readonly #parameterTypes: ParameterTypes | undefined;
  /** The same for statements that may stand for each other; null for those that hardly do. */
  #key: string | null = null;
  /** Whose rights `#statement` was bound with, and which visibility of the catalog. */
  #principal: Principal;
  #visibilityVersion = 0;
  /** Whether it answers with what changes without the tables: users, rights, numbers drawn. */
  #isListing = false;
  #asksNumbers = false;
  /** What it takes for what it does with the server itself. */
  #serverAccesses: readonly Access[] = [];
  /** What the server itself does at every execution; null where that is nothing. */
  #operated: Omit<Operated, 'tree'> | null = null;
  #statement: Statement | null = null;
  /** What its client received of it, where `#statement` may be something else; null otherwise. */
  #described: StatementDescription | null = null;
  /** Whether others may run `#statement` too. */
  #isShared = false;
  /** The block `#statement` was bound in. */
  #transaction: Transaction | null = null;
  /** Executions without a reply. */
  readonly #waiting: Execution[] = [];

  /** Use `Session.prepare`. */
  constructor(
    host: SessionHost,
    session: Session,
    { text, temporary }: ParsedStatement,
    parameterTypes: ParameterTypes | undefined,
  ) {
    this.#host = host;
    this.#session = session;
    this.#principal = session.principal;
    this.text = text;
    this.temporary = temporary;
    this.#parameterTypes = parameterTypes;
  }

  /** Columns, parameters and kind, as its client received them first. */
  get description(): StatementDescription {
    return this.#described ?? this.#current();
  }

  /** The description of what is bound now. */
  #current(): StatementDescription {
    const { description } = this.#bound();
    const calls = this.#operated?.calls.length ?? 0;
    // The results of the server's functions are no parameters of the client's.
    return calls === 0
      ? description
      : { ...description, parameters: description.parameters.slice(0, -calls) };
  }

  /** Runs once; rights are checked at every execution. */
  async execute(
    parameters: Parameters,
    how: Execute,
    given: TimeBounds = ALL_TIME,
  ): Promise<ExecuteReply> {
    this.#host.refuseIfStopping();
    const sinceMs = performance.now() - given.elapsedMs;
    const bounds = (): TimeBounds => timeBounds(given.timeoutMs, sinceMs);
    const ended = (): void => this.#session.seconds?.observe((performance.now() - sinceMs) / 1000);
    const mayChange = typeof how === 'function';
    const execution: Execution = {
      queryId: this.#host.database.newQueryId(),
      isCancelled: false,
    };
    this.#waiting.push(execution);
    try {
      const values = this.#operated === null ? parameters : await this.#operate(parameters);
      const step = (statement: Statement): Promise<ExecuteReply> => {
        this.#host.refuseIfStopping();
        if (execution.isCancelled) {
          throw new DatabaseError({ code: 'Cancelled', message: 'cancelled by user' });
        }
        const options = mayChange ? how(statement.description) : how;
        const { timeoutMs, elapsedMs } = bounds();
        const limits = {
          // A feed has no end: what it waits for is said with each of its steps.
          timeoutMs: options.changes === undefined ? this.#host.timeoutMs(timeoutMs) : 0,
          elapsedMs,
          queryId: execution.queryId,
        };
        return statement.execute(values, limited(options, limits));
      };
      const reply = await this.#guarded(step, { mayChange, bounds });
      this.#session.drawn.note(reply.drawn);
      if (reply.stream === null) {
        ended();
        return reply;
      }
      return { ...reply, stream: new HostStream(this.#host, reply.stream, ended) };
    } catch (error) {
      ended();
      throw this.#host.failure(error);
    } finally {
      this.#waiting.splice(this.#waiting.indexOf(execution), 1);
    }
  }

  /** Many parameter rows of one INSERT: one crossing, one commit. */
  async executeBatch(rows: ParameterBatch): Promise<Summary> {
    if (this.#operated !== null) {
      const message = 'functions of the server run once, not for many rows of parameters';
      throw new DatabaseError({ code: 'NotSupported', message });
    }
    const began = performance.now();
    try {
      const { summary, drawn } = await this.#run((statement) => statement.executeBatch(rows));
      this.#session.drawn.note(drawn);
      return summary;
    } finally {
      this.#session.seconds?.observe((performance.now() - began) / 1000);
    }
  }

  /** Takes the data of a COPY into the columns of this INSERT, whose values are its parameters. */
  async openCopy(form: CopyForm): Promise<CopyAppender> {
    return await this.#run((statement) => statement.openCopy(form));
  }

  /** Stops what still waits for its first rows; a stream has its own `cancel`. */
  cancel(): void {
    for (const execution of this.#waiting) {
      execution.isCancelled = true;
      this.#host.database.cancelQuery(execution.queryId);
    }
  }

  /** Throws `AccessDenied` where its session may not do what it does any more. */
  authorise(): void {
    this.#authorise();
  }

  close(): void {
    this.#letGo();
  }

  /**
   * Called by `Session.prepare`, and again when the catalog or the rights moved. Null when it is
   * done: the same was bound before.
   */
  bind(options: PrepareOptions, parsed: ParsedStatement): Promise<void> | null {
    return this.#bindKnown(parsed)
      ? null
      : this.#bindAnew(this.#session.transaction, options, parsed);
  }

  async #bindAnew(
    transaction: Transaction | null,
    options: PrepareOptions,
    parsed: ParsedStatement,
  ): Promise<void> {
    const { database } = this.#host;
    const queryId = database.newQueryId();
    const cancel = (): void => void database.cancelQuery(queryId);
    options.signal?.addEventListener('abort', cancel);
    try {
      const { timeoutMs, elapsedMs } = options;
      const bounds = {
        timeoutMs: this.#host.timeoutMs(timeoutMs),
        elapsedMs,
        queryId: `${queryId}`,
      };
      const looks = looksWithin(this.#host.looks, { ...bounds, cancelled: options.signal });
      const statement = await this.#prepare(parsed, transaction, { ...bounds, ...looks });
      // What depends on more than the tables is not shared.
      const mayShare = transaction === null && !this.#isListing && this.#operated === null;
      const isShared = mayShare && this.#host.statements.share(this.#key, statement);
      this.#hold(statement, isShared, transaction);
    } catch (error) {
      throw asDatabaseError(error);
    } finally {
      options.signal?.removeEventListener('abort', cancel);
    }
  }

  /** Takes the query that was bound before for the same text and user; false when there is none. */
  #bindKnown(parsed: ParsedStatement): boolean {
    const { statements, guard } = this.#host;
    const { transaction, principal } = this.#session;
    try {
      this.#principal = principal;
      this.#visibilityVersion = guard?.visibilityVersion(principal) ?? 0;
      this.#key = this.#sharedKey();
      const known = transaction === null ? statements.query(this.#key) : undefined;
      if (known !== undefined) {
        this.#serverAccesses = parsed.accesses;
        guard?.authorise(principal, this.#serverAccesses);
        this.#hold(known, true, null);
      }
      return known !== undefined;
    } catch (error) {
      throw asDatabaseError(error);
    }
  }

  #sharedKey(): string | null {
    const { name, readOnly } = this.#principal;
    const types = this.#parameterTypes;
    // An identity may have another name at the next login.
    const who = `${principalKey(this.#principal)} ${name}`;
    return StatementCache.key(who, readOnly, types, this.text, this.#visibilityVersion);
  }

  #context(listed: Listed | null, owner: Owner | null): StatementContext {
    const { guard } = this.#host;
    const { name: user, readOnly } = this.#principal;
    const parameterTypes =
      this.#operated === null
        ? this.#parameterTypes
        : typesWithResults(this.#operated, this.#parameterTypes);
    const principal = this.#principal;
    const visibility = guard?.visibility(principal);
    return {
      user,
      identity: principalKey(this.#principal),
      text: withoutSecrets(this.text),
      readOnly,
      ...(owner === null ? {} : { owner }),
      ...(parameterTypes === undefined ? {} : { parameterTypes }),
      ...(visibility === undefined ? {} : { visibility }),
      ...(guard === undefined || visibility === undefined
        ? {}
        : { allows: allowing(guard, principal) }),
      ...(listed === null ? {} : { lists: listed.lists }),
      ...(this.#asksNumbers ? { numbers: this.#session.drawn.list() } : {}),
    };
  }

  /** Does what the statement asks of the server; resolves to all values that are bound. */
  async #operate(parameters: Parameters): Promise<ParameterBatch> {
    const { guard } = this.#host;
    const { calls, parameters: given } = this.#operated ?? NOTHING_OPERATED;
    const row = parameters instanceof ParameterBatch ? parameters : ParameterBatch.row(parameters);
    if (row.width < given) {
      const message = `the statement has ${given} parameters, ${row.width} are given`;
      throw new DatabaseError({ code: 'InvalidValue', message });
    }
    this.#authorise();
    const results: string[] = [];
    for (const call of calls) {
      results.push(String(await this.#call(call, row)));
      if (call.operation.isChange) {
        const command = call.name.toUpperCase();
        guard?.ran(this.#session.principal, withoutSecrets(this.text), { command });
      }
    }
    return row.extended(given, results);
  }

  #call(call: OperationCall, parameters: ParameterBatch): Promise<boolean | number> {
    const { operations, backends, guard } = this.#host;
    const { principal: user, backend } = this.#session;
    const authorise = (): void =>
      guard?.authorise(user, [{ table: '', columns: [], permission: 'SYSTEM ADMIN' }]);
    const by = { key: principalKey(user), readOnly: user.readOnly };
    const setting = { user: by, authorise, backend, backends, operations };
    return call.operation.run(setting, numbersOf(call, parameters));
  }

  async #prepare(
    parsed: ParsedStatement,
    transaction: Transaction | null,
    bounds: Pick<StatementContext, 'timeoutMs' | 'elapsedMs' | 'queryId' | 'looks'>,
  ): Promise<Statement> {
    const { database, guard, server } = this.#host;
    this.#operated = parsed.operated;
    this.#asksNumbers = parsed.asksNumbers;
    this.#isListing = parsed.listing !== null || parsed.asksNumbers;
    this.#serverAccesses = parsed.accesses;
    guard?.authorise(this.#principal, parsed.accesses);
    const listed =
      parsed.listing === null || guard === undefined
        ? null
        : await guard.lists(this.#principal, parsed.listing, this.text);
    const owner =
      parsed.view === null || guard === undefined
        ? null
        : guard.viewOwner(this.#principal, parsed.view);
    const context = { ...this.#context(listed, owner), ...bounds };
    const asked = listed?.tree ?? null;
    const bound =
      asked === null ? parsed.tree : Buffer.from(JSON.stringify(operated(asked as Tree).tree));
    const run = parsed.dispatch;
    const statements = run.runner === 'server' ? server[run.kind] : undefined;
    if (run.runner === 'server' && statements !== undefined) {
      return await statements.prepare(run.tree, context, this.#session);
    }
    try {
      return transaction === null
        ? await database.prepare(bound, context)
        : await database.prepare(bound, context, transaction);
    } catch (error) {
      const tree = JSON.parse(parsed.tree.toString('utf8')) as object;
      guard?.authoriseUnbound(this.#principal, tree);
      throw error;
    }
  }

  #hold(statement: Statement, isShared: boolean, transaction: Transaction | null): void {
    this.#letGo();
    this.#statement = statement;
    this.#isShared = isShared;
    this.#transaction = transaction;
    this.#host.guard?.authorise(this.#principal, statement.description.accesses);
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

  /** Rights follow what changes the catalog, and the audit log records it. */
  #guarded<T>(step: Step<T>, again: BindingAgain): Promise<T> {
    const { guard } = this.#host;
    const { kind, command } = this.description;
    const isFollowed = guard !== undefined && (kind === 'ddl' || command === 'CANCEL QUERY');
    return isFollowed
      ? this.#followed(guard, step, { ...again, mayChange: false })
      : this.#run(step, again);
  }

  async #followed<T>(guard: Guard, step: Step<T>, again: BindingAgain): Promise<T> {
    const { principal } = this.#session;
    const { description } = this;
    const change = { principal, text: this.text, description };
    const result = await guard.follow(change, () => this.#run(step, again));
    guard.ran(principal, withoutSecrets(this.text), description);
    return result;
  }

  async #run<T>(step: Step<T>, again: BindingAgain = BOUND_AS_FIRST): Promise<T> {
    if (this.#described !== null || this.#isOutdated()) {
      await this.#rebind(again);
    }
    for (let attempt = 1; ; attempt += 1) {
      this.#authorise();
      try {
        return await step(this.#bound());
      } catch (error) {
        const failure = asDatabaseError(error);
        if (failure.code !== 'Replan' || attempt === MOST_ATTEMPTS) {
          throw failure;
        }
      }
      // Nothing was done: the tables changed after it was bound.
      if (attempt > QUICK_ATTEMPTS) {
        await setTimeout(
          Math.random() * Math.min(2 ** (attempt - QUICK_ATTEMPTS), LONGEST_PAUSE_MS),
        );
      }
      await this.#rebind(again);
    }
  }

  /** Before each run: rights may have gone since it was prepared. */
  #authorise(): void {
    const { guard } = this.#host;
    if (guard !== undefined) {
      const { principal } = this.#session;
      guard.authorise(principal, this.#serverAccesses);
      guard.authorise(principal, this.#bound().description.accesses);
    }
  }

  /** Bound in another block, for another user, or with another visibility of the catalog. */
  #isOutdated(): boolean {
    const { guard } = this.#host;
    const { principal, transaction } = this.#session;
    if (this.#statement === null) {
      return false;
    }
    return (
      this.#transaction !== transaction ||
      this.#principal !== principal ||
      (guard !== undefined && this.#visibilityVersion !== guard.visibilityVersion(principal)) ||
      this.#isListing
    );
  }

  /**
   * A client that received the columns of the rows gets no others, however often it asks. Where
   * binding fails, the next run binds again.
   */
  async #rebind({ mayChange, bounds }: BindingAgain): Promise<void> {
    const described = this.description;
    this.#described = described;
    this.#host.statements.forget(this.#key);
    await this.bind(bounds(), this.#host.statements.parsed(this.text));
    if (!mayChange && shape(this.#current()) !== shape(described)) {
      throw new ChangedResult();
    }
    this.#described = null;
  }
}

type Step<T> = (statement: Statement) => Promise<T>;

/** How a statement is bound again while it runs. */
interface BindingAgain {
  /** Whether its columns may be others then. */
  readonly mayChange: boolean;
  /** What is left of its time. */
  readonly bounds: () => TimeBounds;
}

const BOUND_AS_FIRST: BindingAgain = { mayChange: false, bounds: () => ALL_TIME };

/** Member by member: a spread that others are added to takes several times as long. */
function limited(
  options: RowOptions,
  { timeoutMs, elapsedMs, queryId }: Required<Pick<ExecuteOptions, Bounds>>,
): AllExecuteOptions {
  const { rows, skip, take, countAll, last, firstChunkRows, changes } = options;
  const bounds = { timeoutMs, elapsedMs, queryId };
  return { rows, skip, take, countAll, last, firstChunkRows, changes, ...bounds };
}

type Bounds = 'timeoutMs' | 'elapsedMs' | 'queryId';

function shape(description: StatementDescription): string {
  const { kind, columns, parameters, timestamp } = description;
  return JSON.stringify([kind, columns, parameters, timestamp]);
}
