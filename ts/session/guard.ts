/** Who may do what, as sessions ask it; `ts/access` answers. */
import { type Identity, identityKey } from '../auth/index.js';
import type {
  Access,
  ListedRows,
  Owner,
  Visibility,
  StatementDescription,
} from '../engine/types.js';

/** Whose session it is. */
export interface Principal {
  readonly name: string;
  readonly readOnly: boolean;
  /** What the login proved; without it nothing is granted where rights are asked for. */
  readonly identity?: Identity;
}

/** Unique for an identity, whatever others are called. */
export function principalKey({ name, identity }: Principal): string {
  return identity === undefined ? `name ${name}` : identityKey(identity);
}

/** A statement about to run that changes the catalog. */
export interface CatalogChange {
  readonly principal: Principal;
  readonly text: string;
  readonly description: StatementDescription;
}

/** What the engine does not know of users and rights. */
export interface Listed {
  /** By their names. */
  readonly lists: Readonly<Record<string, ListedRows>>;
  /** What runs in place of the statement; null: itself. */
  readonly tree: object | null;
}

/** What rows from outside go into. */
export interface ImportTarget {
  readonly table: string;
  readonly creates: boolean;
  readonly overwrites: boolean;
  /** Columns that the table gets with the rows. */
  readonly adds?: readonly string[];
  /** The owner of a new table; null: the importing user. */
  readonly owner: string | null;
}

export interface Guard {
  /** Calls `changed` whenever someone may do, or see, something else, or may not be here. */
  watch(changed: () => void): void;
  /** Throws `AccessDenied` when `principal` lacks a right; asked before every execution. */
  authorise(principal: Principal, accesses: readonly Access[]): void;
  /** What `principal` may see; undefined: everything. */
  visibility(principal: Principal): Visibility | undefined;
  /** Tells whether what is seen is still the same; 0 for those who see everything. */
  visibilityVersion(principal: Principal): number;
  /** What a statement takes for what it does with the server itself. */
  serverAccesses(tree: object): readonly Access[];
  /** Whether a statement asks for users and rights. */
  asksLists(tree: object): boolean;
  /** What a statement asks for; rejects with `AccessDenied`. */
  lists(principal: Principal, tree: object, text: string): Promise<Listed>;
  /** Whether a statement makes a view. */
  makesView(tree: object): boolean;
  /** Who will own it; throws `AccessDenied` where `principal` cannot act as that owner. */
  viewOwner(principal: Principal, tree: object): Owner;
  /** Runs a change of the catalog, and lets the rights follow it. */
  follow<T>(change: CatalogChange, run: () => Promise<T>): Promise<T>;
  /**
   * Throws `AccessDenied` where `principal` could not have run a statement that cannot be bound:
   * why it cannot may be a secret.
   */
  authoriseUnbound(principal: Principal, tree: object): void;
  /** What the rows of an import take; throws where its table could not have an owner. */
  importAccesses(principal: Principal, target: ImportTarget): readonly Access[];
  /** Runs what brings rows with new tables or columns, and gives those to their owners. */
  creating<T>(
    principal: Principal,
    targets: readonly ImportTarget[],
    run: () => Promise<T>,
  ): Promise<T>;
  /** Receives what ran and is neither a query nor a change of rows. */
  ran(principal: Principal, text: string, description: Pick<StatementDescription, 'command'>): void;
}

/** Whether something is granted, as a statement asks it that reads while it is bound. */
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
