/** A conversation's prepared statements, by name. */
import { closeStored, type Stored } from './bound.js';
import { ProtocolError } from '../protocol/protocol-error.js';

export class Statements {
  private readonly limit: number;
  private readonly byName = new Map<string, Stored>();

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Throws if the name is in use; closes the previous unnamed statement. */
  reserve(name: string): void {
    if (name !== '' && this.byName.has(name)) {
      throw new ProtocolError('42P05', `prepared statement "${name}" already exists`);
    }
    this.close(name);
    if (this.byName.size >= this.limit) {
      throw new ProtocolError('53400', `too many prepared statements [limit=${this.limit}]`);
    }
  }

  add(name: string, stored: Stored): void {
    this.byName.set(name, stored);
  }

  find(name: string): Stored | undefined {
    return this.byName.get(name);
  }

  get(name: string): Stored {
    const stored = this.byName.get(name);
    if (stored === undefined) {
      throw new ProtocolError('26000', `prepared statement "${name}" does not exist`);
    }
    return stored;
  }

  close(name: string): void {
    closeStored(this.byName.get(name));
    this.byName.delete(name);
  }

  closeAll(): void {
    for (const name of [...this.byName.keys()]) {
      this.close(name);
    }
  }
}
