/**
 * One client's conversation after login: simple and extended queries, statements, portals, and
 * the state of its block. Knows no socket: it is fed messages and sends bytes.
 *
 * `states.ts` says what each message is to each of its states; its block has others.
 *
 * Inserts between BEGIN and COMMIT are held back by the engine: the block sees them at once, the
 * others together at COMMIT. UPDATE and statements that change tables commit at once; a notice
 * says so.
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
  type StatementText,
  timeBounds,
  type TimeBounds,
} from '../../session/index.js';
import { Block, type BlockSession } from '../statements/block.js';
import { boundOf, storedOf } from '../statements/bound.js';
import { BoundValues } from '../statements/bound-values.js';
import { type BindMessage, type ClientMessage, readMessage } from '../protocol/client-messages.js';
import { commandTag } from '../protocol/command-tag.js';
import { type ConversationState, type Step, STEPS } from './states.js';
import { Copies } from '../copy/copies.js';
import { Cursors } from '../statements/cursors.js';
import { errorReport, located } from '../protocol/failure.js';
import type { FramePlace } from '../protocol/frames.js';
import { InsertRun } from '../statements/insert-run.js';
import { Portal, type PortalRun, type Send } from '../statements/portal.js';
import { Portals } from '../statements/portals.js';
import { type Eligible, Repetition } from '../statements/repetition.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import * as reply from '../protocol/server-messages.js';
import { type Line, Notifications } from './notifications.js';
import { type ConversationLimits, SessionCommands } from './session-commands.js';
import { Statements } from '../statements/statements.js';
import { TemporaryTables } from '../statements/temporary-tables.js';
import { describeRows } from '../protocol/type-oids.js';

/** What the conversation needs of a session. */
interface ConversationSession
  extends
    BlockSession,
    Pick<Session, 'prepare' | 'read' | 'drawn' | 'backend' | 'channels' | 'follow' | 'handOff'> {
  readonly principal: Principal;
  readonly database: Pick<Database, 'begin' | 'tableMetadata'>;
  /** Goes on as another user; null: as the user who logged in. */
  become(principal: Principal | null): void;
}

/** Where bytes go. */
interface Outlet {
  /** Queues bytes; they leave with the next `flush` at the latest. */
  queue(bytes: Buffer): void;
  /** Sends rows; resolves when there is room for more. */
  readonly send: Send;
  flush(): void;
}

/** Statements that a failed block takes. */
const ENDS_BLOCK: ReadonlySet<SessionStatement['kind']> = new Set([
  'Commit',
  'Rollback',
  'RollbackTo',
]);

/** What a client sends who executes prepared queries with other values. */
const REPEATED: ReadonlySet<ClientMessage['kind']> = new Set([
  'bind',
  'describe',
  'execute',
  'sync',
]);
const MICROS_PER_MILLI = 1_000;

/** Statements of a simple query that are still to run. */
interface Script {
  readonly text: string;
  readonly statements: readonly StatementText[];
  /** When its message came. */
  readonly sinceMs: number;
}

