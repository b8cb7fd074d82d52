/** Sequence values that SERIAL and IDENTITY columns assigned in a session. */
import type { SequenceValue } from '../engine/types.js';
import type { Tree } from '../sql/index.js';

/**
 * Maximum number of sequences whose last value a session remembers; the least recently used is
 * evicted.
 */
const MAX_SEQUENCES = 1_000;

export class SequenceValues {
  /** Last values, keyed by sequence, in order of use. */
  readonly #last = new Map<string, SequenceValue>();

  note(numbers: readonly SequenceValue[] = []): void {
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

  list(): readonly SequenceValue[] {
    return [...this.#last.values()];
  }

  /** Implements DISCARD SEQUENCES. */
  forget(): void {
    this.#last.clear();
  }
}

/** Whether a syntax tree reads sequence values. */
export function readsSequenceValues({ nodes = [] }: Partial<Tree>): boolean {
  return nodes.some(
    (node) =>
      node.kind === 'Call' && /^(?:pg_catalog\.)?(?:lastval|currval)$/i.test(node.name.text),
  );
}
