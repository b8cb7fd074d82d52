/**
 * Refused logins for the audit log. A client can cause an unlimited number of them, so they go to a
 * separate log and repeats are only counted. The first refusal of a name from an address is written
 * immediately. Further refusals within a minute are combined into one line with their count.
 */
import type { LoginEndpoint } from '../auth/index.js';
import type { AuditLog } from './audit.js';

const WINDOW_MS = 60_000;
/**
 * Maximum number of names counted separately within a minute. Further names are counted per
 * address, also up to a limit.
 */
const MAX_NAMES = 100;
const MAX_ADDRESSES = 100;
const MAX_NAME_LENGTH = 256;
/** Number of sample names recorded for an address whose names are not counted separately. */
const EXAMPLES = 5;

interface Repeated {
  readonly name: string;
  readonly endpoint: LoginEndpoint;
  readonly address: string;
  count: number;
}

interface Omitted {
  readonly examples: Set<string>;
  count: number;
}

export class Refusals {
  readonly #log: Pick<AuditLog, 'write'>;
  readonly #byName = new Map<string, Repeated>();
  readonly #byAddress = new Map<string, Omitted>();
  #since = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(log: Pick<AuditLog, 'write'>) {
    this.#log = log;
  }

  add(claimed: string, endpoint: LoginEndpoint, address: string): void {
    if (this.#timer === null) {
      this.#since = Date.now();
      this.#timer = setTimeout(() => {
        this.flush();
      }, WINDOW_MS).unref();
    }
    const name =
      claimed.length > MAX_NAME_LENGTH ? `${claimed.slice(0, MAX_NAME_LENGTH)}…` : claimed;
    const key = JSON.stringify([name, endpoint, address]);
    const known = this.#byName.get(key);
    if (known !== undefined) {
      known.count += 1;
    } else if (this.#byName.size < MAX_NAMES) {
      this.#byName.set(key, { name, endpoint, address, count: 0 });
      this.#log.write('sign_in_refused', name, { endpoint, address });
    } else {
      this.#countOmitted(name, address);
    }
  }

  /** Writes the counts to the log. */
  flush(): void {
    clearTimeout(this.#timer ?? undefined);
    this.#timer = null;
    const since = new Date(this.#since).toISOString();
    for (const { name, endpoint, address, count } of this.#byName.values()) {
      if (count > 0) {
        this.#log.write('sign_in_refused', name, { endpoint, address, count, since });
      }
    }
    for (const [address, { count, examples }] of this.#byAddress) {
      const names = [...examples].join(', ');
      this.#log.write('sign_ins_refused', '', { address, count, since, names });
    }
    this.#byName.clear();
    this.#byAddress.clear();
  }

  #countOmitted(name: string, from: string): void {
    const isFull = this.#byAddress.size >= MAX_ADDRESSES && !this.#byAddress.has(from);
    const address = isFull ? 'others' : from;
    const omitted = this.#byAddress.get(address) ?? { examples: new Set(), count: 0 };
    omitted.count += 1;
    if (omitted.examples.size < EXAMPLES) {
      omitted.examples.add(name);
    }
    this.#byAddress.set(address, omitted);
  }
}
