/**
 * One client's conversation after login: simple and extended queries, statements, portals and the
 * state of its transaction block. It uses no socket: it receives messages and sends bytes.
 *
 * `states.ts` defines how each message is handled in each state; the transaction block has separate
 * states.
 *
 * The engine buffers inserts between BEGIN and COMMIT: the block sees them immediately, other
 * sessions see all of them at COMMIT. UPDATE and statements that change tables commit immediately;
 * a notice reports this.
 */
import {
  type Database,
  DatabaseError,
  type HandoffResult,
  type Handoff,
  type ParameterTypes,
  type ParsedStatement,
  type PreparedStatement,
  type Principal,
  refuseIfLate,
  type Session,
  type SessionStatement,
  splitStatements,
  type StatementDescription,
  type StatementText,
  timeBounds,
  type TimeBounds,
} from '../../session/index.js';
import { Block, type BlockSession } from '../statements/block.js';
import { boundExecute, boundOf, storedOf } from '../statements/bound.js';
import { BoundValues } from '../statements/bound-values.js';
import { type BindMessage, type ClientMessage, readMessage } from '../protocol/client-messages.js';
import { commandTag } from '../protocol/command-tag.js';
import { type ConversationState, type Step, STEPS } from './states.js';
import { Copies } from '../copy/copies.js';
import { Cursors } from '../statements/cursors.js';
import { errorReport, located } from '../protocol/failure.js';
import type { FrameRange } from '../protocol/frames.js';
import { InsertRun } from '../statements/insert-run.js';
import { type Executable, Portal, type PortalRun, type Send } from '../statements/portal.js';
import { Portals } from '../statements/portals.js';
import { changesNothing, refuseCommand, refuseWrite } from '../statements/read-only.js';
import { type Eligible, Repetition } from '../statements/repetition.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import * as reply from '../protocol/server-messages.js';
import { type Line, Notifications } from './notifications.js';
import { type ConversationLimits, SessionCommands } from './session-commands.js';
import { SessionSettings } from '../statements/session-settings.js';
import { Shows } from '../statements/shows.js';
import { SqlStatements } from '../statements/sql-statements.js';
import { Statements } from '../statements/statements.js';
import { TemporaryTables } from '../statements/temporary-tables.js';
import { describeRows } from '../protocol/type-oids.js';

/** The session interface that a conversation needs. */
interface ConversationSession
  extends
    BlockSession,
    Pick<
      Session,
      'prepare' | 'read' | 'sequenceValues' | 'backend' | 'channels' | 'follow' | 'handOff'
    > {
  readonly principal: Principal;
  readonly database: Pick<Database, 'begin' | 'tableMetadata'>;
  /** Switches to another user; `null` restores the user who logged in. */
  become(principal: Principal | null): void;
}

/** Destination for outgoing bytes. */
interface Outlet {
  /** Buffers bytes, which are sent at the next `flush` at the latest. */
  queue(bytes: Buffer): void;
  /** Sends rows; resolves when more data may be sent. */
  readonly send: Send;
  flush(): void;
}

/** Statements that are accepted in a failed block. */
const ENDS_BLOCK: ReadonlySet<SessionStatement['kind']> = new Set([
  'Commit',
  'Rollback',
  'RollbackTo',
]);

/** Messages that a client sends to execute prepared queries with different values. */
const REPEATED: ReadonlySet<ClientMessage['kind']> = new Set([
  'bind',
  'describe',
  'execute',
  'sync',
]);
const MICROS_PER_MILLI = 1_000;

/** A simple query's remaining statements. */
interface Script {
  readonly text: string;
  readonly statements: readonly StatementText[];
  /** Arrival time of the simple query's message. */
  readonly sinceMs: number;
}

/**
 * While COPY data arrives, `script` contains the statements after the COPY in the same simple
 * query. It is `null` if Execute started the COPY.
 */
type Phase =
  | { readonly at: Exclude<ConversationState, 'waiting' | 'copying'> }
  | { readonly at: 'copying'; readonly script: Script | null };

const READY: Phase = { at: 'ready' };
const SKIPPING: Phase = { at: 'skipping' };
const CLOSED: Phase = { at: 'closed' };

