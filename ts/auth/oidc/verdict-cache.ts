/**
 * Caches verdicts while they are valid, keyed by a digest of the complete credential. Concurrent
 * requests with the same credential share one call.
 */
import { hash } from 'node:crypto';

import { LRUCache } from 'lru-cache';

import type { OidcSettings } from './settings.js';
import type { Verdict } from './verdict.js';

interface Entry {
  readonly verdict: Verdict;
  /** Monotonic time until which the verdict is valid. */
  readonly until: number;
  /** Monotonic time until which the verdict may be used if the provider is unavailable. */
  readonly staleUntil: number;
}

export interface Clocks {
  /** Monotonic clock, in milliseconds. */
  readonly monotonic: () => number;
  /** Wall clock, in milliseconds since 1970. */
  readonly wall: () => number;
}

export const SYSTEM_CLOCKS: Clocks = { monotonic: () => performance.now(), wall: Date.now };

type CacheSettings = Pick<
  OidcSettings,
  'cacheTtlMs' | 'cacheEntries' | 'negativeTtlMs' | 'staleMs' | 'skewMs'
>;

export class VerdictCache {
  readonly #settings: CacheSettings;
  readonly #clocks: Clocks;
  readonly #entries: LRUCache<string, Entry>;
  /** Refusals are cached separately, so that a flood of bad tokens does not evict good ones. */
  readonly #refusals: LRUCache<string, Entry>;
  readonly #loading = new Map<string, Promise<Verdict>>();

  constructor(settings: CacheSettings, clocks: Clocks = SYSTEM_CLOCKS) {
    this.#settings = settings;
    this.#clocks = clocks;
    this.#entries = new LRUCache({ max: settings.cacheEntries });
    this.#refusals = new LRUCache({ max: settings.cacheEntries });
  }

  get size(): number {
    return this.#entries.size + this.#refusals.size;
  }

  /** Returns whether a valid verdict is cached. */
  has(key: string): boolean {
    const entry = this.#entries.get(key) ?? this.#refusals.get(key);
    return entry !== undefined && this.#clocks.monotonic() < entry.until;
  }

  /** Returns a cached verdict synchronously, or else the result of `load`. */
  get(key: string, load: () => Promise<Verdict>): Verdict | Promise<Verdict> {
    const entry = this.#entries.get(key) ?? this.#refusals.get(key);
    if (entry !== undefined && this.#clocks.monotonic() < entry.until) {
      return entry.verdict;
    }
    const running = this.#loading.get(key);
    if (running !== undefined) {
      return running;
    }
    const loading = this.#load(key, entry, load).finally(() => this.#loading.delete(key));
    this.#loading.set(key, loading);
    return loading;
  }

  async #load(key: string, before: Entry | undefined, load: () => Promise<Verdict>) {
    const verdict = await load();
    const now = this.#clocks.monotonic();
    if (verdict.kind === 'unavailable') {
      const isStaleUsable = before?.verdict.kind === 'known' && now < before.staleUntil;
      return isStaleUsable ? before.verdict : verdict;
    }
    const { cacheTtlMs, negativeTtlMs, staleMs, skewMs } = this.#settings;
    if (verdict.kind !== 'known') {
      this.#entries.delete(key);
      this.#refusals.set(key, { verdict, until: now + negativeTtlMs, staleUntil: 0 });
      return verdict;
    }
    const remainingMs = (verdict.expires ?? Infinity) + skewMs - this.#clocks.wall();
    const until = now + Math.min(cacheTtlMs, Math.max(remainingMs, 0));
    const staleUntil = Math.min(until + staleMs, now + remainingMs);
    this.#refusals.delete(key);
    this.#entries.set(key, { verdict, until, staleUntil });
    return verdict;
  }
}

/** Returns the cache key for a token. The key contains neither the token nor any part of it. */
export function tokenKey(token: string): string {
  return hash('sha256', token, 'base64');
}