/** `script`: what follows a COPY in the text of its simple query; null: an Execute began it. */
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
  private readonly copies: Copies;
  private readonly commands: SessionCommands;
  private readonly temporary: TemporaryTables;
  private readonly notifications: Notifications;
  /** What the client repeats; null where that does not matter. */
  private readonly repetition: Repetition | null;
  private phase: Phase = READY;
  private running: Portal | null = null;
  /** While the engine answers the client. */
  private handedOff: { readonly handoff: Handoff; readonly eligible: Eligible } | null = null;
  /** Inserts that wait for more of their kind. */
  private readonly inserts: InsertRun;
  /** Ends the binding of a statement that is under way. */
  private preparing: AbortController | null = null;
  /**
   * When the first message about a statement came, by `performance.now()`; null between
   * statements. One time limit covers the messages up to the end of a run, a flush or a batch.
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
    this.block = new Block(session);
    const setting = {
      portals: this.portals,
      block: this.block,
      outlet,
      prepare: (text: string, types?: ParameterTypes) => this.prepare(text, types),
      run: (portal: Portal, maxRows: number, send: Send) => this.run(portal, maxRows, send),
      tableMetadata: (name: string) => session.database.tableMetadata(name),
    };
    this.cursors = new Cursors(setting);
    this.copies = new Copies(setting);
    const { statements } = this;
    this.repetition = limits.handsOff === true ? new Repetition(statements) : null;
    const temporary = new TemporaryTables(session);
    this.temporary = temporary;
    const { block } = this;
    const notifications = new Notifications({ session, block, outlet, line });
    this.notifications = notifications;
    const own = { session, statements, temporary, notifications, limits };
    this.commands = new SessionCommands({ ...setting, ...own });
    this.inserts = new InsertRun(outlet, (portal) => this.runPortal(portal, 0));
  }

  get state(): ConversationState {
    const { at } = this.phase;
    return at === 'ready' && this.inserts.isWaiting ? 'waiting' : at;
  }

  /** Whether it waits for what comes by itself. */
  get isListening(): boolean {
    return this.notifications.isListening;
  }

  /** A client that left does not come back. */
  private enter(phase: Phase): void {
    if (!this.isClosed) {
      this.phase = phase;
    }
  }

  /** Handles one message. False: the client said good-bye. */
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
      return (step === 'now' && this.handledAtOnce(message)) || this.handleInTurn(step, message);
    } catch (error) {
      return this.refuse(error).then(() => true);
    }
  }

  /** Takes a message that repeats what waits already; false: it has to be read and handled. */
  repeats(message: FramePlace): boolean {
    return this.inserts.repeats(message);
  }

  /** Whether it may be so. */
  get isRepeating(): boolean {
    return this.inserts.isRepeating;
  }

  /** Handles a Bind that was taken as bytes and is followed by something else than its Execute. */
  private finishBind(): void {
    const body = this.inserts.takeBack();
    if (body !== null) {
      this.bind(readMessage({ type: 'B', body }) as BindMessage);
    }
  }

  /** False: the message waits for others, or for the engine. */
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

  private async handleInTurn(step: Step, message: ClientMessage): Promise<boolean> {
    switch (step) {
      case 'settle':
        await this.settle();
        return await this.handleInTurn(STEPS[this.state][message.kind], message);
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

  /** Tells an error found while reading a message; the conversation goes on at the next Sync. */
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

  /** An error of the extended protocol: what came before it is done, what follows is skipped. */
  private async refuse(error: unknown): Promise<void> {
    const { isWaiting } = this.inserts;
    await this.settle();
    if (!isWaiting || this.phase.at !== 'skipping') {
      this.fail(error, '', 0);
      this.enter(SKIPPING);
    }
  }

  /** Stops the statement that runs now. */
  cancel(): void {
    this.handedOff?.handoff.revoke(false);
    this.copies.cancel();
    if (this.running !== null) {
      this.running.cancel();
    } else {
      this.preparing?.abort();
    }
  }

  /** Ends everything; an open block is rolled back. */
  close(): void {
    this.phase = CLOSED;
    this.handedOff?.handoff.revoke(false);
    this.preparing?.abort();
    this.running?.close();
    this.inserts.drop();
    // What it still writes goes nowhere: its transaction ends here as well.
    this.copies.abandon().catch(() => undefined);
    this.notifications.close();
    this.block.rollback();
    // The server may be ending: then there is no client left that could receive the failure.
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

  /** Runs statements one after the other; the first that fails ends them. */
  private async runAll({ text, statements, sinceMs }: Script): Promise<void> {
    for (const [index, { text: one, start }] of statements.entries()) {
      try {
        // A client's own limit covers the whole message, the server's one statement of it.
        const isLimited = this.commands.settings.timeoutMs !== undefined;
        this.sinceMs = isLimited ? sinceMs : performance.now();
        refuseIfLate(this.bounds);
        await this.runText(one);
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
      const portal = new Portal(prepared, BoundValues.none, [], (description) => {
        if (description.columns.length > 0) {
          this.outlet.queue(describeRows(description, []));
        }
      });
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
        throw new ProtocolError('0A000', 'function calls of the protocol are not supported');
      case 'password':
        throw new ProtocolError('08P01', 'unexpected password message', true);
      default:
    }
  }

  private async parse(name: string, text: string, types: readonly number[]): Promise<void> {
    this.sinceMs ??= performance.now();
    this.statements.makeRoom(name);
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

  /** What FETCH answers is what its cursor has. */
  private describeSession(statement: SessionStatement | null, formats: readonly number[]): Buffer {
    return statement?.kind === 'Fetch'
      ? this.cursors.describe(statement.name, formats)
      : reply.noData();
  }

  /** Lets an INSERT wait for more of its kind; false where it cannot. */
  private joined(name: string): boolean {
    const bound = this.portals.get(name);
    if (bound.kind !== 'engine' || bound.done || this.block.status === 'E') {
      return false;
    }
    if (!this.inserts.takes(bound.portal)) {
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
    // The run was full, or of another statement.
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
    if (bound.kind === 'declare') {
      this.complete(await this.cursors.declare(bound.declares, bound.types, bound.values));
      return;
    }
    if (bound.done) {
      throw new ProtocolError('55000', `portal "${name}" cannot be run again`);
    }
    const complete = await this.runPortal(bound.portal, Math.max(0, maxRows));
    if (complete) {
      bound.done = true;
      this.repetition?.ran(bound.portal);
    }
  }

  // ---- handoffs ----

  /** What the client repeats, and the engine may answer by itself; null where that is nothing. */
  eligible(): Eligible | null {
    const isQuiet = this.state === 'ready' && this.block.status === 'I' && !this.isListening;
    return isQuiet ? (this.repetition?.eligible() ?? null) : null;
  }

  /** Lets the engine answer the client. */
  handOff(descriptor: number, eligible: Eligible): Handoff {
    const { nanoseconds, timeoutMs } = this.commands.settings;
    const words = { protocol: 'pg', nanoseconds, statements: eligible.terms } as const;
    try {
      const handoff = this.session.handOff(descriptor, words, eligible.statements, timeoutMs);
      this.handedOff = { handoff, eligible };
      return handoff;
    } catch (error) {
      // Where descriptors are short, for example, the next one is less likely to be handed off.
      this.repetition?.returned(0);
      throw error;
    }
  }

  /** Goes on where a handoff has ended. */
  async takeBack({ last, error, reply: more, micros }: HandoffResult): Promise<void> {
    const pattern = last === null ? undefined : this.handedOff?.eligible.patterns[last];
    this.handedOff = null;
    this.repetition?.returned(micros.length);
    if (pattern === undefined) {
      return;
    }
    // Up to the next Sync its client may ask for its columns.
    const portal = new Portal(pattern.prepared, BoundValues.none, pattern.formats);
    this.portals.add('', () => ({ kind: 'engine', portal, done: true }));
    if (error !== null) {
      await this.refuse(pattern.prepared.failure(error));
    } else if (more !== null) {
      portal.resume(more, performance.now() - (micros.at(-1) ?? 0) / MICROS_PER_MILLI);
      await this.runPortal(portal, 0).catch((failure: unknown) => this.refuse(failure));
    }
  }

  /** Runs the inserts that wait; the first that fails ends what is handled before Sync. */
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

  /** The extended protocol waits for its Sync; a simple query ends. */
  private async failCopy(error: unknown, script: Script | null): Promise<void> {
    await this.copies.abandon();
    this.fail(error, '', 0);
    this.enter(script === null ? SKIPPING : READY);
    if (script !== null) {
      this.ready();
    }
  }

  // ---- running ----

  /** What a text says; in a failed block, that nothing is read. */
  private read(text: string): ParsedStatement {
    try {
      const read = this.session.read(text);
      const value = read.shows === null ? null : this.commands.settings.valueQuery(read.shows);
      return value === null ? read : this.session.read(value);
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

  /** How long the statement of the message at hand may go on. */
  private get bounds(): TimeBounds {
    this.sinceMs ??= performance.now();
    return timeBounds(this.commands.settings.timeoutMs, this.sinceMs);
  }

  private get isClosed(): boolean {
    return this.phase.at === 'closed';
  }

  private refuseIfClosed(): void {
    if (this.isClosed) {
      throw new ProtocolError('08006', 'the client is gone', true);
    }
  }

  /** Runs a portal and tells how it ended; true when nothing is left in it. */
  private async runPortal(portal: Portal, maxRows: number): Promise<boolean> {
    const run = await this.run(portal, maxRows, this.outlet.send);
    const { kind, command, notice } = portal.statement.description;
    if (!run.complete) {
      this.outlet.queue(reply.portalSuspended());
      return false;
    }
    if (this.block.status === 'T' && (kind === 'ddl' || kind === 'update')) {
      this.notify(`${command} was committed at once: ROLLBACK does not undo it`);
    }
    if (notice !== undefined) {
      this.notify(notice);
    }
    await this.temporary.note(portal.statement, this.block.status !== 'I');
    this.outlet.queue(reply.commandComplete(commandTag(kind, command, run.rows)));
    return true;
  }

  /** Runs a portal so that it can be cancelled. */
  private async run(portal: Portal, maxRows: number, send: Send): Promise<PortalRun> {
    this.refuseIfClosed();
    this.running = portal;
    try {
      return await portal.run(maxRows, send, this.bounds, this.commands.settings.nanoseconds);
    } catch (error) {
      portal.close();
      throw error;
    } finally {
      this.running = null;
      this.sinceMs = null;
    }
  }

  private notify(message: string): void {
    if (!this.commands.settings.notices) {
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

  // ---- ends ----

  /** Portals end with the block; outside one, those without a name end with their batch. */
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