export class Conversation {
  private readonly session: ConversationSession;
  private readonly outlet: Outlet;
  private readonly statements: Statements;
  private readonly portals: Portals;
  private readonly block: Block;
  private readonly cursors: Cursors;
  private readonly sqlStatements: SqlStatements;
  private readonly shows: Shows;
  private readonly copies: Copies;
  private readonly settings: SessionSettings;
  private readonly commands: SessionCommands;
  private readonly temporary: TemporaryTables;
  private readonly notifications: Notifications;
  /** Detects repeated queries; `null` if handoffs are disabled. */
  private readonly repetition: Repetition | null;
  private phase: Phase = READY;
  private running: Portal | null = null;
  /** The current handoff; `null` if there is none. */
  private handedOff: { readonly handoff: Handoff; readonly eligible: Eligible } | null = null;
  /** Buffered inserts, to be committed together. */
  private readonly inserts: InsertRun;
  /** Aborts the binding in progress. */
  private preparing: AbortController | null = null;
  /**
   * Arrival time of the current statement's first message, as measured by `performance.now()`;
   * `null` between statements. One timeout covers all messages up to the end of an execution, a
   * flush or a batch.
   */
  private sinceMs: number | null = null;

  constructor(
    session: ConversationSession,
    outlet: Outlet,
    limits: ConversationLimits,
    line?: Line,
  ) {
    this.session = session;
    this.outlet = outlet;
    this.statements = new Statements(limits.statementsMax);
    this.portals = new Portals(limits.statementsMax);
    this.settings = new SessionSettings(limits.startup, session.principal.readOnly);
    const { settings } = this;
    this.block = new Block(session, settings);
    const setting = {
      portals: this.portals,
      block: this.block,
      outlet,
      prepare: (text: string, types?: ParameterTypes) => this.prepare(text, types),
      run: (portal: Portal, maxRows: number, send: Send) => this.run(portal, maxRows, send),
      refuseWrite: (statement: Executable) => {
        this.refuseWrite(statement);
      },
      tableMetadata: (name: string) => session.database.tableMetadata(name),
    };
    this.cursors = new Cursors(setting);
    this.copies = new Copies(setting);
    const { statements } = this;
    const runPortal = (portal: Portal, maxRows: number): Promise<boolean> =>
      this.runPortal(portal, maxRows);
    this.sqlStatements = new SqlStatements({
      ...setting,
      statements,
      read: (text) => this.read(text),
      prepare: (text, types) => this.prepare(text, types),
      runPart: (portal, maxRows, send) => this.runPart(portal, maxRows, send),
      runPortal,
    });
    this.shows = new Shows({
      settings,
      session,
      prepare: (read) => this.prepare(read),
      runPortal,
    });
    this.repetition = limits.handsOff === true ? new Repetition(statements) : null;
    const temporary = new TemporaryTables(session);
    this.temporary = temporary;
    const { block } = this;
    const notifications = new Notifications({ session, block, outlet, line });
    this.notifications = notifications;
    const own = { session, statements, temporary, notifications, settings };
    this.commands = new SessionCommands({ ...setting, ...own });
    this.inserts = new InsertRun(outlet, (portal) => this.runPortal(portal, 0));
  }

  get state(): ConversationState {
    const { at } = this.phase;
    return at === 'ready' && this.inserts.isWaiting ? 'waiting' : at;
  }

  /** Settings of which the client is notified, with their initial values. */
  get reportedSettings(): readonly (readonly [string, string])[] {
    return this.settings.reported();
  }

  /** Whether the client listens for notifications. */
  get isListening(): boolean {
    return this.notifications.isListening;
  }

  /** Changes the phase, unless the conversation is closed. */
  private enter(phase: Phase): void {
    if (!this.isClosed) {
      this.phase = phase;
    }
  }

  /** Handles a message. Returns false if the client terminated the session. */
  handle(message: ClientMessage): boolean | Promise<boolean> {
    this.finishBind();
    if (!REPEATED.has(message.kind)) {
      this.repetition?.interrupt();
    }
    const step = STEPS[this.state][message.kind];
    if (step === 'skip') {
      return true;
    }
    try {
      return (step === 'now' && this.handledAtOnce(message)) || this.handleInOrder(step, message);
    } catch (error) {
      return this.refuse(error).then(() => true);
    }
  }

  /**
   * Accepts a message that repeats the previous INSERT with different values. Returns false if the
   * message must be decoded and handled as usual.
   */
  repeats(message: FrameRange): boolean {
    return this.inserts.repeats(message);
  }

  /** Whether the next messages may repeat the previous INSERT. */
  get isRepeating(): boolean {
    return this.inserts.isRepeating;
  }

