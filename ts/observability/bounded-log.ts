/**
 * Limits logging of events that clients can cause. Logs at most a certain number of lines per
 * minute, and only counts further events.
 */
import type { Logger } from './logger.js';

const WINDOW_MS = 60_000;
const MAX_LINES = 60;

/** Names of the log events: for a single event, and for the count. */
interface BoundedEvents {
  readonly single: string;
  readonly omitted: string;
}

export class BoundedLog {
  readonly #logger: Pick<Logger, 'info'>;
  readonly #events: BoundedEvents;
  #lines = 0;
  #omitted = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(logger: Pick<Logger, 'info'>, events: BoundedEvents) {
    this.#logger = logger;
    this.#events = events;
  }

  add(fields: Readonly<Record<string, unknown>>): void {
    this.#timer ??= setTimeout(() => {
      this.flush();
    }, WINDOW_MS).unref();
    if (this.#lines < MAX_LINES) {
      this.#lines += 1;
      this.#logger.info(this.#events.single, fields);
    } else {
      this.#omitted += 1;
    }
  }

  /** Logs the number of omitted events. */
  flush(): void {
    clearTimeout(this.#timer ?? undefined);
    this.#timer = null;
    if (this.#omitted > 0) {
      this.#logger.info(this.#events.omitted, { count: this.#omitted });
    }
    this.#lines = 0;
    this.#omitted = 0;
  }
}

/** Log of refused logins. */
export function refusedLogins(logger: Pick<Logger, 'info'>): BoundedLog {
  return new BoundedLog(logger, { single: 'login_failed', omitted: 'logins_failed' });
}
