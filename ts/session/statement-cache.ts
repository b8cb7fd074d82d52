/**
 * Statement text → syntax tree, kept for texts that come again. A tree knows nothing of tables,
 * so an entry never goes stale.
 */
import { LRUCache } from 'lru-cache';

import { asSyntaxError } from './error.js';

/** Text to syntax tree; throws an error with `message`, `start` and `end`. */
export type Parse = (text: string) => object;

/** Bytes of texts and trees together. */
const CACHE_BYTES = 32 * 1024 * 1024;
/** Longer texts are almost always one large INSERT: they do not come again. */
const LONGEST_CACHED_TEXT = 64 * 1024;

export class StatementCache {
  readonly #parse: Parse;
  readonly #trees = new LRUCache<string, Buffer>({
    maxSize: CACHE_BYTES,
    sizeCalculation: (tree, text) => tree.length + 2 * text.length + 64,
  });

  constructor(parse: Parse) {
    this.#parse = parse;
  }

  /** The tree as JSON in UTF-8, as the border takes it. */
  tree(text: string): Buffer {
    const known = this.#trees.get(text);
    if (known !== undefined) {
      return known;
    }
    const tree = this.#parseText(text);
    if (text.length <= LONGEST_CACHED_TEXT) {
      this.#trees.set(text, tree);
    }
    return tree;
  }

  #parseText(text: string): Buffer {
    try {
      return Buffer.from(JSON.stringify(this.#parse(text)));
    } catch (error) {
      throw asSyntaxError(error);
    }
  }
}