  /** Decodes and handles a Bind that was accepted undecoded but was not followed by its Execute. */
  private finishBind(): void {
    const body = this.inserts.takeUnexecutedBind();
    if (body !== null) {
      this.bind(readMessage({ type: 'B', body }) as BindMessage);
    }
  }

  /**
   * Handles a message immediately. Returns false if it must wait for buffered inserts or for the
   * engine.
   */
  private handledAtOnce(message: ClientMessage): boolean {
    switch (message.kind) {
      case 'bind':
        this.bind(message);
        return true;
      case 'describe':
        this.describe(message.what, message.name);
        return true;
      case 'execute':
        return this.joined(message.portal);
      default:
        return false;
    }
  }

  private async handleInOrder(step: Step, message: ClientMessage): Promise<boolean> {
    switch (step) {
      case 'settle':
        await this.settle();
        return await this.handleInOrder(STEPS[this.state][message.kind], message);
      case 'skip':
        return true;
      case 'end':
        return false;
      case 'copy':
        await this.copyMessage(message);
        return true;
      case 'query':
        this.enter(READY);
        await this.simpleQuery(message.kind === 'query' ? message.text : '');
        return true;
      case 'sync':
        this.enter(READY);
        this.sinceMs = null;
        this.endOfBatch();
        this.ready();
        return true;
      case 'now':
      case 'run':
        await this.extended(message).catch((error: unknown) => this.refuse(error));
        return true;
    }
  }

  /** Reports a decoding error; the conversation resumes at the next Sync. */
  async malformed(error: unknown, simple: boolean): Promise<void> {
    this.finishBind();
    if (this.phase.at === 'copying') {
      await this.failCopy(error, this.phase.script);
      return;
    }
    if (simple || this.phase.at !== 'skipping') {
      await this.refuse(error);
    }
    if (simple) {
      this.enter(READY);
      this.ready();
    }
  }

  /**
   * Handles an error in the extended protocol: earlier messages are completed, and later messages
   * are skipped until Sync.
   */
  private async refuse(error: unknown): Promise<void> {
    const { isWaiting } = this.inserts;
    await this.settle();
    if (!isWaiting || this.phase.at !== 'skipping') {
      this.fail(error, '', 0);
      this.enter(SKIPPING);
    }
  }

  /** Cancels the running statement. */
  cancel(): void {
    this.handedOff?.handoff.revoke(false);
    this.copies.cancel();
    if (this.running !== null) {
      this.running.cancel();
    } else {
      this.preparing?.abort();
    }
  }

  /** Ends the conversation and rolls back an open block. */
  close(): void {
    this.phase = CLOSED;
    this.handedOff?.handoff.revoke(false);
    this.preparing?.abort();
    this.running?.close();
    this.inserts.drop();
    // Errors are ignored, because the transaction of the COPY ends here anyway.
    this.copies.abandon().catch(() => undefined);
    this.notifications.close();
    this.block.rollback();
    // Errors are ignored, because no client could receive them while the server is stopping.
    this.temporary.dropAll().catch(() => undefined);
    this.portals.closeAll();
    this.statements.closeAll();
  }

  // ---- simple query ----

  private async simpleQuery(text: string): Promise<void> {
    this.portals.close('');
    this.statements.close('');
    const sinceMs = performance.now();
    const statements = splitStatements(text);
    if (statements.length === 0) {
      this.outlet.queue(reply.emptyQueryResponse());
    }
    await this.runAll({ text, statements, sinceMs });
  }

  /** Runs statements in order, and stops at the first error. */
  private async runAll({ text, statements, sinceMs }: Script): Promise<void> {
    for (const [index, { text: statementText, start }] of statements.entries()) {
      try {
        // A timeout set by the client covers the whole message; the server's timeout covers each
        // statement.
        const isLimited = this.settings.timeoutMs !== undefined;
        this.sinceMs = isLimited ? sinceMs : performance.now();
        refuseIfLate(this.bounds);
        await this.runText(statementText);
      } catch (error) {
        this.fail(error, text, start);
        break;
      }
      if (this.phase.at === 'copying') {
        this.enter({
          at: 'copying',
          script: { text, statements: statements.slice(index + 1), sinceMs },
        });
        return;
      }
    }
    this.ready();
  }

  private async runText(text: string): Promise<void> {
    const read = this.read(text);
    if (read.dispatch.runner === 'session') {
      await this.runSession(read.dispatch.statement, [], true);
      return;
    }
    this.block.refuseIfFailed();
    const prepared = await this.prepare(read);
    try {
      const portal = new Portal(prepared, BoundValues.none, [], this.describeFirst);
      await this.runPortal(portal, 0);
    } finally {
      prepared.close();
    }
  }

