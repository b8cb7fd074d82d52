/** The numbers that columns of SERIAL and IDENTITY gave the rows of one session. */
import type { DrawnNumber } from '../engine/types.js';
import type { Tree } from '../sql/index.js';

/** Sequences that a session knows the last number of; those drawn from longest ago go first. */
const MAX_SEQUENCES = 1_000;

export class DrawnNumbers {
  /** By sequence, in the order in which they were drawn. */
  readonly #last = new Map<string, DrawnNumber>();

  note(numbers: readonly DrawnNumber[] = []): void {
    for (const number of numbers) {
      this.#last.delete(number.sequence);
      this.#last.set(number.sequence, number);
    }
    for (const sequence of this.#last.keys()) {
      if (this.#last.size <= MAX_SEQUENCES) {
        break;
      }
      this.#last.delete(sequence);
    }
  }

  list(): readonly DrawnNumber[] {
    return [...this.#last.values()];
  }

  /** DISCARD SEQUENCES. */
  forget(): void {
    this.#last.clear();
  }
}

/** Whether a tree asks for them. */
export function asksNumbers({ nodes = [] }: Partial<Tree>): boolean {
  return nodes.some(
    (node) =>
      node.kind === 'Call' && /^(?:pg_catalog\.)?(?:lastval|currval)$/i.test(node.name.text),
  );
}
