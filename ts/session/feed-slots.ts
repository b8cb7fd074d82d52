/** Limits concurrent change feeds across all protocols. */
import { DatabaseError } from '../engine/error.js';

export class FeedSlots {
  readonly #limit: () => number;
  #open = 0;

  constructor(limit: () => number) {
    this.#limit = limit;
  }

  get open(): number {
    return this.#open;
  }

  /** Throws if the limit is reached. Returns a function that releases the slot. */
  acquire(): () => void {
    const limit = this.#limit();
    if (this.#open >= limit) {
      const message = `too many change feeds [limit=${limit}, key=changes.max.feeds]`;
      throw new DatabaseError({ code: 'Busy', message, retryable: true });
    }
    this.#open += 1;
    let isOpen = true;
    return () => {
      this.#open -= isOpen ? 1 : 0;
      isOpen = false;
    };
  }
}