  // ---- extended query ----

  private async extended(message: ClientMessage): Promise<void> {
    switch (message.kind) {
      case 'parse':
        await this.parse(message.name, message.text, message.types);
        break;
      case 'execute':
        await this.execute(message.portal, message.maxRows);
        break;
      case 'close':
        if (message.what === 'S') {
          this.statements.close(message.name);
        } else {
          this.portals.close(message.name);
        }
        this.outlet.queue(reply.closeComplete());
        break;
      case 'flush':
        this.outlet.flush();
        this.sinceMs = null;
        break;
      case 'functionCall':
        throw new ProtocolError('0A000', 'function call messages are not supported');
      case 'password':
        throw new ProtocolError('08P01', 'unexpected password message', true);
      default:
    }
  }

  private async parse(name: string, text: string, types: readonly number[]): Promise<void> {
    this.sinceMs ??= performance.now();
    this.statements.reserve(name);
    this.statements.add(
      name,
      await storedOf(text, types, {
        read: (one) => this.read(one),
        prepare: (one, declared) => {
          this.block.refuseIfFailed();
          return this.prepare(one, declared);
        },
      }),
    );
    this.outlet.queue(reply.parseComplete());
  }

  private bind(message: BindMessage): void {
    const stored = this.statements.get(message.statement);
    if (stored.kind === 'engine') {
      this.block.refuseIfFailed();
    }
    this.portals.add(message.portal, () => boundOf(stored, message));
    this.repetition?.bind(message, stored);
    this.inserts.answer(reply.bindComplete());
  }

  private describe(what: 'S' | 'P', name: string): void {
    if (what === 'P') {
      const bound = this.portals.get(name);
      if (bound.kind === 'engine') {
        this.inserts.answer(describeRows(bound.portal.statement.description, bound.portal.formats));
      } else if (bound.kind === 'execute') {
        this.inserts.answer(this.sqlStatements.describe(bound));
      } else {
        const statement = bound.kind === 'session' ? bound.statement : null;
        const formats = bound.kind === 'session' ? bound.formats : [];
        this.inserts.answer(this.describeSession(statement, formats));
      }
      return;
    }
    const stored = this.statements.get(name);
    const oids = stored.kind === 'engine' ? stored.oids : [];
    this.inserts.answer(reply.parameterDescription(oids));
    if (stored.kind === 'engine' && stored.declares === null) {
      this.inserts.answer(describeRows(stored.prepared.description, []));
    } else {
      const statement = stored.kind === 'session' ? stored.statement : null;
      this.inserts.answer(this.describeSession(statement, []));
    }
  }

  /**
   * Returns the description of a session statement. Only FETCH and EXECUTE have columns, which are
   * those of the cursor and of the prepared statement.
   */
  private describeSession(statement: SessionStatement | null, formats: readonly number[]): Buffer {
    switch (statement?.kind) {
      case 'Fetch':
        return this.cursors.describe(statement.name, formats);
      case 'Execute':
        return this.sqlStatements.describe(boundExecute(statement));
      default:
        return reply.noData();
    }
  }

  /**
   * Buffers an INSERT, to be committed together with others; returns false if that is impossible.
   */
  private joined(name: string): boolean {
    const bound = this.portals.get(name);
    if (bound.kind !== 'engine' || bound.done || this.block.status === 'E') {
      return false;
    }
    if (this.settings.isReadOnly) {
      return false;
    }
    if (!this.inserts.accepts(bound.portal)) {
      return false;
    }
    bound.done = true;
    this.inserts.add(bound.portal, name);
    return true;
  }

  private async execute(name: string, maxRows: number): Promise<void> {
    if (this.inserts.isWaiting) {
      await this.settle();
    }
    // Runs if the buffer was full or contained executions of a different statement.
    if (this.phase.at === 'skipping' || this.joined(name)) {
      return;
    }
    const bound = this.portals.get(name);
    if (bound.kind === 'empty') {
      this.outlet.queue(reply.emptyQueryResponse());
      return;
    }
    if (bound.kind === 'session') {
      await this.runSession(bound.statement, bound.formats);
      return;
    }
    this.block.refuseIfFailed();
    if (bound.kind === 'execute') {
      await this.sqlStatements.execute(bound, Math.max(0, maxRows), null);
      return;
    }
    if (bound.kind === 'declare') {
      this.complete(await this.cursors.declare(bound.declares, bound.types, bound.values));
      return;
    }
    if (bound.done) {
      throw new ProtocolError('55000', `portal "${name}" cannot be run again`);
    }
    if (await this.shows.run(bound.portal)) {
      bound.done = true;
      return;
    }
    const complete = await this.runPortal(bound.portal, Math.max(0, maxRows));
    if (complete) {
      bound.done = true;
      this.repetition?.ran(bound.portal);
    }
  }

