/**
 * What every protocol does around rows that come from outside a statement: whether they may be
 * written at all and by this user, who owns a table that they create, what the audit log
 * records.
 */
import type { Access } from '../engine/types.js';
import { DatabaseError } from '../engine/error.js';
import type { Guard, ImportTarget, Principal } from './guard.js';
import type { Seconds } from './seconds.js';

/** A table that rows go into. */
export type WriteTarget = Omit<ImportTarget, 'owner'>;

/** Who writes. */
interface Writer {
  readonly principal: Principal;
  /** Whom a new table is for; `null`: the writing user. */
  readonly owner?: string | null;
  /** Receives how long each commit took. */
  readonly commitSeconds?: Seconds;
}

export class WriteDoor {
  readonly #guard: Guard | undefined;
  readonly #principal: Principal;
  readonly #owner: string | null;
  readonly #commitSeconds: Seconds | undefined;

  /** Without a guard every user may do everything. */
  constructor(guard: Guard | undefined, { principal, owner = null, commitSeconds }: Writer) {
    this.#guard = guard;
    this.#principal = principal;
    this.#owner = owner;
    this.#commitSeconds = commitSeconds;
  }

  /** What the rows take. */
  accesses(target: WriteTarget): readonly Access[] {
    return this.#guard?.importAccesses(this.#principal, this.#whole(target)) ?? [];
  }

  /** Throws where rows may not go into the tables; asked before anything of them is revealed. */
  authorise(...targets: readonly WriteTarget[]): void {
    if (this.#principal.readOnly) {
      throw new DatabaseError({ code: 'ReadOnly', message: 'this endpoint is read-only' });
    }
    const accesses = targets.flatMap((target) => this.accesses(target));
    this.#guard?.authorise(this.#principal, accesses);
  }

  /** Runs what commits; a table that it makes has an owner at once. */
  async commit<T>(target: WriteTarget, run: () => Promise<T>): Promise<T> {
    return await this.commitAll([target], run);
  }

  /** The same for rows of several tables. */
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
          changing.map((target) => this.#whole(target)),
          run,
        )
      : await run();
  }

  /** Tells the audit log of rows that came without a statement. */
  committed(text: string, command: string): void {
    this.#guard?.ran(this.#principal, text, { command });
  }

  #whole(target: WriteTarget): ImportTarget {
    return { ...target, owner: this.#owner };
  }
}
