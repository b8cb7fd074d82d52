/** Limits concurrent change feeds across all protocols. */
import { DatabaseError } from '../engine/error.js';

export class FeedSlots {
  readonly #most: () => number;
  #open = 0;

  constructor(most: () => number) {
    this.#most = most;
  }

  get open(): number {
    return this.#open;
  }

  /** Throws if the limit is reached. Returns a function that releases the slot. */
  take(): () => void {
    const most = this.#most();
    if (this.#open >= most) {
      const message = `too many change feeds [limit=${most}, key=changes.max.feeds]`;
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
