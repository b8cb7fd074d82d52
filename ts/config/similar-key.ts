/** Suggests the intended name for a mistyped configuration key. */

/** A suggestion may need one edit for each group of this many typed characters. */
const CHARACTERS_PER_EDIT = 4;

/** Returns the known name that needs the fewest edits; `null` if all of them need too many. */
export function similarKey(typed: string, known: Iterable<string>): string | null {
  let limit = Math.max(1, Math.floor(typed.length / CHARACTERS_PER_EDIT)) + 1;
  let best: string | null = null;
  for (const name of known) {
    const distance = editDistance(typed.toLowerCase(), name.toLowerCase());
    if (distance < limit) {
      [best, limit] = [name, distance];
    }
  }
  return best;
}

/**
 * Returns the edit distance between two strings: the number of letters to insert, remove or
 * replace.
 */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let at = 1; at <= from.length; at += 1) {
    const next = [at];
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = (row[column - 1] ?? 0) + (from[at - 1] === to[column - 1] ? 0 : 1);
      const inserted = (next[column - 1] ?? 0) + 1;
      next.push(Math.min(replaced, inserted, (row[column] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
