/** The access control interface that sessions use; `ts/access` implements it. */
import { type Identity, identityKey } from '../auth/index.js';
import type {
  Access,
  ListedRows,
  Owner,
  Visibility,
  StatementDescription,
} from '../engine/types.js';

/** A session's user. */
export interface Principal {
  readonly name: string;
  readonly readOnly: boolean;
  /** The authenticated identity; with access control, a principal without it has no permissions. */
  readonly identity?: Identity;
}

/** A key that is unique per identity, even if several identities have the same name. */
export function principalKey({ name, identity }: Principal): string {
  return identity === undefined ? `name ${name}` : identityKey(identity);
}

/** A statement that will change the catalog. */
export interface CatalogChange {
  readonly principal: Principal;
  readonly text: string;
  readonly description: StatementDescription;
}

/** Lists of users and permissions, which the engine does not store. */
export interface Listed {
  /** Lists, keyed by name. */
  readonly lists: Readonly<Record<string, ListedRows>>;
  /** The tree to run instead; `null` to run the original tree. */
  readonly tree: object | null;
}

/** The table that receives imported rows. */
export interface ImportTarget {
  readonly table: string;
  readonly creates: boolean;
  readonly overwrites: boolean;
  /** Columns that the import adds to the table. */
  readonly adds?: readonly string[];
  /** The owner of a new table; `null` for the importing user. */
  readonly owner: string | null;
}

export interface Guard {
  /** Calls `changed` whenever permissions, visibility or logins change. */
  watch(changed: () => void): void;
  /** Throws `AccessDenied` if `principal` lacks a permission; called before every execution. */
  authorise(principal: Principal, accesses: readonly Access[]): void;
  /** The catalog entries that `principal` may see; `undefined` means all entries. */
  visibility(principal: Principal): Visibility | undefined;
  /** A number that changes when the visibility changes; 0 for users who see everything. */
  visibilityVersion(principal: Principal): number;
  /** Returns a statement's accesses to the server itself rather than to tables. */
  serverAccesses(tree: object): readonly Access[];
  /** Whether a statement reads users or permissions. */
  readsLists(tree: object): boolean;
  /** Returns the lists that a statement reads; rejects with `AccessDenied`. */
  lists(principal: Principal, tree: object, text: string): Promise<Listed>;
  /** Whether a statement creates a view. */
  makesView(tree: object): boolean;
  /**
   * Returns the future owner of the view that a statement creates. Throws `AccessDenied` if
   * `principal` may not act as that owner.
   */
  viewOwner(principal: Principal, tree: object): Owner;
  /** Runs a catalog change, and updates the permissions accordingly. */
  follow<T>(change: CatalogChange, run: () => Promise<T>): Promise<T>;
  /**
   * Checks a statement that failed to bind; the cause of the failure may be confidential. Throws
   * `AccessDenied` if `principal` could not have run the statement.
   */
  authoriseUnbound(principal: Principal, tree: object): void;
  /**
   * Returns the permissions that an import requires. Throws if its table could not have an owner.
   */
  importAccesses(principal: Principal, target: ImportTarget): readonly Access[];
  /** Runs an import that creates tables or columns, and grants those to their owners. */
  creating<T>(
    principal: Principal,
    targets: readonly ImportTarget[],
    run: () => Promise<T>,
  ): Promise<T>;
  /** Called after the execution of any statement other than a query, INSERT, UPDATE or DELETE. */
  ran(principal: Principal, text: string, description: Pick<StatementDescription, 'command'>): void;
}

/**
 * Returns a function that checks a single access, for statements that need the answer during
 * binding.
 */
export function allowing(guard: Guard, principal: Principal): (access: Access) => boolean {
  return (access) => {
    try {
      guard.authorise(principal, [access]);
      return true;
    } catch {
      return false;
    }
  };
}
