/** Identifies users through the identity provider, by token or by name and password. */
import type { Logger } from '../../observability/index.js';
import { CircuitBreaker } from './circuit-breaker.js';
import { KeySet } from './key-set.js';
import { MetadataSource, type ProviderMetadata } from './metadata.js';
import { PasswordFlow } from './password-flow.js';
import type { OidcSettings } from './settings.js';
import { TokenProver } from './token-proof.js';
import { HttpTransport, type Transport } from './transport.js';
import { UserInfo } from './user-info.js';
import { refused, type Verdict } from './verdict.js';
import { type Clocks, SYSTEM_CLOCKS, tokenKey, VerdictCache } from './verdict-cache.js';

interface ProviderOptions {
  readonly transport?: Transport;
  readonly clocks?: Clocks;
}

/** Token syntax from RFC 6750, checked only for tokens that are not cached. */
const TOKEN = /^[\w.~+/-]+=*$/;
/** Maximum token length. Longer tokens are refused without further checks. */
const MAX_TOKEN_LENGTH = 16 * 1024;

export class IdentityProvider {
  readonly settings: OidcSettings;
  readonly #metadata: MetadataSource;
  readonly #userInfo: UserInfo;
  readonly #prover: TokenProver;
  readonly #passwords: PasswordFlow;
  readonly #cache: VerdictCache;

  constructor(settings: OidcSettings, logger: Logger, options: ProviderOptions = {}) {
    const clocks = options.clocks ?? SYSTEM_CLOCKS;
    const calls = options.transport ?? new HttpTransport(settings);
    const transport = new CircuitBreaker(calls, clocks, logger);
    const metadata = new MetadataSource(settings, transport, logger);
    const keys = new KeySet(metadata, transport, clocks);
    this.settings = settings;
    this.#metadata = metadata;
    this.#prover = new TokenProver({ settings, metadata, findKey: keys.find, logger, clocks });
    this.#userInfo = new UserInfo({
      settings,
      metadata,
      transport,
      prover: this.#prover,
      logger,
      clocks,
    });
    this.#passwords = new PasswordFlow({ settings, metadata, transport, logger });
    this.#cache = new VerdictCache(settings, clocks);
  }

  /** Returns the provider's metadata if it arrives within `waitMs`, else `null`. */
  metadata(waitMs: number): Promise<ProviderMetadata | null> {
    return this.#metadata.within(waitMs);
  }

  /** Identifies the owner of a bearer token; synchronous if the result is cached. */
  token(token: string): Verdict | Promise<Verdict> {
    return this.#cache.get(tokenKey(token), () => this.#identify(token));
  }

  /** Returns the number of cached results, positive and negative. */
  get remembered(): number {
    return this.#cache.size;
  }

  /** Returns whether the verdict on `token` is cached. */
  remembers(token: string): boolean {
    return this.#cache.has(tokenKey(token));
  }

  /** Verifies a name and password with the password flow, which is off by default. */
  password(user: string, password: string): Verdict | Promise<Verdict> {
    return this.#cache.get(this.#passwords.keyOf(user, password), () =>
      this.#passwords.request(user, password, async ({ access, id }) => {
        if (!this.settings.groupsInToken) {
          return await this.#userInfo.request(access);
        }
        return id === null
          ? refused('the identity provider returned no ID token')
          : await this.#prover.prove(id);
      }),
    );
  }

  #identify(token: string): Promise<Verdict> {
    if (token.length > MAX_TOKEN_LENGTH || !TOKEN.test(token)) {
      return Promise.resolve(refused('malformed token'));
    }
    return this.settings.groupsInToken ? this.#prover.prove(token) : this.#userInfo.request(token);
  }
}
