/**
 * A statement that was bound: what its client sees of it, and how it runs. It is bound again when
 * the tables, the rights or the block of its session are others than those it was bound for.
 */
import { setTimeout } from 'node:timers/promises';

import { DatabaseError } from '../engine/error.js';
import type { LiftedQuery } from '../engine/literals.js';
import { ParameterBatch } from '../engine/parameters.js';
import type {
  AllExecuteOptions,
  CopyAppender,
  CopyForm,
  ExecuteOptions,
  ExecuteReply,
  Parameters,
  Statement,
  StatementDescription,
  Summary,
} from '../engine/types.js';
import {
  type Binding,
  isOutdated,
  knownBinding,
  newBinding,
  type ParameterTypes,
  type PrepareOptions,
  type Wanted,
} from './binding.js';
import { asDatabaseError, ChangedResult } from './error.js';
import { type Guard, principalKey } from './guard.js';
import { HostStream } from './host-stream.js';
import { numbersOf, type Operated, type OperationCall } from './operations.js';
import { withoutSecrets } from './secrets.js';
import type { StatementHost, StatementSession } from './statement-host.js';
import { errorMeaning } from './status.js';
import type { ParsedStatement } from './statement-cache.js';
import type { TemporaryTable } from './temporary.js';
import { ALL_TIME, timeBounds, type TimeBounds } from './time-bounds.js';

/** How often a statement runs at most when its tables change each time before it does. */
const MAX_ATTEMPTS = 64;
/** Attempts that follow each other at once; later ones let those who change the table be done. */
const QUICK_ATTEMPTS = 4;
const MAX_PAUSE_MS = 64;

/**
 * How a statement runs. A function is for callers that have not sent the shape of the rows yet:
 * it is asked again when the statement was bound anew to tables that have changed.
 */
type Execute = RowOptions | ((description: StatementDescription) => RowOptions);

/** Which rows of a statement, in which form. */
export type RowOptions = Omit<ExecuteOptions, 'timeoutMs' | 'elapsedMs' | 'queryId' | 'text'>;

/** Whether an error may be another one, or at another place, for a text with its literals. */
export function isOfText(error: unknown): boolean {
  return errorMeaning(asDatabaseError(error).code).isOfText;
}

