/** Suggests the intended keyword for a mistyped word. */

/**
 * Returns the first listed word that differs by one edit: one letter inserted, omitted, replaced,
 * or swapped with the next.
 */
export function similarKeyword(typed: string, words: readonly string[]): string | null {
  const variants = deletionVariants(typed.toUpperCase());
  return (
    words.find((word) => deletionVariants(word).some((variant) => variants.includes(variant))) ??
    null
  );
}

/** Returns a word and its variants without one letter. */
function deletionVariants(word: string): string[] {
  const positions = Array.from({ length: word.length }, (_, at) => at);
  return [word, ...positions.map((at) => word.slice(0, at) + word.slice(at + 1))];
}
