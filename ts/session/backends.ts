/** Open connections, keyed by process id as their clients received it. */
import { DatabaseError } from '../engine/error.js';

/** The operations that other sessions can perform on a connection. */
interface Backend {
  /** Key of the connection's principal. */
  readonly key: string;
  /** Cancels the running statement. */
  cancel(): void;
  /** Ends the connection. */
  terminate(): void;
}

/** The user who cancels or terminates a connection. */
interface Stopper {
  readonly key: string;
  readonly readOnly: boolean;
  /** Throws unless the user may act on the connections of others. */
  readonly authorise: () => void;
}

export class Backends {
  readonly #byNumber = new Map<number, Backend>();

  add(number: number, backend: Backend): void {
    this.#byNumber.set(number, backend);
  }

  remove(number: number): void {
    this.#byNumber.delete(number);
  }

  /** Returns false if the connection does not exist. Users may stop their own connections. */
  stop(how: 'cancel' | 'terminate', number: number, by: Stopper): boolean {
    const backend = this.#byNumber.get(number);
    if (backend === undefined) {
      return false;
    }
    if (backend.key !== by.key) {
      by.authorise();
      if (by.readOnly) {
        const what = `pg_${how}_backend() of another user's connection`;
        throw new DatabaseError({
          code: 'ReadOnly',
          message: `${what}: this session is read-only`,
        });
      }
    }
    backend[how]();
    return true;
  }
}
