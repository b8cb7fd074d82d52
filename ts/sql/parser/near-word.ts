/** What a mistyped word was meant to be. */

/** The word that is one letter away: more, fewer, another or exchanged with the next one. */
export function nearWord(typed: string, words: readonly string[]): string | null {
  const near = withoutOne(typed.toUpperCase());
  return words.find((word) => withoutOne(word).some((part) => near.includes(part))) ?? null;
}

/** A word, and what is left of it without each of its letters. */
function withoutOne(word: string): string[] {
  const places = Array.from({ length: word.length }, (_, at) => at);
  return [word, ...places.map((at) => word.slice(0, at) + word.slice(at + 1))];
}
