/** Who may do what, as sessions ask it; `ts/access` answers. */
import type { Identity } from '../auth/index.js';
import type { Access, ListedRows, Sight, StatementDescription } from '../engine/types.js';

/** Whose session it is. */
export interface Principal {
  readonly name: string;
  readonly readOnly: boolean;
  /** What the login proved; without it nothing is granted where rights are asked for. */
  readonly identity?: Identity;
}

/** A statement about to run that changes the catalog. */
export interface CatalogChange {
  readonly principal: Principal;
  readonly text: string;
  readonly description: StatementDescription;
}

export interface Guard {
  /** Throws `AccessDenied` when `principal` lacks a right; asked before every execution. */
  authorise(principal: Principal, accesses: readonly Access[]): void;
  /** What `principal` may see; undefined: everything. */
  sight(principal: Principal): Sight | undefined;
  /** Tells whether what is seen is still the same; 0 for those who see everything. */
  sightVersion(principal: Principal): number;
  /** Whether a statement asks for lists of users and rights. */
  asksLists(tree: object): boolean;
  /** The lists a statement asks for; rejects with `AccessDenied`. */
  lists(principal: Principal, tree: object): Promise<Readonly<Record<string, ListedRows>>>;
  /** Runs a change of the catalog, and lets the rights follow it. */
  follow<T>(change: CatalogChange, run: () => Promise<T>): Promise<T>;
  /** Told of a table that `principal` has created without a statement. */
  own(principal: Principal, table: string): Promise<void>;
  /** Told what ran and is neither a query nor a change of rows. */
  ran(principal: Principal, text: string, description: Pick<StatementDescription, 'command'>): void;
}
