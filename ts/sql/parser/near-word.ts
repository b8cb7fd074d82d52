/** Suggests the intended keyword for a mistyped word. */

/**
 * The first listed word that is one edit away: one letter inserted, omitted, replaced, or swapped
 * with the next.
 */
export function nearWord(typed: string, words: readonly string[]): string | null {
  const near = withoutOne(typed.toUpperCase());
  return words.find((word) => withoutOne(word).some((part) => near.includes(part))) ?? null;
}

/** A word, and its variants that lack one letter. */
function withoutOne(word: string): string[] {
  const places = Array.from({ length: word.length }, (_, at) => at);
  return [word, ...places.map((at) => word.slice(0, at) + word.slice(at + 1))];
}
