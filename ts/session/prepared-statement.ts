/**
 * A statement that was bound: what its client sees of it, and how it runs. It is bound again when
 * the tables, the rights or the block of its session are others than those it was bound for.
 */
import { setTimeout } from 'node:timers/promises';

import { DatabaseError } from '../engine/error.js';
import type { LiftedQuery } from '../engine/literals.js';
import { ParameterBatch } from '../engine/parameters.js';
import type {
  Access,
  AllExecuteOptions,
  CopyAppender,
  CopyForm,
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
import { allowing, type Guard, type Listed, type Principal, principalKey } from './guard.js';
import { HostStream } from './host-stream.js';
import { looksWithin } from './looks.js';
import {
  numbersOf,
  type Operated,
  operated,
  type OperationCall,
  typesWithResults,
} from './operations.js';
import { withoutSecrets } from './secrets.js';
import type { StatementHost, StatementSession } from './statement-host.js';
import { errorMeaning } from './status.js';
import { type ParsedStatement, StatementCache } from './statement-cache.js';
import type { TemporaryTable } from './temporary.js';
import { ALL_TIME, timeBounds, type TimeBounds } from './time-bounds.js';

/** How often a statement runs at most when its tables change each time before it does. */
const MOST_ATTEMPTS = 64;
/** Attempts that follow each other at once; later ones let those who change the table be done. */
const QUICK_ATTEMPTS = 4;
const LONGEST_PAUSE_MS = 64;

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
export interface PrepareOptions extends TimeBounds {
  readonly signal?: AbortSignal;
}

/** Whether an error may be another one, or at another place, for a text with its literals. */
export function isOfText(error: unknown): boolean {
  return errorMeaning(asDatabaseError(error).code).isOfText;
}

/** Types for which a parameter without a type is what a text in quotes is. */
const AS_IN_QUOTES = new Set<string>(['SYMBOL', 'VARCHAR', 'STRING', 'TIMESTAMP', 'TIMESTAMP_NS']);

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
  readonly #host: StatementHost;
  readonly #session: StatementSession;
  /** The query that is bound instead of the text. */
  #lifted: LiftedQuery | null;
  #parameterTypes: ParameterTypes | undefined;
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
    host: StatementHost,
    session: StatementSession,
    read: ParsedStatement,
    parameterTypes: ParameterTypes | undefined,
  ) {
    this.#host = host;
    this.#session = session;
    this.#principal = session.principal;
    this.#lifted = read.lifted;
    this.text = read.text;
    this.temporary = read.temporary;
    this.#parameterTypes = parameterTypes;
  }

  /** Whether what is bound answers as the text itself does, where its literals were taken out. */
  get answersAsText(): boolean {
    const { kind, parameters } = this.#bound().description;
    const types = this.#parameterTypes ?? [];
    const isSame = (type: string, at: number): boolean =>
      types[at] === type || (types[at] === null && AS_IN_QUOTES.has(type));
    return kind === 'select' && parameters.every(isSame);
  }

  /** Columns, parameters and kind, as its client received them first. */
  get description(): StatementDescription {
    return this.#described ?? this.#current();
  }

  /** The description of what is bound now. */
  #current(): StatementDescription {
    const { description } = this.#bound();
    if (this.#lifted !== null) {
      return { ...description, parameters: [] };
    }
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
      const step: Step<ExecuteReply> = (statement) => {
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
          text: this.#lifted === null ? undefined : withoutSecrets(this.text),
        };
        return statement.execute(this.#lifted?.values ?? values, limited(options, limits));
      };
      const reply = await this.#runLifted(step, { mayChange, bounds });
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

  /**
   * What the engine may run by itself for a while, with other values, as long as no user's rights
   * change; null where something else has to be done at every execution.
   */
  get lent(): Statement | null {
    return this.#lifted === null ? this.#plain : null;
  }

  /**
   * The same for texts that come again, or are alike but for their literals: only what others
   * bound before, which is kept.
   */
  lendable(parsed: ParsedStatement): Statement | null {
    try {
      const isKept = this.#bindKnown(parsed) && this.answersAsText;
      return isKept ? this.#plain : null;
    } catch {
      return null; // it is refused at its next execution
    }
  }

  get #plain(): Statement | null {
    const statement = this.#statement;
    const isPlain =
      this.#operated === null &&
      this.#described === null &&
      this.#transaction === null &&
      this.#serverAccesses.length === 0 &&
      !this.#isOutdated();
    return isPlain && statement?.description.kind === 'select' ? statement : null;
  }

  /** What its text is lifted to. */
  get lifted(): LiftedQuery | null {
    return this.#lifted;
  }

  /** The reply to an execution that the engine began by itself at `sinceMs`. */
  resumed(reply: ExecuteReply, sinceMs: number): ExecuteReply {
    const { stream } = reply;
    const ended = (): void => this.#session.seconds?.observe((performance.now() - sinceMs) / 1000);
    return stream === null
      ? reply
      : { ...reply, stream: new HostStream(this.#host, stream, ended) };
  }

  /** What such an execution failed with, as its client is to know it. */
  failure(error: unknown): DatabaseError {
    return this.#host.failure(error);
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
    return StatementCache.key(who, readOnly, types, this.#boundText(), this.#visibilityVersion);
  }

  /** The text of what is bound. */
  #boundText(): string {
    return this.#lifted?.text ?? this.text;
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
      text: withoutSecrets(this.#boundText()),
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

  /** What is wrong, and where, is said by the text with its literals: that runs as well. */
  async #runLifted<T>(step: Step<T>, again: BindingAgain): Promise<T> {
    try {
      return await this.#guarded(step, again);
    } catch (error) {
      if (this.#lifted === null || !isOfText(error)) {
        throw error;
      }
    }
    this.#lifted = null;
    this.#parameterTypes = undefined;
    await this.#rebind(again);
    return await this.#guarded(step, again);
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
    await this.bind(bounds(), this.#host.statements.plain(this.#boundText()));
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
  { timeoutMs, elapsedMs, queryId, text }: Required<Pick<ExecuteOptions, Bounds>>,
): AllExecuteOptions {
  const { rows, skip, take, countAll, last, firstChunkRows, changes } = options;
  const bounds = { timeoutMs, elapsedMs, queryId, text };
  return { rows, skip, take, countAll, last, firstChunkRows, changes, ...bounds };
}

type Bounds = 'timeoutMs' | 'elapsedMs' | 'queryId' | 'text';

function shape(description: StatementDescription): string {
  const { kind, columns, parameters, timestamp } = description;
  return JSON.stringify([kind, columns, parameters, timestamp]);
}
