/** The connections that stay open, by the number that their clients received. */
import { DatabaseError } from '../engine/error.js';

/** A connection as others may act on it. */
interface Backend {
  /** Whose it is: the key of the principal. */
  readonly key: string;
  /** Stops the statement that runs. */
  cancel(): void;
  /** Ends the connection. */
  terminate(): void;
}

/** Who stops one. */
interface Stopper {
  readonly key: string;
  readonly readOnly: boolean;
  /** Throws unless the caller may act on others' connections. */
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

  /** False when there is no such connection. A user may stop its own. */
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
