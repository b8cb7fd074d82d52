/**
 * Who is next where work is scarce: the address that asked for least, and of it the connection with
 * the fewest failures, then the one that asked for least; among equals by turns the first and the
 * latest, so that neither a line that was there before nor one that grows excludes any client.
 * Where the queue is full the one with most in it loses: many tries of one client do not stand in
 * the way of another's first.
 */

/** What work is asked for. */
export interface Waiting {
  readonly address: string;
  /** Represents its connection. */
  readonly connection: object;
  /** What failed on the connection since the last success; less than 0 after a success. */
  readonly failures: number;
}

interface Line<T> {
  readonly items: T[];
  /** What it asked for since the queue was empty. */
  asked: number;
  /** Rises with each arrival anywhere. */
  latest: number;
  failures: number;
}

interface Address<T> {
  readonly lines: Map<object, Line<T>>;
  count: number;
  asked: number;
  latest: number;
}

/** Accounts of those who asked for something and do not wait. */
const MAX_ACCOUNTS = 1_000;

export class HashQueue<T extends Waiting> {
  readonly #most: number;
  readonly #addresses = new Map<string, Address<T>>();
  #size = 0;
  #arrivals = 0;
  #turns = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#size;
  }

  /** Takes `item`; what has to go for it, which may be itself. */
  push(item: T): T | null {
    this.#arrivals += 1;
    const address = this.#addressOf(item);
    const line = lineOf(address, item);
    line.items.push(item);
    address.count += 1;
    address.asked += 1;
    line.asked += 1;
    this.#size += 1;
    address.latest = line.latest = this.#arrivals;
    line.failures = item.failures;
    if (this.#size <= this.#most) {
      return null;
    }
    const largest = best(this.#waiting(), (a, b) => a.count - b.count || b.latest - a.latest);
    const longest = best(linesOf(largest), (a, b) => {
      return a.items.length - b.items.length || a.failures - b.failures || b.latest - a.latest;
    });
    const last = longest?.items.pop();
    this.#gone(largest);
    if (largest !== undefined && largest.lines.size > MAX_ACCOUNTS) {
      drop(largest.lines, ({ items }) => items.length === 0);
    }
    if (this.#addresses.size > MAX_ACCOUNTS) {
      drop(this.#addresses, ({ count }) => count === 0);
    }
    return last ?? null;
  }

  /** The next, which leaves the queue. */
  shift(): T | null {
    this.#turns += 1;
    const latestFirst = this.#turns % 2 === 0 ? 1 : -1;
    const least = <L extends { asked: number; latest: number }>(a: L, b: L): number =>
      b.asked - a.asked || latestFirst * (a.latest - b.latest);
    const address = best(this.#waiting(), least);
    const line = best(linesOf(address), (a, b) => b.failures - a.failures || least(a, b));
    const item = line?.items.shift();
    if (address === undefined || line === undefined || item === undefined) {
      return null;
    }
    this.#gone(address);
    return item;
  }

  /** Everything a connection asked for leaves the queue. */
  remove({ address: name, connection }: Waiting): readonly T[] {
    const address = this.#addresses.get(name);
    const items = address?.lines.get(connection)?.items.splice(0) ?? [];
    for (let count = items.length; count > 0; count -= 1) {
      this.#gone(address);
    }
    return items;
  }

  #addressOf({ address: name }: T): Address<T> {
    let address = this.#addresses.get(name);
    if (address === undefined) {
      address = { lines: new Map(), count: 0, asked: 0, latest: 0 };
      this.#addresses.set(name, address);
    }
    return address;
  }

  #waiting(): Iterable<Address<T>> {
    return [...this.#addresses.values()].filter(({ count }) => count > 0);
  }

  /** Accounts are closed when the queue is empty. */
  #gone(address: Address<T> | undefined): void {
    this.#size -= 1;
    if (address !== undefined) {
      address.count -= 1;
    }
    if (this.#size === 0) {
      this.#addresses.clear();
    }
  }
}

function lineOf<T extends Waiting>(address: Address<T>, { connection }: T): Line<T> {
  let line = address.lines.get(connection);
  if (line === undefined) {
    line = { items: [], asked: 0, latest: 0, failures: 0 };
    address.lines.set(connection, line);
  }
  return line;
}

function linesOf<T>(address: Address<T> | undefined): Iterable<Line<T>> {
  return [...(address?.lines.values() ?? [])].filter(({ items }) => items.length > 0);
}

function drop<K, V>(all: Map<K, V>, isOver: (one: V) => boolean): void {
  for (const [key, one] of all) {
    if (isOver(one)) {
      all.delete(key);
    }
  }
}

/** The greatest by `compare`. */
function best<T>(all: Iterable<T>, compare: (a: T, b: T) => number): T | undefined {
  let found: T | undefined;
  for (const one of all) {
    if (found === undefined || compare(one, found) > 0) {
      found = one;
    }
  }
  return found;
}
