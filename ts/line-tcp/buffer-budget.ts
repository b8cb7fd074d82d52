/** Limits the total number of uncommitted bytes across all senders. */

export class BufferBudget {
  readonly #limit: number;
  readonly #freed: () => void;
  #bytes = 0;

  /** `freed` is called when memory is available again. */
  constructor(limit: number, freed: () => void) {
    this.#limit = limit;
    this.#freed = freed;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isFull(): boolean {
    return this.#bytes >= this.#limit;
  }

  add(change: number): void {
    const before = this.#bytes;
    this.#bytes += change;
    if (before >= this.#limit && this.#bytes < this.#limit) {
      this.#freed();
    }
  }
}
