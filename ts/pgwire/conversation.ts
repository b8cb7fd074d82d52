/**
 * One client's conversation after login: simple and extended queries, statements, portals, and
 * the state of its block. Knows no socket: it is fed messages and sends bytes.
 *
 * States: idle (`I`), in a block (`T`), in a failed block (`E`); and, in each of them, skipping to
 * Sync after an error of the extended protocol.
 *
 * Today's limits: inserts between BEGIN and COMMIT are held back by the engine, become visible
 * together at COMMIT and are gone after ROLLBACK, but the block itself does not see them before.
 * UPDATE and statements that change tables commit at once; a notice says so.
 */
import {
  DatabaseError,
  type ParameterTypes,
  type PreparedStatement,
  type Principal,
  splitStatements,
  type Transaction,
} from '../session/index.js';
import { type Bound, boundOf, type Stored } from './bound.js';
import type { BindMessage, ClientMessage } from './client-messages.js';
import { commandTag, sessionCommand, type SessionCommand, timeoutOf } from './commands.js';
import { errorReport, located } from './failure.js';
import { InsertRun } from './insert-run.js';
import { type Executable, Portal, type Send } from './portal.js';
import { ProtocolError } from './protocol-error.js';
import * as reply from './server-messages.js';
import { declaredType, describeField, oidOf } from './types.js';

/** What the conversation needs of a session. */
export interface ConversationSession {
  readonly principal: Principal;
  transaction: Transaction | null;
  readonly database: { begin(): Transaction };
  prepare(text: string, parameterTypes?: ParameterTypes): Promise<PreparedStatement>;
}

/** Where bytes go. */
export interface Outlet {
  /** Queues bytes; they leave with the next `flush` at the latest. */
  queue(bytes: Buffer): void;
  /** Sends rows; resolves when there is room for more. */
  readonly send: Send;
  flush(): void;
}

export interface ConversationLimits {
  /** Prepared statements, and portals, of one session. */
  readonly statementsMax: number;
  /** Sent in place of the server's own when the client asked for one. */
  readonly timeoutMs?: number | undefined;
}

type Status = 'I' | 'T' | 'E';

export class Conversation {
  private readonly session: ConversationSession;
  private readonly outlet: Outlet;
  private readonly limits: ConversationLimits;
  private readonly statements = new Map<string, Stored>();
  private readonly portals = new Map<string, Bound>();
  private status: Status = 'I';
  private skipping = false;
  private timeoutMs: number | undefined;
  private running: Portal | null = null;
  /** Inserts that wait for more of their kind. */
  private readonly inserts: InsertRun;
  private preparing = false;
  private cancelAsked = false;

  constructor(session: ConversationSession, outlet: Outlet, limits: ConversationLimits) {
    this.session = session;
    this.outlet = outlet;
    this.limits = limits;
    this.timeoutMs = limits.timeoutMs;
    this.inserts = new InsertRun(outlet, (portal) => this.runPortal(portal, 0));
  }

  /** Whether a block is open. */
  get inBlock(): boolean {
    return this.status !== 'I';
  }

  /** Handles one message. False: the client said good-bye. */
  async handle(message: ClientMessage): Promise<boolean> {
    if (this.inserts.isWaiting && !mayJoin(message)) {
      await this.settle();
    }
    if (message.kind === 'terminate') {
      return false;
    }
    if (message.kind === 'query') {
      this.skipping = false;
      await this.simpleQuery(message.text);
      return true;
    }
    if (message.kind === 'sync') {
      this.skipping = false;
      this.endOfBatch();
      this.ready();
      return true;
    }
    if (this.skipping) {
      return true;
    }
    try {
      await this.extended(message);
    } catch (error) {
      await this.refuse(error);
    }
    return true;
  }

  /** Tells an error found while reading a message; the conversation goes on at the next Sync. */
  async malformed(error: unknown, simple: boolean): Promise<void> {
    if (simple || !this.skipping) {
      await this.refuse(error);
    }
    if (simple) {
      this.skipping = false;
      this.ready();
    }
  }

  /** An error of the extended protocol: what came before it is done, what follows is skipped. */
  private async refuse(error: unknown): Promise<void> {
    const { isWaiting } = this.inserts;
    await this.settle();
    if (!isWaiting || !this.skipping) {
      this.fail(error, '', 0);
      this.skipping = true;
    }
  }

  /** Stops the statement that runs now. */
  cancel(): void {
    if (this.running !== null) {
      this.running.cancel();
    } else if (this.preparing) {
      this.cancelAsked = true;
    }
  }

