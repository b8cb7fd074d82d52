/**
 * Ranks passages by the words they share with a question, using BM25 with a higher weight for
 * titles.
 */

/** BM25 parameters: term frequency saturation, and length normalisation. */
const SATURATION = 1.2;
const LENGTH_WEIGHT = 0.75;
/** Weight of a word in the title relative to a word in the text. */
const TITLE_WEIGHT = 4;
/** Maximum number of words in a question. */
const MAX_WORDS = 64;

interface Entry<T> {
  readonly item: T;
  readonly title: string;
  readonly text: string;
}

interface Posting {
  readonly entry: number;
  readonly count: number;
}

export class PassageIndex<T> {
  readonly #items: readonly T[];
  readonly #lengths: readonly number[];
  readonly #averageLength: number;
  readonly #postings = new Map<string, Posting[]>();

  constructor(entries: readonly Entry<T>[]) {
    this.#items = entries.map(({ item }) => item);
    this.#lengths = entries.map((entry, at) => this.#add(entry, at));
    const all = this.#lengths.reduce((sum, length) => sum + length, 0);
    this.#averageLength = all / Math.max(entries.length, 1);
  }

  /** Returns the entries that share a word with the question, best match first. */
  search(question: string, limit: number): T[] {
    const scores = new Map<number, number>();
    for (const word of new Set(wordsOf(question).slice(0, MAX_WORDS))) {
      const postings = this.#postings.get(word) ?? [];
      const rarity = Math.log(
        1 + (this.#items.length - postings.length + 0.5) / (postings.length + 0.5),
      );
      for (const { entry, count } of postings) {
        const length = (this.#lengths[entry] ?? 0) / this.#averageLength;
        const damping = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
        const score = (rarity * count * (SATURATION + 1)) / (count + damping);
        scores.set(entry, (scores.get(entry) ?? 0) + score);
      }
    }
    return [...scores]
      .sort(([first, a], [second, b]) => b - a || first - second)
      .slice(0, limit)
      .flatMap(([entry]) => this.#items[entry] ?? []);
  }

  /** Indexes an entry, and returns its number of words. */
  #add({ title, text }: Entry<T>, entry: number): number {
    const counts = new Map<string, number>();
    const words = wordsOf(text);
    for (const word of words) {
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
    for (const word of wordsOf(title)) {
      counts.set(word, (counts.get(word) ?? 0) + TITLE_WEIGHT);
    }
    for (const [word, count] of counts) {
      const postings = this.#postings.get(word);
      if (postings === undefined) {
        this.#postings.set(word, [{ entry, count }]);
      } else {
        postings.push({ entry, count });
      }
    }
    return words.length;
  }
}

/** Returns the words in lower case; plurals are reduced to their singular. */
function wordsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  return words.map((word) => (word.length > 3 ? word.replace(/(?<=[^s])s$/, '') : word));
}
