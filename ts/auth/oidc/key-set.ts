/**
 * The provider's public keys. They are fetched on first use. An unknown key ID fetches them again,
 * at a limited rate.
 */
import { createLocalJWKSet, errors, type JWK, type JWTVerifyGetKey } from 'jose';

import { parseClaims } from './claims.js';
import type { MetadataSource } from './metadata.js';
import { ProviderUnavailable, type Transport } from './transport.js';
import { type Clocks, SYSTEM_CLOCKS } from './verdict-cache.js';

type KeyFinder = ReturnType<typeof createLocalJWKSet>;

const REFETCH_MS = 30_000;
/** Maximum time that a withdrawn key remains valid. */
const LIFETIME_MS = 10 * 60_000;

export class KeySet {
  readonly #metadata: MetadataSource;
  readonly #transport: Transport;
  readonly #clocks: Clocks;
  #find: KeyFinder | null = null;
  #fetching: Promise<KeyFinder> | null = null;
  #fetchedAt = -Infinity;

  constructor(metadata: MetadataSource, transport: Transport, clocks: Clocks = SYSTEM_CLOCKS) {
    this.#metadata = metadata;
    this.#transport = transport;
    this.#clocks = clocks;
  }

  /**
   * Finds the key that a header names, in the form that `jose` requires. Keys embedded in the
   * header are ignored.
   */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const { alg, kid } = header;
    const named = { alg, ...(kid === undefined ? {} : { kid }) };
    const age = this.#clocks.monotonic() - this.#fetchedAt;
    const keys = this.#find === null || age > LIFETIME_MS ? await this.#fetch() : this.#find;
    try {
      return await keys(named, token);
    } catch (error) {
      const mayFetch = this.#clocks.monotonic() - this.#fetchedAt > REFETCH_MS;
      if (!(error instanceof errors.JWKSNoMatchingKey) || !mayFetch) {
        throw error;
      }
      return await (
        await this.#fetch()
      )(named, token);
    }
  };

  async #fetch(): Promise<KeyFinder> {
    this.#fetching ??= this.#load().finally(() => {
      this.#fetching = null;
    });
    return await this.#fetching;
  }

  async #load(): Promise<KeyFinder> {
    const { publicKeys: url } = await this.#metadata.get();
    const { status, body } = await this.#transport.call({ url });
    const keys = status === 200 ? parseClaims(body)?.['keys'] : undefined;
    if (!Array.isArray(keys)) {
      throw new ProviderUnavailable(`the public keys endpoint returned no keys [status=${status}]`);
    }
    this.#find = createLocalJWKSet({ keys: keys as JWK[] });
    this.#fetchedAt = this.#clocks.monotonic();
    return this.#find;
  }
}