  /** Ends everything; an open block is rolled back. */
  close(): void {
    this.inserts.drop();
    this.rollback();
    this.closeAllStatements();
  }

  // ---- simple query ----

  private async simpleQuery(text: string): Promise<void> {
    this.closePortal('');
    this.closeStatement('');
    const statements = splitStatements(text);
    if (statements.length === 0) {
      this.outlet.queue(reply.emptyQueryResponse());
    }
    for (const { text: one, start } of statements) {
      try {
        await this.runText(one);
      } catch (error) {
        this.fail(error, text, start);
        break;
      }
    }
    this.ready();
  }

  private async runText(text: string): Promise<void> {
    const command = sessionCommand(text);
    if (command !== null) {
      await this.runCommand(command);
      return;
    }
    this.refuseInFailedBlock();
    const prepared = await this.prepare(text);
    try {
      const { columns } = prepared.description;
      const formats = columns.map(() => 0);
      if (columns.length > 0) {
        this.outlet.queue(this.describeColumns(prepared, formats));
      }
      const portal = new Portal(prepared, [], formats);
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
      case 'bind':
        this.bind(message);
        break;
      case 'describe':
        this.describe(message.what, message.name);
        break;
      case 'execute':
        await this.execute(message.portal, message.maxRows);
        break;
      case 'close':
        if (message.what === 'S') {
          this.closeStatement(message.name);
        } else {
          this.closePortal(message.name);
        }
        this.outlet.queue(reply.closeComplete());
        break;
      case 'flush':
        this.outlet.flush();
        break;
      case 'functionCall':
        throw new ProtocolError('0A000', 'function calls of the protocol are not supported');
      case 'copy':
        break;
      case 'password':
        throw new ProtocolError('08P01', 'unexpected password message', true);
      default:
    }
  }

  private async parse(name: string, text: string, types: readonly number[]): Promise<void> {
    if (name !== '' && this.statements.has(name)) {
      throw new ProtocolError('42P05', `prepared statement "${name}" already exists`);
    }
    if (name === '') {
      this.closeStatement('');
    }
    if (this.statements.size >= this.limits.statementsMax) {
      const limit = this.limits.statementsMax;
      throw new ProtocolError('53400', `too many prepared statements [limit=${limit}]`);
    }
    this.statements.set(name, await this.store(text, types));
    this.outlet.queue(reply.parseComplete());
  }

  private async store(text: string, types: readonly number[]): Promise<Stored> {
    const [first, ...others] = splitStatements(text);
    if (first === undefined) {
      return { kind: 'empty' };
    }
    if (others.length > 0) {
      throw new ProtocolError('42601', 'cannot insert multiple commands into a prepared statement');
    }
    const command = sessionCommand(first.text);
    if (command !== null) {
      return { kind: 'session', command, text };
    }
    this.refuseInFailedBlock();
    try {
      const prepared = await this.prepare(first.text, types.map(declaredType));
      const oids = prepared.description.parameters.map((type, index) => {
        const declared = types[index] ?? 0;
        return declared === 0 ? oidOf(type) : declared;
      });
      return { kind: 'engine', prepared, oids, text };
    } catch (error) {
      throw located(error, text, first.start);
    }
  }

  private bind(message: BindMessage): void {
    const stored = this.statements.get(message.statement);
    if (stored === undefined) {
      const name = message.statement;
      throw new ProtocolError('26000', `prepared statement "${name}" does not exist`);
    }
    if (message.portal !== '' && this.portals.has(message.portal)) {
      throw new ProtocolError('42P03', `cursor "${message.portal}" already exists`);
    }
    this.closePortal(message.portal);
    if (this.portals.size >= this.limits.statementsMax) {
      throw new ProtocolError('53400', `too many portals [limit=${this.limits.statementsMax}]`);
    }
    if (stored.kind === 'engine') {
      this.refuseInFailedBlock();
    }
    this.portals.set(message.portal, boundOf(stored, message));
    this.inserts.answer(reply.bindComplete());
  }