/** Types for which a parameter without a type is what a text in quotes is. */
const AS_IN_QUOTES = new Set<string>(['SYMBOL', 'VARCHAR', 'STRING', 'TIMESTAMP', 'TIMESTAMP_NS']);

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
  readonly #declared: ParameterTypes | undefined;
  /** The query that is bound instead of the text. */
  #lifted: LiftedQuery | null;
  /** Null before it is bound, and once it is closed. */
  #binding: Binding | null = null;
  /** What its client received of it, where what is bound may be something else; null otherwise. */
  #described: StatementDescription | null = null;
  /** Executions without a reply. */
  readonly #waiting: Execution[] = [];

  /** Use `Session.prepare`. `declared` holds for a text whose literals are in it. */
  constructor(
    host: StatementHost,
    session: StatementSession,
    { text, temporary, lifted }: ParsedStatement,
    declared?: ParameterTypes,
  ) {
    this.#host = host;
    this.#session = session;
    this.#lifted = lifted;
    this.text = text;
    this.temporary = temporary;
    this.#declared = declared;
  }

  /** Whether what is bound answers as the text itself does, where its literals were taken out. */
  get answersAsText(): boolean {
    const { kind, parameters } = this.#bound().statement.description;
    const types = this.#types ?? [];
    const isSame = (type: string, at: number): boolean =>
      types[at] === type || (types[at] === null && AS_IN_QUOTES.has(type));
    return kind === 'select' && parameters.every(isSame);
  }

  /** Columns, parameters and kind, as its client received them first. */
  get description(): StatementDescription {
    return this.#described ?? this.#current();
  }

  /**
   * What the engine may run by itself for a while, with other values, as long as no user's rights
   * change; null where something else has to be done at every execution.
   */
  get handedOff(): Statement | null {
    return this.#lifted === null ? this.#plain : null;
  }

  /**
   * The same for texts that come again, or are alike but for their literals: only what others
   * bound before, which is kept.
   */
  eligible(read: ParsedStatement): Statement | null {
    try {
      return this.#bindKnown(read) && this.answersAsText ? this.#plain : null;
    } catch {
      return null; // it is refused at its next execution
    }
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
    const mayChange = typeof how === 'function';
    const execution = { queryId: this.#host.database.newQueryId(), isCancelled: false };
    this.#waiting.push(execution);
    try {
      const { operated } = this.#bound().terms;
      const values = operated === null ? parameters : await this.#operate(operated, parameters);
      const step: Step<ExecuteReply> = (statement) => {
        const options = mayChange ? how(statement.description) : how;
        const all = this.#options(execution, options, bounds());
        return statement.execute(this.#lifted?.values ?? values, all);
      };
      const reply = await this.#run(step, { mayChange, bounds });
      this.#session.drawn.note(reply.drawn);
      if (reply.stream === null) {
        this.#observe(sinceMs);
      }
      return this.resumed(reply, sinceMs);
    } catch (error) {
      this.#observe(sinceMs);
      throw this.#host.failure(error);
    } finally {
      this.#waiting.splice(this.#waiting.indexOf(execution), 1);
    }
  }

  /** The reply to an execution that began at `sinceMs`, perhaps by the engine itself. */
  resumed(reply: ExecuteReply, sinceMs: number): ExecuteReply {
    const { stream } = reply;
    const ended = (): void => {
      this.#observe(sinceMs);
    };
    return stream === null
      ? reply
      : { ...reply, stream: new HostStream(this.#host, stream, ended) };
  }

  /** What an execution that the engine began failed with, as its client is to know it. */
  failure(error: unknown): DatabaseError {
    return this.#host.failure(error);
  }

  /** Many parameter rows of one INSERT: one crossing, one commit. */
  async executeBatch(rows: ParameterBatch): Promise<Summary> {
    if (this.#bound().terms.operated !== null) {
      const message = 'functions of the server run once, not for many rows of parameters';
      throw new DatabaseError({ code: 'NotSupported', message });
    }
    const began = performance.now();
    try {
      const { summary, drawn } = await this.#run((statement) => statement.executeBatch(rows));
      this.#session.drawn.note(drawn);
      return summary;
    } finally {
      this.#observe(began);
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

  /** Throws `AccessDenied` where its session may not do what it does, or may not any more. */
  authorise(): void {
    const { guard } = this.#host;
    if (guard !== undefined) {
      const { principal } = this.#session;
      const { statement, terms } = this.#bound();
      guard.authorise(principal, terms.serverAccesses);
      guard.authorise(principal, statement.description.accesses);
    }
  }

  close(): void {
    this.#hold(null);
  }

  /**
   * Called by `Session.prepare`, and again when the catalog or the rights moved. Null when it is
   * done: the same was bound before.
   */
  bind(options: PrepareOptions, read: ParsedStatement): Promise<void> | null {
    return this.#bindKnown(read)
      ? null
      : newBinding(this.#wanted(read), options).then((binding) => {
          this.#hold(binding);
        });
  }

  /** Takes the query that was bound before for the same text and user; false when there is none. */
  #bindKnown(read: ParsedStatement): boolean {
    const known = knownBinding(this.#wanted(read));
    if (known !== null) {
      this.#hold(known);
    }
    return known !== null;
  }

  #wanted(read: ParsedStatement): Wanted {
    return { host: this.#host, session: this.#session, read, types: this.#types };
  }

  get #types(): ParameterTypes | undefined {
    return this.#lifted?.types ?? this.#declared;
  }

  #hold(binding: Binding | null): void {
    const before = this.#binding;
    this.#binding = binding;
    if (before?.isShared === false) {
      before.statement.close();
    }
  }

  #bound(): Binding {
    if (this.#binding === null) {
      throw new DatabaseError({ code: 'Closed', message: 'the prepared statement is closed' });
    }
    return this.#binding;
  }

  /** The description of what is bound now. */
  #current(): StatementDescription {
    const { statement, terms } = this.#bound();
    const { description } = statement;
    const { operated } = terms;
    if (this.#lifted !== null) {
      return { ...description, parameters: [] };
    }
    // The results of the server's functions are no parameters of the client's.
    return operated === null
      ? description
      : { ...description, parameters: description.parameters.slice(0, -operated.calls.length) };
  }

  get #plain(): Statement | null {
    const binding = this.#binding;
    const isPlain =
      binding?.terms.operated === null &&
      binding.terms.transaction === null &&
      binding.terms.serverAccesses.length === 0 &&
      this.#described === null &&
      !this.#isOutdated(binding);
    return isPlain && binding.statement.description.kind === 'select' ? binding.statement : null;
  }

  #isOutdated(binding: Binding): boolean {
    return isOutdated(binding, this.#host, this.#session);
  }

  #observe(sinceMs: number): void {
    this.#session.seconds?.observe((performance.now() - sinceMs) / 1000);
  }

  /**
   * How an execution that begins now goes; throws where it may not begin any more. Member by
   * member: a spread that others are added to takes several times as long.
   */
  #options(
    { queryId, isCancelled }: Execution,
    { rows, skip, take, countAll, last, firstChunkRows, changes }: RowOptions,
    { timeoutMs: given, elapsedMs }: TimeBounds,
  ): AllExecuteOptions {
    this.#host.refuseIfStopping();
    if (isCancelled) {
      throw new DatabaseError({ code: 'Cancelled', message: 'cancelled by user' });
    }
    // A feed has no end: what it waits for is said with each of its steps.
    const timeoutMs = changes === undefined ? this.#host.timeoutMs(given) : 0;
    const text = this.#lifted === null ? undefined : withoutSecrets(this.text);
    const bounds = { timeoutMs, elapsedMs, queryId, text };
    return { rows, skip, take, countAll, last, firstChunkRows, changes, ...bounds };
  }

  /** Does what the statement asks of the server; resolves to all values that are bound. */
  async #operate(
    { calls, parameters: given }: Omit<Operated, 'tree'>,
    parameters: Parameters,
  ): Promise<ParameterBatch> {
    const row = parameters instanceof ParameterBatch ? parameters : ParameterBatch.row(parameters);
    if (row.width < given) {
      const message = `the statement has ${given} parameters, ${row.width} are given`;
      throw new DatabaseError({ code: 'InvalidValue', message });
    }
    this.authorise();
    const results: string[] = [];
    for (const call of calls) {
      results.push(String(await this.#call(call, row)));
      if (call.operation.isChange) {
        const command = call.name.toUpperCase();
        this.#host.guard?.ran(this.#session.principal, withoutSecrets(this.text), { command });
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

  /** What is wrong, and where, is said by the text with its literals: that runs as well. */
  async #run<T>(step: Step<T>, again: BindingAgain = BOUND_AS_FIRST): Promise<T> {
    try {
      const { guard } = this.#host;
      const { kind, command } = this.description;
      const isFollowed = kind === 'ddl' || command === 'CANCEL QUERY';
      return guard !== undefined && isFollowed
        ? await this.#followed(guard, step, { ...again, mayChange: false })
        : await this.#attempt(step, again);
    } catch (error) {
      if (this.#lifted === null || !isOfText(error)) {
        throw error;
      }
    }
    this.#described = this.description;
    this.#lifted = null;
    return await this.#attempt(step, again);
  }

  /** Rights follow what changes the catalog, and the audit log records it. */
  async #followed<T>(guard: Guard, step: Step<T>, again: BindingAgain): Promise<T> {
    const { principal } = this.#session;
    const { text, description } = this;
    const change = { principal, text, description };
    const result = await guard.follow(change, () => this.#attempt(step, again));
    guard.ran(principal, withoutSecrets(text), description);
    return result;
  }

  async #attempt<T>(step: Step<T>, again: BindingAgain): Promise<T> {
    if (this.#described !== null || this.#isOutdated(this.#bound())) {
      await this.#rebind(again);
    }
    for (let attempt = 1; ; attempt += 1) {
      this.authorise();
      try {
        return await step(this.#bound().statement);
      } catch (error) {
        const failure = asDatabaseError(error);
        if (failure.code !== 'Replan' || attempt === MAX_ATTEMPTS) {
          throw failure;
        }
      }
      // Nothing was done: the tables changed after it was bound.
      if (attempt > QUICK_ATTEMPTS) {
        await setTimeout(Math.random() * Math.min(2 ** (attempt - QUICK_ATTEMPTS), MAX_PAUSE_MS));
      }
      await this.#rebind(again);
    }
  }

  /**
   * A client that received the columns of the rows gets no others, however often it asks. Where
   * binding fails, the next run binds again.
   */
  async #rebind({ mayChange, bounds }: BindingAgain): Promise<void> {
    const described = this.description;
    this.#described = described;
    const { statements } = this.#host;
    statements.forget(this.#bound().terms.key);
    await this.bind(bounds(), statements.plain(this.#lifted?.text ?? this.text));
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

function shape(description: StatementDescription): string {
  const { kind, columns, parameters, timestamp } = description;
  return JSON.stringify([kind, columns, parameters, timestamp]);
}
