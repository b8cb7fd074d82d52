/**
 * Handles rows that arrive without a statement, in every protocol. Checks whether the user may
 * write them, assigns an owner to any table that they create, and records them in the audit log.
 */
import type { Access } from '../engine/types.js';
import { DatabaseError } from '../engine/error.js';
import type { Guard, ImportTarget, Principal } from './guard.js';
import type { DurationObserver } from './duration-observer.js';

/** A table that receives rows. */
export type WriteTarget = Omit<ImportTarget, 'owner'>;

/** The user who writes the rows. */
interface Writer {
  readonly principal: Principal;
  /** Owner of a new table; `null` for the writing user. */
  readonly owner?: string | null;
  /** Records each commit's duration. */
  readonly commitSeconds?: DurationObserver;
}

export class WriteAuthorizer {
  readonly #guard: Guard | undefined;
  readonly #principal: Principal;
  readonly #owner: string | null;
  readonly #commitSeconds: DurationObserver | undefined;

  /** Without a guard every user may do everything. */
  constructor(guard: Guard | undefined, { principal, owner = null, commitSeconds }: Writer) {
    this.#guard = guard;
    this.#principal = principal;
    this.#owner = owner;
    this.#commitSeconds = commitSeconds;
  }

  /** The permissions that the rows require. */
  accesses(target: WriteTarget): readonly Access[] {
    return this.#guard?.importAccesses(this.#principal, this.#withOwner(target)) ?? [];
  }

  /** Throws if the rows may not be written; called before anything about the tables is revealed. */
  authorise(...targets: readonly WriteTarget[]): void {
    if (this.#principal.readOnly) {
      throw new DatabaseError({ code: 'ReadOnly', message: 'this endpoint is read-only' });
    }
    const accesses = targets.flatMap((target) => this.accesses(target));
    this.#guard?.authorise(this.#principal, accesses);
  }

  /** Runs a commit. A table that it creates has an owner from the start. */
  async commit<T>(target: WriteTarget, run: () => Promise<T>): Promise<T> {
    return await this.commitAll([target], run);
  }

  /** Like `commit`, for rows in several tables. */
  async commitAll<T>(targets: readonly WriteTarget[], run: () => Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await this.#guarded(targets, run);
    } finally {
      this.#commitSeconds?.observe((performance.now() - began) / 1000);
    }
  }

  async #guarded<T>(targets: readonly WriteTarget[], run: () => Promise<T>): Promise<T> {
    const changing = targets.filter(({ creates, adds }) => creates || (adds?.length ?? 0) > 0);
    return this.#guard !== undefined && changing.length > 0
      ? await this.#guard.creating(
          this.#principal,
          changing.map((target) => this.#withOwner(target)),
          run,
        )
      : await run();
  }

  /** Records rows that arrived without a statement in the audit log. */
  committed(text: string, command: string): void {
    this.#guard?.ran(this.#principal, text, { command });
  }

  #withOwner(target: WriteTarget): ImportTarget {
    return { ...target, owner: this.#owner };
  }
}