  private describe(what: 'S' | 'P', name: string): void {
    if (what === 'P') {
      const bound = this.portalNamed(name);
      if (bound.kind !== 'engine' || bound.portal.statement.description.columns.length === 0) {
        this.inserts.answer(reply.noData());
      } else {
        this.inserts.answer(this.describeColumns(bound.portal.statement, bound.portal.formats));
      }
      return;
    }
    const stored = this.statements.get(name);
    if (stored === undefined) {
      throw new ProtocolError('26000', `prepared statement "${name}" does not exist`);
    }
    const oids = stored.kind === 'engine' ? stored.oids : [];
    this.inserts.answer(reply.parameterDescription(oids));
    if (stored.kind === 'engine' && stored.prepared.description.columns.length > 0) {
      const formats = stored.prepared.description.columns.map(() => 0);
      this.inserts.answer(this.describeColumns(stored.prepared, formats));
    } else {
      this.inserts.answer(reply.noData());
    }
  }

  private portalNamed(name: string): Bound {
    const bound = this.portals.get(name);
    if (bound === undefined) {
      throw new ProtocolError('34000', `portal "${name}" does not exist`);
    }
    return bound;
  }

  private async execute(name: string, maxRows: number): Promise<void> {
    const bound = this.portalNamed(name);
    const fresh = bound.kind === 'engine' && !bound.done ? bound : null;
    if (fresh === null || !this.inserts.takes(fresh.portal)) {
      await this.settle();
      if (this.skipping) {
        return;
      }
    }
    if (fresh !== null && this.status !== 'E' && this.inserts.takes(fresh.portal)) {
      fresh.done = true;
      this.inserts.add(fresh.portal);
      return;
    }
    if (bound.kind === 'empty') {
      this.outlet.queue(reply.emptyQueryResponse());
      return;
    }
    if (bound.kind === 'session') {
      await this.runCommand(bound.command);
      return;
    }
    this.refuseInFailedBlock();
    if (bound.done) {
      throw new ProtocolError('55000', `portal "${name}" cannot be run again`);
    }
    const complete = await this.runPortal(bound.portal, Math.max(0, maxRows));
    if (complete) {
      bound.done = true;
    }
  }

  /** Runs the inserts that wait; the first that fails ends what is handled before Sync. */
  private async settle(): Promise<void> {
    try {
      await this.inserts.settle();
    } catch (error) {
      this.fail(error, '', 0);
      this.skipping = true;
    }
  }

  // ---- running ----

  private async prepare(text: string, types?: ParameterTypes): Promise<PreparedStatement> {
    this.preparing = true;
    this.cancelAsked = false;
    try {
      const prepared = await this.session.prepare(text, types);
      if (this.wasCancelled()) {
        prepared.close();
        throw new DatabaseError({ code: 'Cancelled', message: 'cancelled by user' });
      }
      return prepared;
    } finally {
      this.preparing = false;
    }
  }

  private wasCancelled(): boolean {
    return this.cancelAsked;
  }

  /** Runs a portal and tells how it ended; true when nothing is left in it. */
  private async runPortal(portal: Portal, maxRows: number): Promise<boolean> {
    this.running = portal;
    try {
      const run = await portal.run(maxRows, this.outlet.send, this.timeoutMs);
      const { kind, command, notice } = portal.statement.description;
      if (run.complete) {
        if (this.status === 'T' && (kind === 'ddl' || kind === 'update')) {
          this.notify(`${command} was committed at once: ROLLBACK does not undo it`);
        }
        if (notice !== undefined) {
          this.notify(notice);
        }
        this.outlet.queue(reply.commandComplete(commandTag(kind, command, run.rows)));
      } else {
        this.outlet.queue(reply.portalSuspended());
      }
      return run.complete;
    } catch (error) {
      portal.close();
      throw error;
    } finally {
      this.running = null;
    }
  }

  private notify(message: string): void {
    this.outlet.queue(reply.noticeResponse({ severity: 'NOTICE', sqlState: '00000', message }));
  }

  private describeColumns(statement: Executable, formats: readonly number[]): Buffer {
    const fields = statement.description.columns.map((column, index) =>
      describeField(column, formats[index] ?? 0),
    );
    return reply.rowDescription(fields);
  }

  private refuseInFailedBlock(): void {
    if (this.status !== 'E') {
      return;
    }
    const message =
      'current transaction is aborted, commands ignored until end of transaction block';
    throw new ProtocolError('25P02', message);
  }

  private async runCommand(command: SessionCommand): Promise<void> {
    if (command.command !== 'commit' && command.command !== 'rollback') {
      this.refuseInFailedBlock();
    }
    this.outlet.queue(reply.commandComplete(await this.applyCommand(command)));
  }

