/**
 * The BEGIN … COMMIT block of a conversation, and its savepoints.
 *
 * The engine buffers a block's inserts and shows them only to that block. On request it discards
 * the inserts after a savepoint.
 */
import type { Transaction } from '../../session/index.js';
import { ProtocolError } from '../protocol/protocol-error.js';

/** Block status as in ReadyForQuery: `I` outside a block, `T` in a block, `E` in a failed block. */
type BlockStatus = 'I' | 'T' | 'E';

/** The session interface that a block needs. */
export interface BlockSession {
  transaction: Transaction | null;
  readonly database: { begin(): Transaction };
}

interface Savepoint {
  readonly name: string;
  /** The savepoint's id in the transaction. */
  readonly mark: number;
  /** The cursors open at the savepoint. */
  readonly portals: ReadonlySet<string>;
}

/** Maximum number of savepoints per block; some drivers set one for each COPY or INSERT. */
const MAX_SAVEPOINTS = 10_000;

export class Block {
  private readonly session: BlockSession;
  private current: BlockStatus = 'I';
  private savepoints: Savepoint[] = [];

  constructor(session: BlockSession) {
    this.session = session;
  }

  get status(): BlockStatus {
    return this.current;
  }

  /** Opens a block; returns false if one is open. */
  begin(): boolean {
    if (this.current !== 'I') {
      return false;
    }
    this.session.transaction = this.session.database.begin();
    this.current = 'T';
    return true;
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
    this.end();
    await transaction?.commit();
    return 'COMMIT';
  }

  rollback(): void {
    this.session.transaction?.rollback();
    this.session.transaction = null;
    this.end();
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
    this.savepoints.push({ name, mark, portals: new Set(portals) });
  }

  /** Removes a savepoint and all later ones, but keeps the changes made since then. */
  release(name: string): void {
    this.refuseOutside('RELEASE SAVEPOINT');
    this.refuseIfFailed();
    this.savepoints.length = this.indexOf(name);
  }

  /**
   * Undoes the changes made after a savepoint, which remains. Returns the cursors that were open at
   * that savepoint.
   */
  rollbackTo(name: string): ReadonlySet<string> {
    this.refuseOutside('ROLLBACK TO SAVEPOINT');
    const index = this.indexOf(name);
    const { mark, portals } = this.savepoints[index] ?? { mark: 0, portals: new Set() };
    this.session.transaction?.rollback(mark);
    this.savepoints.length = index + 1;
    this.current = 'T';
    return portals;
  }

  /** Returns the index of the most recent savepoint with this name. */
  private indexOf(name: string): number {
    const index = this.savepoints.findLastIndex((savepoint) => savepoint.name === name);
    if (index < 0) {
      throw new ProtocolError('3B001', `savepoint "${name}" does not exist`);
    }
    return index;
  }

  private refuseOutside(command: string): void {
    if (this.current === 'I') {
      throw new ProtocolError('25P01', `${command} can only be used in transaction blocks`);
    }
  }

  private end(): void {
    this.current = 'I';
    this.savepoints = [];
  }
}
