/** A conversation's portals: bound statements and declared cursors share one namespace. */
import type { Bound } from './bound.js';
import { ProtocolError } from '../protocol/protocol-error.js';

export class Portals {
  private readonly limit: number;
  private readonly byName = new Map<string, Bound>();

  constructor(limit: number) {
    this.limit = limit;
  }

  get names(): Iterable<string> {
    return this.byName.keys();
  }

  /** Adds a portal; a new unnamed portal replaces the previous one. */
  add(name: string, make: () => Bound): void {
    if (name !== '' && this.byName.has(name)) {
      throw new ProtocolError('42P03', `cursor "${name}" already exists`);
    }
    this.close(name);
    if (this.byName.size >= this.limit) {
      throw new ProtocolError('53400', `too many portals [limit=${this.limit}]`);
    }
    this.byName.set(name, make());
  }

  get(name: string, what: 'portal' | 'cursor' = 'portal'): Bound {
    const bound = this.byName.get(name);
    if (bound === undefined) {
      throw new ProtocolError('34000', `${what} "${name}" does not exist`);
    }
    return bound;
  }

  close(name: string): void {
    const bound = this.byName.get(name);
    if (bound?.kind === 'engine') {
      bound.portal.close();
      bound.cursor?.statement.close();
      bound.cursor?.scroll?.close();
    } else if (bound?.kind === 'execute') {
      bound.portal?.close();
    }
    this.byName.delete(name);
  }

  closeAll(): void {
    this.closeBut(() => false);
  }

  /**
   * Ends a block. A cursor WITH HOLD survives if its own block commits; after that, it also
   * survives the end of later blocks.
   */
  endBlock(end: 'commit' | 'rollback'): void {
    this.closeBut((_, bound) => {
      const cursor = bound.kind === 'engine' ? bound.cursor : undefined;
      if (cursor?.hold !== true) {
        return false;
      }
      cursor.committed ||= end === 'commit';
      return cursor.committed;
    });
  }

  /** Closes all portals except those that `isRetained` accepts. */
  closeBut(isRetained: (name: string, bound: Bound) => boolean): void {
    for (const [name, bound] of [...this.byName]) {
      if (!isRetained(name, bound)) {
        this.close(name);
      }
    }
  }
}
