/**
 * The access control store. All data is in memory, and each change is one catalog commit. Every
 * change increments the epoch; readers compare it to invalidate cached rights.
 */
import { randomBytes } from 'node:crypto';

import { type Identity, identityKey, NameSalts } from '../auth/index.js';
import { DatabaseError, type Owner } from '../session/index.js';
import type { Grants } from './model.js';
import { isDatabaseAdmin } from './model.js';
import { decodePrincipal, encodePrincipal, idOfName, type StoredPrincipal } from './principals.js';

const RECORD_KIND = 'access';
const PRINCIPAL = 'principal:';
const INTENT = 'intent:';
/** The secret that salts are derived from. It never changes during the database's lifetime. */
const SALT_SECRET = 'salt secret';
const SECRET_BYTES = 32;

/** The part of the database API that stores records. */
interface Records {
  loadRecords(kind: string): Promise<Map<string, Buffer>>;
  commitRecords(kind: string, changes: ReadonlyMap<string, Buffer | null>): Promise<bigint>;
}

/** A principal's effective rights. */
export interface Rights {
  /** Whether every access is allowed. */
  readonly all: boolean;
  readonly sets: readonly Grants[];
  /** Service accounts that the principal may assume, each with its grant option. */
  readonly accounts: ReadonlyMap<string, boolean>;
}

export const EVERYTHING: Rights = { all: true, sets: [], accounts: new Map() };
const NOTHING: Rights = { all: false, sets: [], accounts: new Map() };

/**
 * Maximum number of cached entries. External users can have many different combinations of groups.
 */
const MAX_CACHED_RIGHTS = 10_000;

/** A change in progress. It sees its own changes; others see them only after the commit. */
export class Draft {
  readonly #store: AccessStore;
  readonly #changed = new Map<string, StoredPrincipal | null>();
  readonly #intents = new Map<string, Buffer | null>();

  constructor(store: AccessStore) {
    this.#store = store;
  }

  find(name: string): StoredPrincipal | undefined {
    const changed = this.#changed.get(name);
    return changed === undefined ? this.#store.find(name) : (changed ?? undefined);
  }

