/** Quotes names and strings for SQL, and suggests known names for misspelt ones. */

/** Quotes a name unless it is a plain word. */
export function quoted(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : identifier(name);
}

/** Quotes a name even if it is a plain word, because the word may be a keyword. */
export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Returns a SQL string literal. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Returns the known name that is most similar to a misspelt name, if any is similar enough. */
export function nearest(wrong: string, known: Iterable<string>): string | undefined {
  const limit = Math.max(1, Math.floor(wrong.length / 3));
  let best: { name: string; distance: number } | undefined;
  for (const name of known) {
    const distance = editDistance(wrong.toLowerCase(), name.toLowerCase(), limit);
    if (distance <= limit && distance > 0 && distance < (best?.distance ?? Infinity)) {
      best = { name, distance };
    }
  }
  return best?.name;
}

function cost(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}

function editDistance(left: string, right: string, limit: number): number {
  if (Math.abs(left.length - right.length) > limit) {
    return Infinity;
  }
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  let beforePrevious = previous;
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const same = left.charAt(row - 1) === right.charAt(column - 1);
      const replace = cost(previous, column - 1) + (same ? 0 : 1);
      const insert = cost(current, column - 1) + 1;
      const swapped =
        left.charAt(row - 2) === right.charAt(column - 1) &&
        left.charAt(row - 1) === right.charAt(column - 2);
      const swap =
        row > 1 && column > 1 && swapped ? cost(beforePrevious, column - 2) + 1 : Infinity;
      current.push(Math.min(replace, cost(previous, column) + 1, insert, swap));
    }
    [beforePrevious, previous] = [previous, current];
  }
  return cost(previous, right.length);
}