  // ---- handoffs ----

  /** The repeated queries that the engine may answer; `null` if there are none. */
  eligible(): Eligible | null {
    const isQuiet = this.state === 'ready' && this.block.status === 'I' && !this.isListening;
    return isQuiet ? (this.repetition?.eligible() ?? null) : null;
  }

  /** Hands the connection off to the engine. */
  handOff(descriptor: number, eligible: Eligible): Handoff {
    const { nanoseconds, timeoutMs } = this.settings;
    const terms = { protocol: 'pg', nanoseconds, statements: eligible.terms } as const;
    try {
      const handoff = this.session.handOff(descriptor, terms, eligible.statements, timeoutMs);
      this.handedOff = { handoff, eligible };
      return handoff;
    } catch (error) {
      // After a failure, for example for lack of file descriptors, handoffs are attempted less
      // often.
      this.repetition?.returned(0);
      throw error;
    }
  }

  /** Resumes after a handoff. */
  async endHandoff({ last, error, reply: more, micros }: HandoffResult): Promise<void> {
    const pattern = last === null ? undefined : this.handedOff?.eligible.patterns[last];
    this.handedOff = null;
    this.repetition?.returned(micros.length);
    if (pattern === undefined) {
      return;
    }
    // The portal remains, because the client may still describe it until the next Sync.
    const portal = new Portal(pattern.prepared, BoundValues.none, pattern.formats);
    this.portals.add('', () => ({ kind: 'engine', portal, done: true }));
    if (error !== null) {
      await this.refuse(pattern.prepared.failure(error));
    } else if (more !== null) {
      portal.resume(more, performance.now() - (micros.at(-1) ?? 0) / MICROS_PER_MILLI);
      await this.runPortal(portal, 0).catch((failure: unknown) => this.refuse(failure));
    }
  }

  /** Runs the buffered inserts; after the first error, all messages until Sync are skipped. */
  private async settle(): Promise<void> {
    try {
      await this.inserts.settle();
    } catch (error) {
      this.fail(error, '', 0);
      this.enter(SKIPPING);
    }
  }

  // ---- COPY … FROM STDIN ----

  private async copyMessage(message: ClientMessage): Promise<void> {
    const script = this.phase.at === 'copying' ? this.phase.script : null;
    try {
      await this.copies.handle(message);
    } catch (error) {
      await this.failCopy(error, script);
      return;
    }
    if (this.copies.isOpen || this.isClosed) {
      return;
    }
    this.enter(READY);
    if (script !== null) {
      await this.runAll(script);
    }
  }

  /** Reports a failed COPY. The extended protocol then waits for Sync; a simple query ends. */
  private async failCopy(error: unknown, script: Script | null): Promise<void> {
    await this.copies.abandon();
    this.fail(error, '', 0);
    this.enter(script === null ? SKIPPING : READY);
    if (script !== null) {
      this.ready();
    }
  }

  // ---- execution ----

  /** Parses SQL text. In a failed block, reports the failed block instead of a syntax error. */
  private read(text: string): ParsedStatement {
    try {
      return this.shows.withValue(this.session.read(text));
    } catch (error) {
      this.block.refuseIfFailed();
      throw error;
    }
  }

  private async prepare(
    text: string | ParsedStatement,
    types?: ParameterTypes,
  ): Promise<PreparedStatement> {
    this.refuseIfClosed();
    const preparing = new AbortController();
    this.preparing = preparing;
    try {
      const options = { ...this.bounds, signal: preparing.signal };
      const prepared = await this.session.prepare(text, types, options);
      if (preparing.signal.aborted) {
        prepared.close();
        throw new DatabaseError({ code: 'Cancelled', message: 'cancelled by user' });
      }
      return prepared;
    } finally {
      this.preparing = null;
    }
  }

  /** The current statement's time limits. */
  private get bounds(): TimeBounds {
    this.sinceMs ??= performance.now();
    return timeBounds(this.settings.timeoutMs, this.sinceMs);
  }

  private get isClosed(): boolean {
    return this.phase.at === 'closed';
  }