  list(): readonly StoredPrincipal[] {
    const unchanged = [...this.#store.list()].filter(({ name }) => !this.#changed.has(name));
    const changed = [...this.#changed.values()].filter((principal) => principal !== null);
    return [...unchanged, ...changed];
  }

  put(principal: StoredPrincipal): void {
    this.#changed.set(principal.name, principal);
  }

  remove(name: string): void {
    this.#changed.set(name, null);
  }

  /** Applies a change to the grants of every principal. */
  mapGrants(change: (grants: Grants) => Grants): void {
    for (const principal of this.list()) {
      const grants = change(principal.grants);
      if (grants !== principal.grants) {
        this.put({ ...principal, grants });
      }
    }
  }

  setIntent(id: string, intent: Buffer | null): void {
    this.#intents.set(id, intent);
  }

  get principals(): ReadonlyMap<string, StoredPrincipal | null> {
    return this.#changed;
  }

  records(): Map<string, Buffer | null> {
    const records = new Map<string, Buffer | null>();
    for (const [name, principal] of this.#changed) {
      records.set(PRINCIPAL + name, principal === null ? null : encodePrincipal(principal));
    }
    for (const [id, intent] of this.#intents) {
      records.set(INTENT + id, intent);
    }
    return records;
  }
}

export class AccessStore {
  /** Salts for passwords and for unknown names. */
  readonly salts: NameSalts;
  readonly #records: Records;
  readonly #principals = new Map<string, StoredPrincipal>();
  /** Token owners, keyed by token digest. */
  readonly #tokens = new Map<string, string>();
  readonly #intents = new Map<string, Buffer>();
  readonly #rights = new Map<string, Rights>();
  /** Functions that limit grants while names are being reassigned between objects. */
  readonly #withheld = new Set<(grants: Grants) => Grants>();
  readonly #watchers: (() => void)[] = [];
  #epoch = 0;
  #follow: () => Promise<void> = () => Promise.resolve();
  #last: Promise<unknown> = Promise.resolve();

  private constructor(records: Records, saltSecret: Buffer) {
    this.#records = records;
    this.salts = new NameSalts(saltSecret);
  }

  static async open(records: Records): Promise<AccessStore> {
    const stored = await records.loadRecords(RECORD_KIND);
    const secret = stored.get(SALT_SECRET) ?? randomBytes(SECRET_BYTES);
    if (!stored.has(SALT_SECRET)) {
      // A full disk must not prevent startup; the next start stores a secret.
      await records
        .commitRecords(RECORD_KIND, new Map([[SALT_SECRET, secret]]))
        .catch(() => undefined);
    }
    const store = new AccessStore(records, secret);
    for (const [key, bytes] of stored) {
      if (key.startsWith(PRINCIPAL)) {
        store.#index(key.slice(PRINCIPAL.length), decodePrincipal(bytes));
      } else if (key.startsWith(INTENT)) {
        store.#intents.set(key.slice(INTENT.length), bytes);
      }
    }
    return store;
  }

  /** Incremented by every change. */
  get epoch(): number {
    return this.#epoch;
  }

  find(name: string): StoredPrincipal | undefined {
    return this.#principals.get(name);
  }

  list(): Iterable<StoredPrincipal> {
    return this.#principals.values();
  }

  ownerOfToken(digest: string): StoredPrincipal | undefined {
    const name = this.#tokens.get(digest);
    return name === undefined ? undefined : this.#principals.get(name);
  }

  /** Returns the schema changes that were in progress when the previous process ended. */
  intents(): ReadonlyMap<string, Buffer> {
    return this.#intents;
  }

  /** Runs one change at a time. All changes to the draft are committed together. */
  change<T>(work: (draft: Draft) => T | Promise<T>): Promise<T> {
    const queued = this.#last.then(async () => {
      const draft = new Draft(this);
      const result = await work(draft);
      const records = draft.records();
      if (records.size > 0) {
        await this.#records.commitRecords(RECORD_KIND, records);
        this.#apply(draft);
        await this.#follow();
      }
      return result;
    });
    this.#last = queued.catch(() => undefined);
    return queued;
  }

  /**
   * Restricts grants until the returned function is called. `limit` receives the stored grants and
   * returns those that remain in effect.
   */
  withhold(limit: (grants: Grants) => Grants): () => void {
    this.#withheld.add(limit);
    this.#notify();
    return () => {
      this.#withheld.delete(limit);
      this.#notify();
    };
  }

  /** Calls `changed` whenever effective rights change. */
  watch(changed: () => void): void {
    this.#watchers.push(changed);
  }

  /** Runs `follow` after each committed change, before the change is reported. */
  followChanges(follow: () => Promise<void>): void {
    this.#follow = follow;
  }

