/**
 * Random sequences of grants, revokes, schema changes and checks, run on both the real and the
 * reference model. Compares what a group member may do and may grant.
 */
import {
  dropTable,
  grant,
  type Grants,
  grantRows,
  grantsOf,
  moveColumns,
  NO_GRANTS,
  refusal,
  renameTable,
  revoke,
  type Schema,
} from '../../ts/access/model.js';
import { ReferenceGrants, type World } from './reference.js';

const TABLES = ['t', 'u', 'v'];
const COLUMNS = ['ts', 'a', 'b', 'c'];
/** One permission that implicitly covers the designated timestamp, and one that does not. */
const PERMISSIONS = ['SELECT', 'DROP COLUMN'];
const STEPS = 14;

/** The mulberry32 generator, which returns the same numbers on all machines. */
function random(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

interface Holder {
  grants: Grants;
  readonly references: ReadonlyMap<string, ReferenceGrants>;
}

function holder(): Holder {
  return {
    grants: NO_GRANTS,
    references: new Map(PERMISSIONS.map((name) => [name, new ReferenceGrants()])),
  };
}

class Sequence {
  readonly #pick: (below: number) => number;
  readonly #there = new Map<string, Set<string>>();
  readonly #world: World = { there: this.#there, tables: TABLES, columns: COLUMNS };
  readonly #schema: Schema = {
    tables: () => [...this.#there.keys()],
    columns: (table) => [...(this.#there.get(table) ?? [])],
  };
  readonly #member = holder();
  readonly #group = holder();
  readonly #steps: string[] = [];

  constructor(seed: number) {
    this.#pick = random(seed);
    this.#there.set('t', new Set(['ts', 'a', 'b']));
    this.#there.set('u', new Set(['ts', 'a']));
  }

  /** Returns the difference and the steps that led to it; null if the models agree. */
  run(): string | null {
    for (let step = 0; step < STEPS; step += 1) {
      this.#step();
      const difference = this.#compare();
      if (difference !== null) {
        return [...this.#steps, difference].join('\n  ');
      }
    }
    return null;
  }

  #step(): void {
    const kind = this.#pick(8);
    if (kind < 6) {
      this.#change(kind < 3);
    } else {
      this.#changeTables();
    }
  }

  #change(grants: boolean): void {
    const who = this.#pick(2) === 0 ? this.#member : this.#group;
    const permission = this.#choose(PERMISSIONS);
    const table = this.#choose(TABLES);
    const level = this.#pick(5);
    const columns = COLUMNS.filter(() => this.#pick(2) === 0);
    const target =
      level === 0 ? 'database' : level < 3 || columns.length === 0 ? { table } : { table, columns };
    const option = this.#pick(2) === 0;
    const reference = who.references.get(permission);
    if (grants) {
      who.grants = grant(who.grants, permission, target, option);
      reference?.grant(this.#world, target, option);
    } else {
      who.grants = revoke(who.grants, permission, target, this.#schema);
      reference?.revoke(this.#world, target);
    }
    const name = who === this.#member ? 'member' : 'group';
    this.#steps.push(
      `${grants ? `grant ${option}` : 'revoke'} ${permission} ${JSON.stringify(target)} ${name}`,
    );
  }

  #changeTables(): void {
    const table = this.#choose(TABLES);
    const columns = this.#there.get(table);
    const column = this.#choose(COLUMNS);
    if (columns === undefined) {
      this.#create(table);
    } else if (this.#pick(3) === 0) {
      this.#there.delete(table);
      this.#both(
        (grants) => dropTable(grants, table),
        (one) => {
          one.dropTable(this.#world, table);
        },
      );
      this.#steps.push(`drop ${table}`);
    } else if (!columns.has(column)) {
      this.#addColumn(table, columns, column);
    } else if (column !== 'ts') {
      columns.delete(column);
      this.#both(
        (grants) => moveColumns(grants, table, new Map([[column, null]])),
        (one) => {
          one.dropColumn(table, column);
        },
      );
      this.#steps.push(`drop ${table}.${column}`);
    }
  }

  /** Creates a table, or renames another table to this name. */
  #create(table: string): void {
    const from = this.#choose(TABLES);
    const columns = this.#there.get(from);
    if (columns === undefined) {
      this.#there.set(table, new Set(['ts', 'a']));
      this.#steps.push(`create ${table}`);
      return;
    }
    this.#there.delete(from);
    this.#there.set(table, columns);
    this.#both(
      (grants) => renameTable(grants, from, table),
      (one) => {
        one.renameTable(this.#world, from, table);
      },
    );
    this.#steps.push(`rename ${from} ${table}`);
  }

  /** Adds a column, or renames another column to this name. */
  #addColumn(table: string, columns: Set<string>, column: string): void {
    const from = this.#choose(COLUMNS);
    columns.add(column);
    if (from === 'ts' || !columns.delete(from) || from === column) {
      columns.add(column);
      this.#steps.push(`add ${table}.${column}`);
      return;
    }
    this.#both(
      (grants) => moveColumns(grants, table, new Map([[from, column]])),
      (one) => {
        one.renameColumn(table, from, column);
      },
    );
    this.#steps.push(`rename ${table}.${from} ${column}`);
  }

  #both(model: (grants: Grants) => Grants, reference: (one: ReferenceGrants) => void): void {
    for (const who of [this.#member, this.#group]) {
      who.grants = model(who.grants);
      who.references.forEach(reference);
    }
  }

  #compare(): string | null {
    for (const who of [this.#member, this.#group]) {
      // A round trip through the stored form must not change the grants.
      who.grants = grantsOf(grantRows(who.grants));
    }
    const sets = [this.#member.grants, this.#group.grants];
    for (const permission of PERMISSIONS) {
      for (const required of ['yes', 'option'] as const) {
        const holds = (table: string | null, column: string | null): boolean =>
          [this.#member, this.#group].some(
            ({ references }) => references.get(permission)?.holds(table, column, required) === true,
          );
        const difference = this.#send(sets, permission, required, holds);
        if (difference !== null) {
          return `${permission} ${required}: ${difference}`;
        }
      }
    }
    return null;
  }

  #send(
    sets: readonly Grants[],
    permission: string,
    required: 'yes' | 'option',
    holds: (table: string | null, column: string | null) => boolean,
  ): string | null {
    const requested = (table: string, columns: readonly string[]): boolean =>
      refusal(sets, { permission, table, columns, timestamp: 'ts' }, required) === null;
    if (requested('', []) !== holds(null, null)) {
      return 'the database';
    }
    for (const table of TABLES) {
      const some = COLUMNS.some((column) => holds(table, column));
      const reads = permission === 'SELECT' && required === 'yes';
      if (requested(table, []) !== (holds(table, null) || (reads && some))) {
        return `table ${table}`;
      }
      for (const column of COLUMNS) {
        const implied = reads && column === 'ts' && some;
        if (requested(table, [column]) !== (holds(table, column) || implied)) {
          return `column ${table}.${column}`;
        }
      }
    }
    return null;
  }

  #choose(list: readonly string[]): string {
    return list[this.#pick(list.length)] ?? '';
  }
}

/** Runs `count` sequences that start from one seed, and returns all differences. */
export function differences(count: number, seed: number): readonly string[] {
  const found: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const difference = new Sequence(seed * 1_000_003 + index).run();
    if (difference !== null) {
      found.push(`sequence ${index}:\n  ${difference}`);
    }
  }
  return found;
}
