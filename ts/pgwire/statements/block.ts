/**
 * The BEGIN … COMMIT block of a conversation, and its savepoints.
 *
 * The engine buffers a block's inserts and shows them only to that block. On request it discards
 * the inserts after a savepoint.
 */
import type { Principal, Transaction, TransactionModes } from '../../session/index.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import type { SettingsState } from './session-settings.js';

/** Block status as in ReadyForQuery: `I` outside a block, `T` in a block, `E` in a failed block. */
type BlockStatus = 'I' | 'T' | 'E';

/** The session interface that a block needs. */
export interface BlockSession {
  transaction: Transaction | null;
  readonly database: { begin(): Transaction };
  readonly principal: Principal;
  /** Switches to another user; `null` restores the user who logged in. */
  become(principal: Principal | null): void;
}

/** The session's user in an open block. */
interface BlockUser {
  readonly current: Principal;
  /** The user after COMMIT, if SET LOCAL ROLE changed the current one. */
  readonly afterCommit: Principal | null;
}

interface Savepoint {
  readonly name: string;
  /** The savepoint's id in the transaction. */
  readonly mark: number;
  /** The cursors open at the savepoint. */
  readonly portals: ReadonlySet<string>;
  readonly settings: SettingsState;
  readonly user: BlockUser;
}

/** The session's settings, which end with a savepoint or a block. */
interface BlockSettings {
  begin(modes: TransactionModes): void;
  savepoint(): SettingsState;
  release(state: SettingsState, count: number): void;
  rollbackTo(state: SettingsState, count: number): void;
  endBlock(end: 'commit' | 'rollback'): void;
}

/** Maximum number of savepoints per block; some drivers set one for each COPY or INSERT. */
const MAX_SAVEPOINTS = 10_000;

export class Block {
  private readonly session: BlockSession;
  private readonly settings: BlockSettings;
  private current: BlockStatus = 'I';
  private savepoints: Savepoint[] = [];
  /** The user before the open block. */
  private userBefore: Principal | null = null;
  private userAfterCommit: Principal | null = null;

  constructor(session: BlockSession, settings: BlockSettings) {
    this.session = session;
    this.settings = settings;
  }

  get status(): BlockStatus {
    return this.current;
  }

  /** Opens a block; returns false if one is open. */
  begin(modes: TransactionModes): boolean {
    if (this.current !== 'I') {
      return false;
    }
    this.session.transaction = this.session.database.begin();
    this.settings.begin(modes);
    this.userBefore = this.session.principal;
    this.current = 'T';
    return true;
  }

  /** Called before SET ROLE; `local` states whether the change ends with the block. */
  changeUser(local: boolean): void {
    if (this.current !== 'I') {
      this.userAfterCommit = local ? (this.userAfterCommit ?? this.session.principal) : null;
    }
  }

  /**
   * Ends the block with COMMIT or, if the block has failed, with ROLLBACK. Returns the command tag.
   */
  async commit(): Promise<'COMMIT' | 'ROLLBACK'> {
    const { transaction } = this.session;
    if (this.current === 'E') {
      this.rollback();
      return 'ROLLBACK';
    }
    this.session.transaction = null;
    try {
      await transaction?.commit();
      this.end('commit');
    } catch (error) {
      this.end('rollback');
      throw error;
    }
    return 'COMMIT';
  }

  rollback(): void {
    this.session.transaction?.rollback();
    this.session.transaction = null;
    this.end('rollback');
  }

  /** Marks an open block as failed. */
  fail(): void {
    if (this.current === 'T') {
      this.current = 'E';
    }
  }

  refuseIfFailed(): void {
    if (this.current === 'E') {
      const message =
        'current transaction is aborted, commands ignored until end of transaction block';
      throw new ProtocolError('25P02', message);
    }
  }

  savepoint(name: string, portals: Iterable<string>): void {
    this.refuseOutside('SAVEPOINT');
    this.refuseIfFailed();
    if (this.savepoints.length >= MAX_SAVEPOINTS) {
      throw new ProtocolError('54000', `too many savepoints [limit=${MAX_SAVEPOINTS}]`);
    }
    const mark = this.session.transaction?.savepoint() ?? 0;
    const settings = this.settings.savepoint();
    const user = { current: this.session.principal, afterCommit: this.userAfterCommit };
    this.savepoints.push({ name, mark, portals: new Set(portals), settings, user });
  }

  /** Removes a savepoint and all later ones, but keeps the changes made since then. */
  release(name: string): void {
    this.refuseOutside('RELEASE SAVEPOINT');
    this.refuseIfFailed();
    const index = this.indexOf(name);
    const released = this.savepoints[index];
    this.savepoints.length = index;
    if (released !== undefined) {
      this.settings.release(released.settings, index);
    }
  }

  /**
   * Undoes the changes made after a savepoint, which remains. Returns the cursors that were open at
   * that savepoint.
   */
  rollbackTo(name: string): ReadonlySet<string> {
    this.refuseOutside('ROLLBACK TO SAVEPOINT');
    const index = this.indexOf(name);
    const savepoint = this.savepoints[index];
    this.session.transaction?.rollback(savepoint?.mark ?? 0);
    this.savepoints.length = index + 1;
    this.current = 'T';
    if (savepoint !== undefined) {
      this.settings.rollbackTo(savepoint.settings, index + 1);
      this.session.become(savepoint.user.current);
      this.userAfterCommit = savepoint.user.afterCommit;
    }
    return savepoint?.portals ?? new Set();
  }

  /** Returns the index of the most recent savepoint with this name. */
  private indexOf(name: string): number {
    const index = this.savepoints.findLastIndex((savepoint) => savepoint.name === name);
    if (index < 0) {
      throw new ProtocolError('3B001', `savepoint "${name}" does not exist`);
    }
    return index;
  }

  /** Throws outside a block. */
  refuseOutside(command: string): void {
    if (this.current === 'I') {
      throw new ProtocolError('25P01', `${command} can only be used in transaction blocks`);
    }
  }

  private end(how: 'commit' | 'rollback'): void {
    this.settings.endBlock(how);
    const user = how === 'rollback' ? this.userBefore : this.userAfterCommit;
    if (user !== null) {
      this.session.become(user);
    }
    this.userBefore = null;
    this.userAfterCommit = null;
    this.current = 'I';
    this.savepoints = [];
  }
}
