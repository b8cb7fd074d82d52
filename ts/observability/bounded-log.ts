/**
 * Limits the logging of events that clients can cause: at most a certain number of lines per
 * minute, then only a count of the others.
 */
import type { Logger } from './logger.js';

const WINDOW_MS = 60_000;
const MAX_LINES = 60;

/** Names of the log events: for a single event, and for the count. */
interface BoundedEvents {
  readonly one: string;
  readonly more: string;
}

export class BoundedLog {
  readonly #logger: Pick<Logger, 'info'>;
  readonly #events: BoundedEvents;
  #lines = 0;
  #more = 0;
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
      this.#logger.info(this.#events.one, fields);
    } else {
      this.#more += 1;
    }
  }

  /** Logs the number of omitted events. */
  flush(): void {
    clearTimeout(this.#timer ?? undefined);
    this.#timer = null;
    if (this.#more > 0) {
      this.#logger.info(this.#events.more, { count: this.#more });
    }
    this.#lines = 0;
    this.#more = 0;
  }
}

/** Log of refused logins. */
export function refusedLogins(logger: Pick<Logger, 'info'>): BoundedLog {
  return new BoundedLog(logger, { one: 'login_failed', more: 'logins_failed' });
}