  #notify(): void {
    for (const changed of this.#watchers) {
      changed();
    }
  }

  /** Returns the rights that are currently in effect, excluding restricted grants. */
  effective(rights: Rights): Rights {
    if (rights.all || this.#withheld.size === 0) {
      return rights;
    }
    const limited = (grants: Grants): Grants =>
      [...this.#withheld].reduce((remaining, limit) => limit(remaining), grants);
    return { ...rights, sets: rights.sets.map(limited) };
  }

  /** Returns the current rights of `identity`. */
  rightsOf(identity: Identity): Rights {
    const { kind, name, assumedBy } = identity;
    if (kind === 'admin') {
      return EVERYTHING;
    }
    if (assumedBy !== undefined && !this.#mayBecome(assumedBy, name)) {
      return NOTHING;
    }
    if (kind === 'external') {
      const key = `x:${JSON.stringify(identity.externalGroups ?? [])}`;
      return this.#cached(key, () => rightsOf(this.groupsOf(identity)));
    }
    return this.#cached(`p:${identityKey(identity)}`, () => this.#rightsOfLogin(identity));
  }

  /** Returns the rights of a view's owner, even if the owner may not log in. */
  rightsOfOwner(owner: Owner): Rights {
    const key = owner.id ?? idOfName(owner.name);
    return this.#cached(`o:${key}`, () => this.#rightsOfStored(this.#ownerOf(owner)));
  }

  /**
   * Returns every principal whose rights this principal can obtain through groups and chains of
   * service accounts.
   */
  reachOf(principal: StoredPrincipal): readonly StoredPrincipal[] {
    const reached = new Set([principal]);
    for (const principal of reached) {
      const accounts = [...principal.accounts.keys()].flatMap(
        (name) => this.#principals.get(name) ?? [],
      );
      for (const next of [
        ...principal.groups.flatMap((group) => this.#group(group)),
        ...accounts,
      ]) {
        reached.add(next);
      }
    }
    return [...reached];
  }

  /** Returns the groups of `identity`. */
  groupsOf({ kind, name, externalGroups = [] }: Identity): readonly StoredPrincipal[] {
    if (kind !== 'external') {
      return (this.#principals.get(name)?.groups ?? []).flatMap((group) => this.#group(group));
    }
    return [...this.#principals.values()].filter(
      (principal) =>
        principal.kind === 'group' &&
        principal.aliases.some((alias) => externalGroups.includes(alias)),
    );
  }

  #mayBecome(identity: Identity, account: string): boolean {
    const { all, accounts } = this.rightsOf(identity);
    return all || accounts.has(account);
  }

  /**
   * Returns a view's owner. For a view created by an older version, this is the principal that had
   * the owner's name at that time.
   */
  #ownerOf({ name, id }: Owner): StoredPrincipal | undefined {
    if (id === null) {
      const found = this.#principals.get(name);
      return found?.id === idOfName(name) ? found : undefined;
    }
    return [...this.#principals.values()].find((principal) => keyOf(principal) === id);
  }

  #cached(key: string, make: () => Rights): Rights {
    const known = this.#rights.get(key);
    if (known !== undefined) {
      return known;
    }
    if (this.#rights.size >= MAX_CACHED_RIGHTS) {
      this.#rights.clear();
    }
    const rights = make();
    this.#rights.set(key, rights);
    return rights;
  }

  /** Returns the rights of a login. A deleted principal has none, even if its name was reused. */
  #rightsOfLogin(identity: Identity): Rights {
    const principal = this.#principals.get(identity.name);
    const isSame = principal !== undefined && keyOf(principal) === identityKey(identity);
    return isSame && principal.enabled ? this.#rightsOfStored(principal) : NOTHING;
  }

  #rightsOfStored(principal: StoredPrincipal | undefined): Rights {
    if (principal === undefined) {
      return NOTHING;
    }
    return rightsOf([principal, ...principal.groups.flatMap((group) => this.#group(group))]);
  }

  #group(name: string): StoredPrincipal[] {
    const group = this.#principals.get(name);
    return group?.kind === 'group' ? [group] : [];
  }

  #apply(draft: Draft): void {
    for (const [name, principal] of draft.principals) {
      this.#index(name, principal);
    }
    this.#rights.clear();
    this.#epoch += 1;
    this.#notify();
  }

  #index(name: string, principal: StoredPrincipal | null): void {
    for (const { digest } of this.#principals.get(name)?.tokens ?? []) {
      this.#tokens.delete(digest);
    }
    if (principal === null) {
      this.#principals.delete(name);
      return;
    }
    this.#principals.set(name, principal);
    for (const { digest } of principal.tokens) {
      this.#tokens.set(digest, name);
    }
  }
}

function rightsOf(principals: readonly StoredPrincipal[]): Rights {
  const sets = principals.map(({ grants }) => grants);
  const accounts = new Map<string, boolean>();
  for (const [account, option] of principals.flatMap((principal) => [...principal.accounts])) {
    accounts.set(account, option || accounts.get(account) === true);
  }
  return { all: isDatabaseAdmin(sets), sets, accounts };
}

/** Returns the key that `identityKey` returns for the principal's logins. */
export function keyOf({ kind, id }: StoredPrincipal): string {
  return `${kind} ${id}`;
}

/** Creates an error that carries its position in the statement. */
export function refused(message: string, span?: { start: number; end: number }): DatabaseError {
  return new DatabaseError({ code: 'InvalidValue', message, ...span });
}
