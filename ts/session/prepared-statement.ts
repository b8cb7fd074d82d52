/**
 * A bound statement: its description for the client, and its execution. It is bound again if the
 * tables, the permissions or its session's transaction have changed.
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
  cachedBinding,
  newBinding,
  type ParameterTypes,
  type PrepareOptions,
  type BindingRequest,
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

/** Maximum number of attempts to run a statement whose tables keep changing before it starts. */
const MAX_ATTEMPTS = 64;
/**
 * Number of attempts without a pause. Later attempts are delayed, so that concurrent changes can
 * finish.
 */
const QUICK_ATTEMPTS = 4;
const MAX_PAUSE_MS = 64;

/**
 * Execution options. A function is called again if the statement is bound again to changed tables.
 * Pass a function if the client has not received the row description yet.
 */
type Execute = RowOptions | ((description: StatementDescription) => RowOptions);

/** The requested rows and their format. */
export type RowOptions = Omit<ExecuteOptions, 'timeoutMs' | 'elapsedMs' | 'queryId' | 'text'>;

/**
 * Whether the error concerns the SQL text. With its original literals, the text may cause a
 * different error, or the same error at a different position.
 */
export function isOfText(error: unknown): boolean {
  return errorMeaning(asDatabaseError(error).code).isOfText;
}

/** Types for which a parameter without a declared type behaves like a quoted literal. */
const AS_IN_QUOTES = new Set<string>(['SYMBOL', 'VARCHAR', 'STRING', 'TIMESTAMP', 'TIMESTAMP_NS']);

/** An execution that has no reply yet; its statement may still be rebound. */
interface Execution {
  readonly queryId: bigint;
  isCancelled: boolean;
}

export class PreparedStatement {
  readonly text: string;
  /** The temporary table that the statement creates, if any. */
  readonly temporary: TemporaryTable | null;
  /** The setting that the statement shows, if any. */
  readonly shows: string | null;
  /** The query with a locking clause: `SELECT FOR UPDATE`; `null` without such a clause. */
  readonly locking: string | null;
  readonly #host: StatementHost;
  readonly #session: StatementSession;
  readonly #declared: ParameterTypes | undefined;
  /** The parameterised query that is bound in place of the original SQL text. */
  #lifted: LiftedQuery | null;
  /** The binding; `null` before binding and after closing. */
  #binding: Binding | null = null;
  /**
   * The description that the client received; `null` if the current description is certainly the
   * same.
   */
  #described: StatementDescription | null = null;
  /** Executions that have no reply yet. */
  readonly #waiting: Execution[] = [];

  /**
   * Internal; call `Session.prepare` instead. `declared` contains the parameter types for the
   * original SQL text with its literals.
   */
  constructor(
    host: StatementHost,
    session: StatementSession,
    { text, temporary, lifted, shows, locking }: ParsedStatement,
    declared?: ParameterTypes,
  ) {
    this.#host = host;
    this.#session = session;
    this.#lifted = lifted;
    this.text = text;
    this.temporary = temporary;
    this.shows = shows;
    this.locking = locking;
    this.#declared = declared;
  }

  /** Whether the parameterised query returns the same result as the original text. */
  get answersAsText(): boolean {
    const { kind, parameters } = this.#bound().statement.description;
    const types = this.#types ?? [];
    const isSame = (type: string, at: number): boolean =>
      types[at] === type || (types[at] === null && AS_IN_QUOTES.has(type));
    return kind === 'select' && parameters.every(isSame);
  }

  /** Columns, parameters and kind, as the client first received them. */
  get description(): StatementDescription {
    return this.#described ?? this.#current();
  }

  /**
   * The statement that the engine may run with different values without involving the session,
   * until permissions change. `null` if the session must act at every execution.
   */
  get handedOff(): Statement | null {
    return this.#lifted === null ? this.#plain : null;
  }

  /**
   * Returns the statement to hand off for an SQL text that repeats, either exactly or with
   * different literals. Uses only bindings that already exist and are shared.
   */
  eligible(read: ParsedStatement): Statement | null {
    try {
      return this.#bindKnown(read) && this.answersAsText ? this.#plain : null;
    } catch {
      return null; // it is refused at its next execution
    }
  }

