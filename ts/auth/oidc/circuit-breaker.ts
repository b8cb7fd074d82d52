/**
 * A provider that is down is not waited for by everybody: after some calls in a row without an
 * answer, calls fail at once for a while; then one of them tries again.
 */
import type { Logger } from '../../observability/index.js';
import {
  type ProviderAnswer,
  type ProviderCall,
  ProviderUnavailable,
  type Transport,
} from './transport.js';
import type { Clocks } from './verdict-cache.js';

const FAILURES_IN_A_ROW = 5;
const OPEN_MS = 10_000;
/** What stands before the provider says so. Other errors may be due to what was asked. */
const OUTAGES: ReadonlySet<number> = new Set([502, 503, 504]);

export class CircuitBreaker implements Transport {
  readonly #transport: Transport;
  readonly #clocks: Clocks;
  readonly #logger: Logger;
  #failures = 0;
  #openUntil = -Infinity;
  #isTrying = false;

  constructor(transport: Transport, clocks: Clocks, logger: Logger) {
    this.#transport = transport;
    this.#clocks = clocks;
    this.#logger = logger;
  }

  async call(call: ProviderCall): Promise<ProviderAnswer> {
    if (this.#failures < FAILURES_IN_A_ROW) {
      return await this.#counted(call);
    }
    const left = this.#openUntil - this.#clocks.monotonic();
    if (left > 0 || this.#isTrying) {
      const seconds = Math.max(Math.ceil(left / 1000), 1);
      const message = 'the identity provider did not answer a moment ago';
      throw new ProviderUnavailable(message, { seconds });
    }
    this.#isTrying = true;
    try {
      return await this.#counted(call);
    } finally {
      this.#isTrying = false;
    }
  }

  async #counted(call: ProviderCall): Promise<ProviderAnswer> {
    let answer: ProviderAnswer;
    try {
      answer = await this.#transport.call(call);
    } catch (error) {
      this.#failed();
      throw error;
    }
    if (OUTAGES.has(answer.status)) {
      this.#failed();
    } else {
      this.#failures = 0;
    }
    return answer;
  }

  #failed(): void {
    this.#failures += 1;
    if (this.#failures >= FAILURES_IN_A_ROW) {
      this.#openUntil = this.#clocks.monotonic() + OPEN_MS;
      this.#logger.warn('provider_not_asked', { failures: this.#failures, forMs: OPEN_MS });
    }
  }
}
