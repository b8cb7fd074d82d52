/**
 * Circuit breaker: a provider that is down must not delay every login. After several consecutive
 * failures, it sends a probe without credentials. If the probe also fails, calls fail immediately
 * for some time, after which the provider is probed again. If the probe succeeds, the failures were
 * caused by the credentials, and other logins are unaffected.
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
/**
 * Statuses that indicate a failure between this server and the provider. Other errors may be caused
 * by the request.
 */
const OUTAGES: ReadonlySet<number> = new Set([502, 503, 504]);

export class CircuitBreaker implements Transport {
  readonly #transport: Transport;
  readonly #clocks: Clocks;
  readonly #logger: Logger;
  #failures = 0;
  /**
   * Monotonic time until which calls fail immediately; `null` while calls are sent to the provider.
   */
  #openUntil: number | null = null;
  #probing: Promise<void> | null = null;

  constructor(transport: Transport, clocks: Clocks, logger: Logger) {
    this.#transport = transport;
    this.#clocks = clocks;
    this.#logger = logger;
  }

  async call(call: ProviderCall): Promise<ProviderAnswer> {
    if (this.#openUntil !== null) {
      if (this.#probing !== null || this.#clocks.monotonic() < this.#openUntil) {
        throw this.#refusal();
      }
      await this.#probe(call.url);
      if (this.#isOpen()) {
        throw this.#refusal();
      }
    }
    return await this.#counted(call);
  }

  #isOpen(): boolean {
    return this.#openUntil !== null;
  }

  #refusal(): ProviderUnavailable {
    const remainingMs = (this.#openUntil ?? 0) - this.#clocks.monotonic();
    const seconds = Math.max(Math.ceil(remainingMs / 1000), 1);
    return new ProviderUnavailable('the identity provider is not responding', {
      seconds,
    });
  }

  async #counted(call: ProviderCall): Promise<ProviderAnswer> {
    let answer: ProviderAnswer;
    try {
      answer = await this.#transport.call(call);
    } catch (error) {
      await this.#failed(call);
      throw error;
    }
    if (OUTAGES.has(answer.status)) {
      await this.#failed(call);
    } else {
      this.#failures = 0;
    }
    return answer;
  }

  async #failed({ url }: ProviderCall): Promise<void> {
    this.#failures += 1;
    if (this.#failures >= FAILURES_IN_A_ROW && !this.#isOpen()) {
      await this.#probe(url);
    }
  }

  /** Probes whether the provider responds; concurrent callers share one probe. */
  async #probe(url: string): Promise<void> {
    this.#probing ??= this.#call(url).finally(() => {
      this.#probing = null;
    });
    await this.#probing;
  }

  async #call(url: string): Promise<void> {
    const status = await this.#transport.call({ url }).then(
      (answer) => answer.status,
      () => null,
    );
    if (status !== null && !OUTAGES.has(status)) {
      this.#failures = 0;
      this.#openUntil = null;
      return;
    }
    this.#openUntil = this.#clocks.monotonic() + OPEN_MS;
    this.#logger.warn('provider_not_asked', { failures: this.#failures, forMs: OPEN_MS });
  }
}
