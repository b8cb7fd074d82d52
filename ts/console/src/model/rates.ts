/** Computes the growth rates of tables from repeated row counts. */

/** Row count of a table, and the time at which the rows were counted, in milliseconds. */
interface Count {
  readonly at: number;
  readonly rows: number;
}

const WINDOW_MS = 60_000;
/**
 * Period over which a rate is measured. It is so long that one late response does not distort the
 * rate.
 */
const RATE_MS = 10_000;

export class Rates {
  readonly #counts = new Map<string, Count[]>();

  /** Records the current row count of each table. */
  note(at: number, tables: Iterable<{ name: string; rows: number | undefined }>): void {
    for (const { name, rows } of tables) {
      if (rows !== undefined) {
        const counts = (this.#counts.get(name) ?? []).filter((count) => at - count.at <= WINDOW_MS);
        this.#counts.set(name, [...counts, { at, rows }]);
      }
    }
  }

  /** Returns the recent rate in rows per second, or `undefined` until two counts are available. */
  of(name: string): number | undefined {
    const counts = this.#counts.get(name) ?? [];
    const last = counts.at(-1);
    const first = counts.find((count) => last !== undefined && last.at - count.at <= RATE_MS);
    if (!last || !first || first === last) {
      return undefined;
    }
    return Math.max(0, ((last.rows - first.rows) * 1000) / (last.at - first.at));
  }

  /** Returns the rates between consecutive counts in rows per second, oldest first. */
  history(name: string): number[] {
    const counts = this.#counts.get(name) ?? [];
    return counts.slice(1).map((count, index) => {
      const before = counts[index] ?? count;
      const millis = Math.max(1, count.at - before.at);
      return Math.max(0, ((count.rows - before.rows) * 1000) / millis);
    });
  }
}

/** Returns the SVG path of a line through `values`, in a box of `width` by `height`. */
export function sparkline(values: readonly number[], width: number, height: number): string {
  if (values.length < 2) {
    return `M0 ${height}H${width}`;
  }
  const max = Math.max(...values, 1e-9);
  return values
    .map((value, index) => {
      const x = (index * width) / (values.length - 1);
      const y = height - (value / max) * height;
      return `${index === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`;
    })
    .join('');
}
