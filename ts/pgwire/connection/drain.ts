/**
 * Stops a listener: closes idle connections immediately, and other connections when they become
 * idle.
 */

/** The connection interface that a stopping listener uses. */
export interface Drained {
  /** Whether a statement is running or COPY data is being received. */
  readonly busy: boolean;
  /** Ends the conversation with an error message. */
  shutdown(): void;
  /** Ends a handoff to the engine after the running statement. */
  revokeHandoff(): void;
}

export class Drain {
  readonly #connections: ReadonlySet<Drained>;
  #isOn = false;
  #done: (() => void) | null = null;

  constructor(connections: ReadonlySet<Drained>) {
    this.#connections = connections;
  }

  /** Whether new work is refused. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** Resolves when all connections are idle. */
  begin(): Promise<void> {
    this.#isOn = true;
    for (const connection of this.#connections) {
      connection.revokeHandoff();
    }
    return new Promise((resolve) => {
      this.#done = resolve;
      this.check();
    });
  }

  /** Must be called when a connection may have become idle. */
  check(): void {
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
