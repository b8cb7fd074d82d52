/** The endpoints' certificates. Each is reloaded when its files change. */
import type { Config } from './config/index.js';
import type { Logger } from './observability/index.js';
import { certificateFiles, CredentialStore, type TlsEndpoint, TlsError } from './tls/index.js';

const ENDPOINTS: readonly TlsEndpoint[] = ['http', 'http.min', 'pg', 'line.tcp'];

export class Encryption {
  readonly #config: Config;
  readonly #logger: Logger;
  readonly #stores = new Map<TlsEndpoint, CredentialStore>();

  /** Throws `ConfigError` or `TlsError` if an endpoint has no usable certificate. */
  constructor(config: Config, logger: Logger) {
    this.#config = config;
    this.#logger = logger.child('tls');
    for (const endpoint of ENDPOINTS) {
      const files = certificateFiles(config, endpoint);
      if (files !== null) {
        this.#stores.set(endpoint, new CredentialStore(files));
      }
    }
  }

  /** Returns an endpoint's credentials; `null` if the endpoint is not encrypted. */
  of(endpoint: TlsEndpoint): CredentialStore | null {
    return this.#stores.get(endpoint) ?? null;
  }

  /** Reloads certificates when files change, until `close`. */
  watch(): void {
    for (const store of this.#stores.values()) {
      store.watch(() => {
        this.reload();
      });
    }
  }

  /**
   * Reads all files. If a certificate is unusable, logs it, continues to use the previous one, and
   * returns false.
   */
  reload(): boolean {
    let allUsable = true;
    for (const [endpoint, store] of this.#stores) {
      try {
        if (store.reload(certificateFiles(this.#config, endpoint) ?? undefined)) {
          this.#logger.info('certificate_loaded', { endpoint });
        }
      } catch (error) {
        if (!(error instanceof TlsError)) {
          throw error;
        }
        allUsable = false;
        this.#logger.error('certificate_refused', { endpoint, reason: error.message });
      }
    }
    return allUsable;
  }

  close(): void {
    for (const store of this.#stores.values()) {
      store.close();
    }
  }
}