  private refuseIfClosed(): void {
    if (this.isClosed) {
      throw new ProtocolError('08006', 'the client has disconnected', true);
    }
  }

  /**
   * Runs a portal and sends its result. Returns true when all of the portal's rows have been sent.
   */
  private async runPortal(portal: Portal, maxRows: number): Promise<boolean> {
    this.refuseWrite(portal.statement);
    const run = await this.run(portal, maxRows, this.outlet.send);
    const { kind, command, notice } = portal.statement.description;
    if (!run.complete) {
      this.outlet.queue(reply.portalSuspended());
      return false;
    }
    const isChange = (kind === 'ddl' && !changesNothing(command)) || kind === 'update';
    if (this.block.status === 'T' && isChange) {
      this.notify(`${command} was committed immediately: ROLLBACK does not undo it`);
    }
    if (notice !== undefined) {
      this.notify(notice);
    }
    await this.temporary.note(portal.statement, this.block.status !== 'I');
    this.outlet.queue(reply.commandComplete(commandTag(kind, command, run.rows)));
    return true;
  }

  /** Runs a portal that can be cancelled while it runs. */
  private async run(portal: Portal, maxRows: number, send: Send): Promise<PortalRun> {
    this.refuseIfClosed();
    this.running = portal;
    try {
      if (portal.statement.shows === null) {
        this.settings.queried();
      }
      return await portal.run(maxRows, send, this.bounds, this.settings.nanoseconds);
    } catch (error) {
      portal.close();
      throw error;
    } finally {
      this.running = null;
      this.sinceMs = null;
    }
  }

  /** Runs a query that is part of a statement, within the time limit of that statement. */
  private async runPart(portal: Portal, maxRows: number, send: Send): Promise<PortalRun> {
    const { sinceMs } = this;
    try {
      return await this.run(portal, maxRows, send);
    } finally {
      this.sinceMs = sinceMs;
    }
  }

  private refuseWrite(statement: Executable): void {
    if (this.settings.isReadOnly) {
      refuseWrite(statement);
    }
  }

  /** Sends the row description of a simple query. */
  private readonly describeFirst = (description: StatementDescription): void => {
    if (description.columns.length > 0) {
      this.outlet.queue(describeRows(description, []));
    }
  };

  private notify(message: string): void {
    if (!this.settings.notices) {
      return;
    }
    this.outlet.queue(reply.noticeResponse({ severity: 'NOTICE', sqlState: '00000', message }));
  }

  private async runSession(
    statement: SessionStatement,
    formats: readonly number[],
    isSimple = false,
  ): Promise<void> {
    if (!ENDS_BLOCK.has(statement.kind)) {
      this.block.refuseIfFailed();
    }
    switch (statement.kind) {
      case 'CopyIn':
        if (this.settings.isReadOnly) {
          refuseCommand('insert', 'COPY FROM');
        }
        await this.copies.start(statement);
        this.enter({ at: 'copying', script: null });
        this.outlet.flush();
        return;
      case 'CopyOut':
        await this.copies.start(statement);
        this.outlet.flush();
        return;
      case 'DeclareCursor':
        this.complete(await this.cursors.declare(statement, undefined, BoundValues.none));
        return;
      case 'Prepare':
        this.complete(await this.sqlStatements.prepare(statement));
        return;
      case 'Execute':
        await this.sqlStatements.execute(boundExecute(statement), 0, this.describeFirst);
        return;
      case 'Fetch':
      case 'Move':
        if (isSimple && statement.kind === 'Fetch') {
          this.outlet.queue(this.cursors.describe(statement.name, []));
        }
        this.complete(await this.cursors.fetch(statement, formats, this.outlet.send));
        return;
      default:
        this.complete(await this.commands.apply(statement));
    }
  }

  private complete(tag: string): void {
    this.outlet.queue(reply.commandComplete(tag));
  }

  // ---- batch end ----

  /**
   * Called at the end of a batch. Outside a block, the unnamed portal ends here; inside a block,
   * portals end with their block.
   */
  private endOfBatch(): void {
    if (this.block.status === 'I') {
      this.portals.close('');
    }
  }

  private ready(): void {
    this.notifications.deliver();
    this.outlet.queue(reply.readyForQuery(this.block.status));
    this.outlet.flush();
  }

  private fail(error: unknown, text: string, offset: number): void {
    this.block.fail();
    if (error instanceof ProtocolError && error.fatal) {
      throw error;
    }
    this.outlet.queue(errorReport(located(error, text, offset)));
  }
}
