/**
 * Fair scheduling of hashes. The address with the fewest requests is served next. Among its
 * connections, the one with the fewest failures comes first, then the one with the fewest requests.
 * Ties alternate between the earliest and the latest arrival, so that neither an old backlog nor a
 * growing one starves a client. When the queue is full, the address with the most queued requests
 * loses one. Many attempts by one client therefore cannot block another client's first attempt.
 */

/** A queued request. */
export interface Waiting {
  readonly address: string;
  /** The connection's identity. */
  readonly connection: object;
  /** Failures on the connection since its last success; negative after a success. */
  readonly failures: number;
}

interface ConnectionQueue<T> {
  readonly items: T[];
  /** Number of requests since the queue was last empty. */
  requests: number;
  /** Sequence number of the latest arrival, across all connections. */
  latest: number;
  failures: number;
}

interface Address<T> {
  readonly connections: Map<object, ConnectionQueue<T>>;
  count: number;
  requests: number;
  latest: number;
}

/**
 * Maximum number of tracked addresses, and of tracked connections per address. When it is exceeded,
 * idle entries are dropped.
 */
const MAX_ACCOUNTS = 1_000;

export class HashQueue<T extends Waiting> {
  readonly #capacity: number;
  readonly #addresses = new Map<string, Address<T>>();
  #size = 0;
  #arrivals = 0;
  #rounds = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#size;
  }

  /** Queues `item`. Returns the displaced request, if any, which may be `item` itself. */
  push(item: T): T | null {
    this.#arrivals += 1;
    const address = this.#addressOf(item);
    const queue = connectionOf(address, item);
    queue.items.push(item);
    address.count += 1;
    address.requests += 1;
    queue.requests += 1;
    this.#size += 1;
    address.latest = queue.latest = this.#arrivals;
    queue.failures = item.failures;
    if (this.#size <= this.#capacity) {
      return null;
    }
    const fullest = best(this.#waiting(), (a, b) => a.count - b.count || b.latest - a.latest);
    const victim = best(connectionsOf(fullest), (a, b) => {
      return a.items.length - b.items.length || a.failures - b.failures || b.latest - a.latest;
    });
    const last = victim?.items.pop();
    this.#removed(fullest);
    if (fullest !== undefined && fullest.connections.size > MAX_ACCOUNTS) {
      drop(fullest.connections, ({ items }) => items.length === 0);
    }
    if (this.#addresses.size > MAX_ACCOUNTS) {
      drop(this.#addresses, ({ count }) => count === 0);
    }
    return last ?? null;
  }

  /** Removes and returns the next request. */
  shift(): T | null {
    this.#rounds += 1;
    const latestFirst = this.#rounds % 2 === 0 ? 1 : -1;
    const byFewestRequests = <L extends { requests: number; latest: number }>(a: L, b: L): number =>
      b.requests - a.requests || latestFirst * (a.latest - b.latest);
    const address = best(this.#waiting(), byFewestRequests);
    const queue = best(
      connectionsOf(address),
      (a, b) => b.failures - a.failures || byFewestRequests(a, b),
    );
    const item = queue?.items.shift();
    if (address === undefined || queue === undefined || item === undefined) {
      return null;
    }
    this.#removed(address);
    return item;
  }

  /** Removes and returns all requests of a connection. */
  remove({ address: name, connection }: Waiting): readonly T[] {
    const address = this.#addresses.get(name);
    const items = address?.connections.get(connection)?.items.splice(0) ?? [];
    for (let count = items.length; count > 0; count -= 1) {
      this.#removed(address);
    }
    return items;
  }

  #addressOf({ address: name }: T): Address<T> {
    let address = this.#addresses.get(name);
    if (address === undefined) {
      address = { connections: new Map(), count: 0, requests: 0, latest: 0 };
      this.#addresses.set(name, address);
    }
    return address;
  }

  #waiting(): Iterable<Address<T>> {
    return [...this.#addresses.values()].filter(({ count }) => count > 0);
  }

  /** Counters are reset when the queue is empty. */
  #removed(address: Address<T> | undefined): void {
    this.#size -= 1;
    if (address !== undefined) {
      address.count -= 1;
    }
    if (this.#size === 0) {
      this.#addresses.clear();
    }
  }
}

function connectionOf<T extends Waiting>(
  address: Address<T>,
  { connection }: T,
): ConnectionQueue<T> {
  let queue = address.connections.get(connection);
  if (queue === undefined) {
    queue = { items: [], requests: 0, latest: 0, failures: 0 };
    address.connections.set(connection, queue);
  }
  return queue;
}

function connectionsOf<T>(address: Address<T> | undefined): Iterable<ConnectionQueue<T>> {
  return [...(address?.connections.values() ?? [])].filter(({ items }) => items.length > 0);
}

function drop<K, V>(all: Map<K, V>, isOver: (entry: V) => boolean): void {
  for (const [key, entry] of all) {
    if (isOver(entry)) {
      all.delete(key);
    }
  }
}

/** Returns the largest element according to `compare`. */
function best<T>(all: Iterable<T>, compare: (a: T, b: T) => number): T | undefined {
  let maximum: T | undefined;
  for (const candidate of all) {
    if (maximum === undefined || compare(candidate, maximum) > 0) {
      maximum = candidate;
    }
  }
  return maximum;
}