  private async applyCommand(command: SessionCommand): Promise<string> {
    switch (command.command) {
      case 'begin':
        this.begin();
        return 'BEGIN';
      case 'commit':
        return this.commit();
      case 'rollback':
        this.rollback();
        return 'ROLLBACK';
      case 'savepoint':
        throw new ProtocolError('0A000', 'savepoints are not supported');
      case 'listen':
        throw new ProtocolError('0A000', 'notifications are not supported');
      case 'deallocate':
        return this.deallocate(command.name);
      case 'close':
        if (command.name === null) {
          this.closeAllPortals();
        } else {
          this.closePortal(command.name);
        }
        return command.name === null ? 'CLOSE CURSOR ALL' : 'CLOSE CURSOR';
      case 'discard':
        this.closeAllPortals();
        this.closeAllStatements();
        this.timeoutMs = this.limits.timeoutMs;
        return command.tag;
      case 'ignore':
        return command.tag;
      case 'set':
        this.set(command.name, command.value);
        return 'SET';
      default:
        return assertNever(command);
    }
  }

  private set(name: string, value: string | null): void {
    if (name === 'application_name' && value !== null) {
      this.outlet.queue(reply.parameterStatus('application_name', value));
    }
    if (name !== 'statement_timeout' || value === null) {
      return;
    }
    const timeout = timeoutOf(value);
    // Zero switches it off for PostgreSQL; here the server's own limit stays.
    this.timeoutMs = timeout === 0 ? this.limits.timeoutMs : timeout;
  }

  private deallocate(name: string | null): string {
    if (name === null) {
      this.closeAllStatements();
      return 'DEALLOCATE ALL';
    }
    if (!this.statements.has(name)) {
      throw new ProtocolError('26000', `prepared statement "${name}" does not exist`);
    }
    this.closeStatement(name);
    return 'DEALLOCATE';
  }

  // ---- blocks ----

  private begin(): void {
    if (this.status !== 'I') {
      const message = 'there is already a transaction in progress';
      this.outlet.queue(reply.noticeResponse({ severity: 'WARNING', sqlState: '25001', message }));
      return;
    }
    this.session.transaction = this.session.database.begin();
    this.status = 'T';
  }

  /** COMMIT; of a failed block, ROLLBACK. Returns the tag. */
  private async commit(): Promise<string> {
    this.closeAllPortals();
    const { transaction } = this.session;
    if (this.status === 'E' || transaction === null) {
      const failed = this.status === 'E';
      this.rollback();
      return failed ? 'ROLLBACK' : 'COMMIT';
    }
    this.session.transaction = null;
    this.status = 'I';
    await transaction.commit();
    return 'COMMIT';
  }

  private rollback(): void {
    this.closeAllPortals();
    this.session.transaction?.rollback();
    this.session.transaction = null;
    this.status = 'I';
  }

  // ---- ends ----

  /** Portals end with the block; outside one, those without a name end with their batch. */
  private endOfBatch(): void {
    if (this.status === 'I') {
      this.closePortal('');
    }
  }

  private ready(): void {
    this.outlet.queue(reply.readyForQuery(this.status));
    this.outlet.flush();
  }

  private closeStatement(name: string): void {
    const stored = this.statements.get(name);
    if (stored?.kind === 'engine') {
      stored.prepared.close();
    }
    this.statements.delete(name);
  }

  private closeAllStatements(): void {
    for (const name of [...this.statements.keys()]) {
      this.closeStatement(name);
    }
  }

  private closePortal(name: string): void {
    const bound = this.portals.get(name);
    if (bound?.kind === 'engine') {
      bound.portal.close();
    }
    this.portals.delete(name);
  }

  private closeAllPortals(): void {
    for (const name of [...this.portals.keys()]) {
      this.closePortal(name);
    }
  }

  private fail(error: unknown, text: string, offset: number): void {
    if (this.status === 'T') {
      this.status = 'E';
    }
    if (error instanceof ProtocolError) {
      if (error.fatal) {
        throw error;
      }
      const { sqlState, message } = error;
      this.outlet.queue(reply.errorResponse({ severity: 'ERROR', sqlState, message }));
      return;
    }
    this.outlet.queue(errorReport(located(error, text, offset)));
  }
}

/** Whether a message leaves inserts waiting that came before it. */
function mayJoin({ kind }: ClientMessage): boolean {
  return kind === 'bind' || kind === 'execute' || kind === 'describe';
}

function assertNever(value: never): never {
  throw new TypeError(`unexpected value ${JSON.stringify(value)}`);
}
