/** Verifies logins against the stored principals and the configured administrator. */
import { LRUCache } from 'lru-cache';

import {
  type Caller,
  type Directory,
  fitsVerifier,
  type Identity,
  type LoginEndpoint,
  type PublicKey,
  scramVerifier,
  type ScramVerifier,
} from '../auth/index.js';
import type { AuditLog } from './audit.js';
import type { RestToken, StoredPrincipal } from './principals.js';
import { hasPermission, type AccessSetting } from './setting.js';
import { type AccessStore, keyOf } from './store.js';
import { refreshed, tokenDigest } from './tokens.js';

export interface Administrator {
  readonly name: string;
  readonly password: string;
  readonly enabled: boolean;
}

const MAX_REPORTED = 10_000;

export class StoredDirectory implements Directory {
  readonly #store: AccessStore;
  readonly #audit: Pick<AuditLog, 'write'>;
  /** Expired tokens that have already been reported. */
  readonly #reported = new LRUCache<string, true>({ max: MAX_REPORTED });
  readonly #newRounds: number;
  #rounds: readonly number[] = [];
  #roundsEpoch = -1;
  readonly #refreshMs: number;
  readonly #now: () => number;
  #administrator: { readonly name: string; readonly verifier: ScramVerifier } | null = null;

  constructor(
    store: AccessStore,
    setting: AccessSetting,
    audit: Pick<AuditLog, 'write'>,
    now: () => number = Date.now,
  ) {
    this.#store = store;
    this.#audit = audit;
    this.#newRounds = setting.hashIterations;
    this.#refreshMs = setting.tokenRefreshMs;
    this.#now = now;
  }

  /** Applies the administrator's password, which may change while the server is running. */
  async setAdministrator({ name, password, enabled }: Administrator): Promise<void> {
    const known = this.#administrator?.name === name ? this.#administrator.verifier : null;
    const rounds = known?.iterations ?? this.#roundsOf(name);
    const salt = this.#store.salts.of(name);
    const verifier = enabled ? await scramVerifier(password, salt, rounds) : null;
    if (verifier !== null && known?.storedKey.equals(verifier.storedKey) === true) {
      // The administrator is unchanged, so sessions continue.
      return;
    }
    this.#administrator = verifier === null ? null : { name, verifier };
  }

  scramVerifier(name: string): ScramVerifier | null {
    if (this.#administrator?.name === name) {
      return this.#administrator.verifier;
    }
    const principal = this.#store.find(name);
    return principal?.enabled === true ? principal.verifier : null;
  }

  identityOf(name: string): Identity | null {
    if (this.#administrator?.name === name) {
      return { name, kind: 'admin' };
    }
    const principal = this.#store.find(name);
    return principal === undefined ? null : identityOf(principal);
  }

  enabledIdentity(name: string): Identity | null {
    const principal = this.#store.find(name);
    const isOff = this.#administrator?.name !== name && principal?.enabled !== true;
    return isOff ? null : this.identityOf(name);
  }

  publicKey(name: string): PublicKey | null {
    const principal = this.#store.find(name);
    return principal?.enabled === true ? principal.publicKey : null;
  }

  /**
   * Returns a verifier that resembles a real user's: the salt is derived from the name, and real
   * users have the same iteration count.
   */
  mockVerifier(name: string): ScramVerifier {
    return this.#store.salts.mock(name, this.#roundsOf(name));
  }

  /**
   * Returns the iteration count for a name that has no user. Counts differ between users, because
   * each was configured when the password was set.
   */
  #roundsOf(name: string): number {
    const { epoch, salts } = this.#store;
    if (epoch !== this.#roundsEpoch) {
      this.#roundsEpoch = epoch;
      this.#rounds = [...this.#store.list()]
        .flatMap(({ enabled, verifier }) => (enabled && verifier !== null ? [verifier] : []))
        .map(({ iterations }) => iterations)
        .sort((a, b) => a - b);
    }
    return this.#rounds.length === 0 ? this.#newRounds : salts.choose(name, this.#rounds);
  }

  async verifyPassword(name: string, password: string, caller: Caller): Promise<Identity | null> {
    const verifier = this.scramVerifier(name);
    const fits = await fitsVerifier(verifier ?? this.mockVerifier(name), password, caller);
    // Rejects the login if the password changed during verification.
    if (!fits || verifier === null || this.scramVerifier(name) !== verifier) {
      return null;
    }
    return this.identityOf(name);
  }

  verifyRestToken(token: string): Identity | null {
    const digest = tokenDigest(token);
    const owner = digest === null ? undefined : this.#store.ownerOfToken(digest);
    const stored = owner?.tokens.find((token) => token.digest === digest);
    const now = this.#now();
    if (owner === undefined || stored === undefined) {
      return null;
    }
    if (stored.expires <= now) {
      this.#reportExpiry(owner.name, stored);
      return null;
    }
    if (!owner.enabled) {
      return null;
    }
    if (refreshed(stored, now, this.#refreshMs) !== stored) {
      void this.#refresh(owner.name, stored.digest, now);
    }
    return identityOf(owner);
  }

  /** Reports an expired token once, even if its owner keeps using it. */
  #reportExpiry(owner: string, { digest, expires }: RestToken): void {
    if (!this.#reported.has(digest)) {
      this.#reported.set(digest, true);
      this.#audit.write('token_expired', owner, { expired: new Date(expires).toISOString() });
    }
  }

  async #refresh(owner: string, digest: string, now: number): Promise<void> {
    await this.#store.change((draft) => {
      const principal = draft.find(owner);
      const tokens = principal?.tokens.map((token) =>
        token.digest === digest ? refreshed(token, now, this.#refreshMs) : token,
      );
      const isChanged = tokens?.some((token, at) => token !== principal?.tokens[at]) === true;
      if (principal !== undefined && tokens !== undefined && isChanged) {
        draft.put({ ...principal, tokens });
      }
    });
  }

  mayConnect(identity: Identity, endpoint: LoginEndpoint): boolean {
    return hasPermission(this.#store.rightsOf(identity), endpoint);
  }

  isKnown(name: string): boolean {
    return this.#administrator?.name === name || this.#store.find(name) !== undefined;
  }

  principal(name: string): { readonly key: string; readonly kind: string } | null {
    const principal = this.#store.find(name);
    return principal === undefined ? null : { key: keyOf(principal), kind: principal.kind };
  }

  groupKeys(identity: Identity): readonly string[] {
    return this.#store.groupsOf(identity).map(keyOf);
  }

  isAdministrator(identity: Identity): boolean {
    return this.#store.rightsOf(identity).all;
  }
}

function identityOf({ id, name, kind }: StoredPrincipal): Identity | null {
  return kind === 'group' ? null : { name, kind, id };
}
