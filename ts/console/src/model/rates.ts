/** How fast tables grow, from counts of their rows taken again and again. */

/** Rows of a table at a moment in milliseconds. */
interface Count {
  readonly at: number;
  readonly rows: number;
}

const WINDOW_MS = 60_000;
/** A rate is taken over so long, so that one late answer does not make it jump. */
const RATE_MS = 10_000;

export class Rates {
  readonly #counts = new Map<string, Count[]>();

  /** Takes note of how many rows each table has now. */
  note(at: number, tables: Iterable<{ name: string; rows: number | undefined }>): void {
    for (const { name, rows } of tables) {
      if (rows !== undefined) {
        const counts = (this.#counts.get(name) ?? []).filter((count) => at - count.at <= WINDOW_MS);
        this.#counts.set(name, [...counts, { at, rows }]);
      }
    }
  }

  /** Rows a second of late; nothing before there are two counts. */
  of(name: string): number | undefined {
    const counts = this.#counts.get(name) ?? [];
    const last = counts.at(-1);
    const first = counts.find((count) => last !== undefined && last.at - count.at <= RATE_MS);
    if (!last || !first || first === last) {
      return undefined;
    }
    return Math.max(0, ((last.rows - first.rows) * 1000) / (last.at - first.at));
  }

  /** Rows a second between one count and the next, the oldest first. */
  history(name: string): number[] {
    const counts = this.#counts.get(name) ?? [];
    return counts.slice(1).map((count, index) => {
      const before = counts[index] ?? count;
      const millis = Math.max(1, count.at - before.at);
      return Math.max(0, ((count.rows - before.rows) * 1000) / millis);
    });
  }
}

/** The path of a line through `values` in a box of `width` and `height`. */
export function sparkline(values: readonly number[], width: number, height: number): string {
  if (values.length < 2) {
    return `M0 ${height}H${width}`;
  }
  const most = Math.max(...values, 1e-9);
  return values
    .map((value, index) => {
      const x = (index * width) / (values.length - 1);
      const y = height - (value / most) * height;
      return `${index === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`;
    })
    .join('');
}
