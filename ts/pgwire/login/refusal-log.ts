/** Refused logins in the server's log: so many a minute, and how many more there were. */
import type { Logger } from '../../observability/index.js';

const WINDOW_MS = 60_000;
const MOST_LINES = 60;

export class RefusalLog {
  readonly #logger: Pick<Logger, 'info'>;
  #lines = 0;
  #more = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(logger: Pick<Logger, 'info'>) {
    this.#logger = logger;
  }

  add(user: string, address: string): void {
    this.#timer ??= setTimeout(() => {
      this.flush();
    }, WINDOW_MS).unref();
    if (this.#lines < MOST_LINES) {
      this.#lines += 1;
      this.#logger.info('login_failed', { user, address });
    } else {
      this.#more += 1;
    }
  }

  /** Tells what was only counted. */
  flush(): void {
    clearTimeout(this.#timer ?? undefined);
    this.#timer = null;
    if (this.#more > 0) {
      this.#logger.info('logins_failed', { count: this.#more });
    }
    this.#lines = 0;
    this.#more = 0;
  }
}
