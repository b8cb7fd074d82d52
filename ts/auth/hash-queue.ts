/**
 * Fair scheduling of hashes. The address with the fewest requests is next, and within it the
 * connection with the fewest failures, then the fewest requests. Ties alternate between the
 * earliest and the latest arrival, so that neither an old backlog nor a growing one starves a
 * client. When the queue is full, the address with the most queued requests loses one: many
 * attempts by one client cannot block another client's first.
 */

/** A queued request. */
export interface Waiting {
  readonly address: string;
  /** Identifies the connection. */
  readonly connection: object;
  /** Failures on the connection since its last success; negative after a success. */
  readonly failures: number;
}

interface Line<T> {
  readonly items: T[];
  /** Number of requests since the queue was last empty. */
  asked: number;
  /** Sequence number of the latest arrival, across all connections. */
  latest: number;
  failures: number;
}

interface Address<T> {
  readonly lines: Map<object, Line<T>>;
  count: number;
  asked: number;
  latest: number;
}

/**
 * Maximum number of tracked addresses, and of tracked connections per address. Above it, idle ones
 * are dropped.
 */
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

  /** Queues `item`. Returns the request that was displaced, which may be `item` itself. */
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

  /** Removes and returns the next request. */
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

  /** Removes and returns all requests of a connection. */
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

  /** Counters are reset when the queue is empty. */
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

/** The maximum by `compare`. */
function best<T>(all: Iterable<T>, compare: (a: T, b: T) => number): T | undefined {
  let found: T | undefined;
  for (const one of all) {
    if (found === undefined || compare(one, found) > 0) {
      found = one;
    }
  }
  return found;
}
