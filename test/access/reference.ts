/**
 * The reference model of grants. It stores one fact per column of each table, and one for future
 * objects. The table name `*` stands for every future table, the column name `*` for every future
 * column.
 */
export interface World {
  /** Existing tables and their columns. */
  readonly there: ReadonlyMap<string, ReadonlySet<string>>;
  /** All table and column names that a sequence may use. */
  readonly tables: readonly string[];
  readonly columns: readonly string[];
}

type GrantTarget = { readonly table: string; readonly columns?: readonly string[] } | 'database';

const ANY = '*';

export class ReferenceGrants {
  readonly #has = new Set<string>();
  readonly #option = new Set<string>();

  grant(world: World, target: GrantTarget, option: boolean): void {
    const cover = coverOf(target);
    if (cover !== null && this.#option.has(cover)) {
      return;
    }
    for (const fact of facts(world, target)) {
      this.#has.add(fact);
      if (option) {
        this.#option.add(fact);
      } else {
        this.#option.delete(fact);
      }
    }
  }

  revoke(world: World, target: GrantTarget): void {
    if (target !== 'database' && this.#has.has(fact(ANY, ANY))) {
      this.#forget([fact(ANY, ANY)]);
      for (const table of world.tables.filter((name) => !world.there.has(name))) {
        this.#forget(facts(world, { table }));
      }
    }
    if (target !== 'database' && target.columns !== undefined) {
      const { table } = target;
      if (this.#has.has(fact(table, ANY))) {
        const there = world.there.get(table) ?? new Set();
        const missing = world.columns.filter((name) => !there.has(name));
        this.#forget([ANY, ...missing].map((column) => fact(table, column)));
      }
    }
    this.#forget(facts(world, target));
  }

  dropTable(world: World, table: string): void {
    for (const set of [this.#has, this.#option]) {
      if (!set.has(fact(ANY, ANY))) {
        facts(world, { table }).forEach((one) => set.delete(one));
      }
    }
  }

  dropColumn(table: string, column: string): void {
    for (const set of [this.#has, this.#option]) {
      if (!set.has(fact(table, ANY))) {
        set.delete(fact(table, column));
      }
    }
  }

  renameTable(world: World, from: string, to: string): void {
    for (const set of [this.#has, this.#option]) {
      const moved = world.columns.concat(ANY).filter((column) => set.has(fact(from, column)));
      if (!set.has(fact(ANY, ANY))) {
        facts(world, { table: from }).forEach((one) => set.delete(one));
        facts(world, { table: to }).forEach((one) => set.delete(one));
        moved.forEach((column) => set.add(fact(to, column)));
      }
    }
  }

  renameColumn(table: string, from: string, to: string): void {
    for (const set of [this.#has, this.#option]) {
      if (!set.has(fact(table, ANY))) {
        const moved = set.delete(fact(table, from));
        set.delete(fact(table, to));
        if (moved) {
          set.add(fact(table, to));
        }
      }
    }
  }

  /** Whether a permission is held on the database, a whole table, or one column. */
  holds(table: string | null, column: string | null, required: 'yes' | 'option'): boolean {
    const set = required === 'yes' ? this.#has : this.#option;
    return set.has(fact(table ?? ANY, column ?? ANY));
  }

  #forget(list: readonly string[]): void {
    for (const one of list) {
      this.#has.delete(one);
      this.#option.delete(one);
    }
  }
}

function fact(table: string, column: string): string {
  return `${table}.${column}`;
}

function facts({ tables, columns }: World, target: GrantTarget): string[] {
  if (target === 'database') {
    const all = [...columns, ANY];
    return [...tables, ANY].flatMap((table) => all.map((column) => fact(table, column)));
  }
  return (target.columns ?? [...columns, ANY]).map((column) => fact(target.table, column));
}

/** Returns the fact one level above, which covers the target. */
function coverOf(target: GrantTarget): string | null {
  if (target === 'database') {
    return null;
  }
  return target.columns === undefined ? fact(ANY, ANY) : fact(target.table, ANY);
}