  /**
   * Executes the statement once; permissions are checked at every execution. The signal cancels an
   * execution that has no reply yet.
   */
  async execute(
    parameters: Parameters,
    how: Execute,
    given: PrepareOptions = ALL_TIME,
  ): Promise<ExecuteReply> {
    this.#host.refuseIfStopping();
    const sinceMs = performance.now() - given.elapsedMs;
    const bounds = (): TimeBounds => timeBounds(given.timeoutMs, sinceMs);
    const mayChange = typeof how === 'function';
    const execution = { queryId: this.#host.database.newQueryId(), isCancelled: false };
    this.#waiting.push(execution);
    const aborted = (): void => {
      this.#cancel(execution);
    };
    given.signal?.addEventListener('abort', aborted, { once: true });
    try {
      const { operated } = this.#bound().terms;
      const values = operated === null ? parameters : await this.#operate(operated, parameters);
      const step: Step<ExecuteReply> = (statement) => {
        const options = mayChange ? how(statement.description) : how;
        const all = this.#options(execution, options, bounds());
        return statement.execute(this.#lifted?.values ?? values, all);
      };
      const reply = await this.#run(step, { mayChange, bounds });
      this.#session.sequenceValues.note(reply.sequenceValues);
      if (reply.stream === null) {
        this.#observe(sinceMs);
      }
      return this.resumed(reply, sinceMs);
    } catch (error) {
      this.#observe(sinceMs);
      throw this.#host.failure(error);
    } finally {
      given.signal?.removeEventListener('abort', aborted);
      this.#waiting.splice(this.#waiting.indexOf(execution), 1);
    }
  }

  /**
   * Resumes an execution that began at `sinceMs`, possibly in the engine. Returns a reply that
   * records the execution's duration when its stream ends.
   */
  resumed(reply: ExecuteReply, sinceMs: number): ExecuteReply {
    const { stream } = reply;
    const ended = (): void => {
      this.#observe(sinceMs);
    };
    return stream === null
      ? reply
      : { ...reply, stream: new HostStream(this.#host, stream, ended) };
  }

  /** Converts an error from an execution that the engine started into an error for the client. */
  failure(error: unknown): DatabaseError {
    return this.#host.failure(error);
  }

  /** Executes an INSERT for many parameter rows, in one native call and one commit. */
  async executeBatch(rows: ParameterBatch): Promise<Summary> {
    if (this.#bound().terms.operated !== null) {
      const message = 'server functions cannot run with multiple parameter rows';
      throw new DatabaseError({ code: 'NotSupported', message });
    }
    const began = performance.now();
    try {
      const { summary, sequenceValues } = await this.#run((statement) =>
        statement.executeBatch(rows),
      );
      this.#session.sequenceValues.note(sequenceValues);
      return summary;
    } finally {
      this.#observe(began);
    }
  }

  /** Opens an appender for COPY data, whose values become the parameters of this INSERT. */
  async openCopy(form: CopyForm): Promise<CopyAppender> {
    return await this.#run((statement) => statement.openCopy(form));
  }

  /** Cancels executions that are waiting for their first rows; a stream has its own `cancel`. */
  cancel(): void {
    for (const execution of this.#waiting) {
      this.#cancel(execution);
    }
  }

  #cancel(execution: Execution): void {
    execution.isCancelled = true;
    this.#host.database.cancelQuery(execution.queryId);
  }

  /** Throws `AccessDenied` if the session may not, or may no longer, run the statement. */
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
    this.#setBinding(null);
  }

  /**
   * Called by `Session.prepare`, and again after changes to the catalog or the permissions. Returns
   * `null` if the statement could reuse an existing binding.
   */
  bind(options: PrepareOptions, read: ParsedStatement): Promise<void> | null {
    return this.#bindKnown(read)
      ? null
      : newBinding(this.#bindingRequest(read), options).then((binding) => {
          this.#setBinding(binding);
        });
  }

  /**
   * Reuses a query that was already bound for the same SQL text and user; returns false if there is
   * none.
   */
  #bindKnown(read: ParsedStatement): boolean {
    const known = cachedBinding(this.#bindingRequest(read));
    if (known !== null) {
      this.#setBinding(known);
    }
    return known !== null;
  }

