/** The end of a listener: connections that do nothing go, the others when they are done. */

/** A connection as its listener ends it. */
export interface Drained {
  /** A statement runs, or the data of a COPY come. */
  readonly busy: boolean;
  /** Ends the conversation, and says why. */
  shutdown(): void;
  /** Comes back from the engine, where it is handed off, after the statement that runs. */
  comeBack(): void;
}

export class Drain {
  readonly #connections: ReadonlySet<Drained>;
  #isOn = false;
  #done: (() => void) | null = null;

  constructor(connections: ReadonlySet<Drained>) {
    this.#connections = connections;
  }

  /** Whether no new work is taken. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** Resolves when nothing runs any more. */
  begin(): Promise<void> {
    this.#isOn = true;
    for (const connection of this.#connections) {
      connection.comeBack();
    }
    return new Promise((resolve) => {
      this.#done = resolve;
      this.look();
    });
  }

  /** Something may have ended. */
  look(): void {
    if (!this.#isOn) {
      return;
    }
    const idle = [...this.#connections].filter(({ busy }) => !busy);
    for (const connection of idle) {
      connection.shutdown();
    }
    if (idle.length === this.#connections.size) {
      this.#done?.();
    }
  }
}