  #bindingRequest(read: ParsedStatement): BindingRequest {
    return { host: this.#host, session: this.#session, read, types: this.#types };
  }

  get #types(): ParameterTypes | undefined {
    return this.#lifted?.types ?? this.#declared;
  }

  #setBinding(binding: Binding | null): void {
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

  /** The current binding's description. */
  #current(): StatementDescription {
    const { statement, terms } = this.#bound();
    const { description } = statement;
    const { operated } = terms;
    if (this.#lifted !== null) {
      return { ...description, parameters: [] };
    }
    // Omits the parameters that represent results of server functions.
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
   * Returns the options for an execution that starts now; throws if the execution must not start.
   * The members are listed one by one, because spreading an object takes several times as long.
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
    // A feed has no end, so it has no timeout; each of its steps specifies a wait instead.
    const timeoutMs = changes === undefined ? this.#host.timeoutMs(given) : 0;
    const text = this.#lifted === null ? undefined : withoutSecrets(this.text);
    const bounds = { timeoutMs, elapsedMs, queryId, text };
    return { rows, skip, take, countAll, last, firstChunkRows, changes, ...bounds };
  }

  /** Runs the statement's server functions. Resolves to the values of all parameters. */
  async #operate(
    { calls, parameters: given }: Omit<Operated, 'tree'>,
    parameters: Parameters,
  ): Promise<ParameterBatch> {
    const row = parameters instanceof ParameterBatch ? parameters : ParameterBatch.row(parameters);
    if (row.width < given) {
      const message = `the statement has ${given} parameters, but found ${row.width} values`;
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

  /**
   * Runs the statement. If the parameterised query fails with an error about the SQL text, runs the
   * original text instead, so that the error's message and position refer to that text.
   */
  async #run<T>(step: Step<T>, rebinding: Rebinding = SAME_COLUMNS): Promise<T> {
    try {
      const { guard } = this.#host;
      const { kind, command } = this.description;
      const isFollowed = kind === 'ddl' || command === 'CANCEL QUERY';
      return guard !== undefined && isFollowed
        ? await this.#followed(guard, step, { ...rebinding, mayChange: false })
        : await this.#attempt(step, rebinding);
    } catch (error) {
      if (this.#lifted === null || !isOfText(error)) {
        throw error;
      }
    }
    this.#described = this.description;
    this.#lifted = null;
    return await this.#attempt(step, rebinding);
  }

  /**
   * Runs a statement that changes the catalog. Afterwards updates the permissions and records the
   * statement in the audit log.
   */
  async #followed<T>(guard: Guard, step: Step<T>, rebinding: Rebinding): Promise<T> {
    const { principal } = this.#session;
    const { text, description } = this;
    const change = { principal, text, description };
    const result = await guard.follow(change, () => this.#attempt(step, rebinding));
    guard.ran(principal, withoutSecrets(text), description);
    return result;
  }

  async #attempt<T>(step: Step<T>, rebinding: Rebinding): Promise<T> {
    if (this.#described !== null || this.#isOutdated(this.#bound())) {
      await this.#rebind(rebinding);
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
      // The attempt had no effect, because the tables changed after binding.
      if (attempt > QUICK_ATTEMPTS) {
        await setTimeout(Math.random() * Math.min(2 ** (attempt - QUICK_ATTEMPTS), MAX_PAUSE_MS));
      }
      await this.#rebind(rebinding);
    }
  }

  /**
   * Binds the statement again. A client that already received the columns must not get different
   * columns. If binding fails, the next execution tries again.
   */
  async #rebind({ mayChange, bounds }: Rebinding): Promise<void> {
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

/** How to rebind a statement during an execution. */
interface Rebinding {
  /** Whether the columns may be different after the statement is bound again. */
  readonly mayChange: boolean;
  /** Returns the remaining time. */
  readonly bounds: () => TimeBounds;
}

const SAME_COLUMNS: Rebinding = { mayChange: false, bounds: () => ALL_TIME };

function shape(description: StatementDescription): string {
  const { kind, columns, parameters, timestamp } = description;
  return JSON.stringify([kind, columns, parameters, timestamp]);
}
