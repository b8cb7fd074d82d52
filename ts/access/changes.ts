/**
 * How schema changes affect rights. An object's creator owns it. When an object is renamed or
 * dropped, its grants are moved or removed. An intent is recorded before the change, so that after
 * a crash no grants apply to a later object of the same name.
 */
import { randomBytes } from 'node:crypto';

import { identityKey } from '../auth/index.js';
import type { CatalogChange, ImportTarget, Principal } from '../session/index.js';
import { type AlterAction, parse, scan, type Tree, unquote } from '../sql/index.js';
import { permissionsAt } from './catalogue.js';
import {
  dropTable,
  fold,
  grant,
  type Grants,
  moveColumns,
  renameTable,
  withoutColumns,
} from './model.js';
import { makesView, NAME_AN_OWNER, ownerOf, ownerOfView, viewOwner } from './owners.js';
import { type Column, type CurrentSchema, readSchema } from './schema.js';
import type { AccessContext } from './setting.js';
import { type Draft, keyOf, refused } from './store.js';

type Effect =
  | { readonly effect: 'create'; readonly table: string; readonly owner: string | null }
  | { readonly effect: 'drop'; readonly table: string }
  | { readonly effect: 'rename'; readonly table: string; readonly to: string }
  | {
      readonly effect: 'add column';
      readonly table: string;
      readonly column: string;
      readonly owner: string | null;
    }
  | {
      /** Columns are dropped or renamed, in any order. Column IDs determine the new names. */
      readonly effect: 'move columns';
      readonly table: string;
      /** All column names in the statement. */
      readonly names: readonly string[];
      readonly before: readonly Column[];
    };

const DROPS: ReadonlySet<string> = new Set([
  'DROP TABLE',
  'DROP VIEW',
  'DROP MATERIALIZED VIEW',
  'DROP LIVE VIEW',
]);

export class Changes {
  readonly #context: AccessContext;
  /** Schema changes run one at a time. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(context: AccessContext) {
    this.#context = context;
  }

  /** Completes the grant changes for statements that a previous process left unfinished. */
  async settle(): Promise<void> {
    const { store, database } = this.#context;
    const intents = [...store.intents()];
    if (intents.length === 0) {
      return;
    }
    const now = await readSchema(database);
    await store.change((draft) => {
      for (const [id, bytes] of intents) {
        const effects = JSON.parse(bytes.toString('utf8')) as readonly Effect[];
        apply(
          draft,
          effects.filter((effect) => happened(effect, now)),
          { now, creator: null },
        );
        draft.setIntent(id, null);
      }
    });
  }

  async follow<T>(change: CatalogChange, run: () => Promise<T>): Promise<T> {
    const tree = parse(change.text);
    const effects = effectsOf(change, tree);
    if (effects.length === 0) {
      return await run();
    }
    return await this.#next(change.principal, effects, async () => {
      if (makesView(tree)) {
        // Checked against the current rights, because the view may already exist and belong to
        // another user.
        viewOwner(this.#context, change.principal, tree);
      }
      return await run();
    });
  }

  /**
   * Runs an operation that creates tables or columns without a statement, and grants the owner all
   * permissions on them.
   */
  async create<T>(
    principal: Principal,
    targets: readonly ImportTarget[],
    run: () => Promise<T>,
  ): Promise<T> {
    const effects = targets.flatMap(({ table, creates, adds = [], owner }): Effect[] =>
      creates
        ? [{ effect: 'create', table, owner }]
        : adds.map((column) => ({ effect: 'add column', table, column, owner })),
    );
    return await this.#next(principal, effects, run);
  }

  /** Throws if a new table would have no owner. */
  requireOwner(principal: Principal, { table, creates, owner }: ImportTarget): void {
    if (creates) {
      this.#checkOwners(principal, [{ effect: 'create', table, owner }]);
    }
  }

  #next<T>(principal: Principal, effects: readonly Effect[], run: () => Promise<T>): Promise<T> {
    const queued = this.#last.then(() => this.#run(principal, effects, run));
    this.#last = queued.catch(() => undefined);
    return queued;
  }

  async #run<T>(
    principal: Principal,
    effects: readonly Effect[],
    run: () => Promise<T>,
  ): Promise<T> {
    const { store, database } = this.#context;
    const before = await readSchema(database);
    // With IF EXISTS or IF NOT EXISTS, a statement may have no effect.
    const possible = effects
      .filter((effect) => isPossible(effect, before))
      .map((effect) => withBefore(effect, before));
    this.#checkOwners(principal, possible);
    const id = randomBytes(8).toString('hex');
    const isLasting = possible.some(({ effect }) => effect !== 'create' && effect !== 'add column');
    if (isLasting) {
      await store.change((draft) => {
        draft.setIntent(id, Buffer.from(JSON.stringify(possible)));
      });
    }
    const release = store.withhold((grants) => withoutMoving(grants, possible));
    try {
      return await run();
    } finally {
      const now = await readSchema(database);
      const done = possible.filter((effect) => happened(effect, now));
      await store.change((draft) => {
        apply(draft, done, { now, creator: principal });
        if (isLasting) {
          draft.setIntent(id, null);
        }
      });
      release();
    }
  }

  #checkOwners({ identity }: Principal, effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.effect !== 'create' && effect.effect !== 'add column') {
        continue;
      }
      if (effect.owner !== null && this.#context.store.find(effect.owner) === undefined) {
        throw refused(`user, group or service account '${effect.owner}' does not exist`);
      }
      if (effect.owner === null && identity?.kind === 'external') {
        throw refused(NAME_AN_OWNER);
      }
    }
  }
}

/** Returns whether the effect is possible; called before the statement runs. */
function isPossible(effect: Effect, before: CurrentSchema): boolean {
  switch (effect.effect) {
    case 'create':
      return !before.has(effect.table);
    case 'add column':
      return before.has(effect.table) && !hasColumn(before, effect.table, effect.column);
    case 'drop':
    case 'rename':
    case 'move columns':
      return before.has(effect.table);
  }
}

function withBefore(effect: Effect, before: CurrentSchema): Effect {
  return effect.effect === 'move columns'
    ? { ...effect, before: before.identified(effect.table) }
    : effect;
}

/** Returns whether the effect took place. */
function happened(effect: Effect, now: CurrentSchema): boolean {
  switch (effect.effect) {
    case 'create':
      return now.has(effect.table);
    case 'drop':
      return !now.has(effect.table);
    case 'rename':
      return !now.has(effect.table) && now.has(effect.to);
    case 'add column':
      return hasColumn(now, effect.table, effect.column);
    case 'move columns':
      return now.has(effect.table);
  }
}

/** Maps previous column names to current ones; `null` for dropped columns. */
function moves(before: readonly Column[], now: readonly Column[]): Map<string, string | null> {
  const names = new Map(now.map(({ id, name }) => [id, name]));
  const moved = before.map(({ id, name }) => [name, names.get(id) ?? null] as const);
  return new Map(moved.filter(([from, to]) => from !== to));
}

/**
 * Removes the grants on names that are about to move to other objects. Until the change is
 * complete, the object that each name refers to is unknown.
 */
function withoutMoving(grants: Grants, effects: readonly Effect[]): Grants {
  const remaining = new Map(
    effects.reduce((grants, effect) => {
      switch (effect.effect) {
        case 'rename':
          return dropTable(dropTable(grants, effect.table), effect.to);
        case 'move columns':
          return withoutColumns(grants, effect.table, effect.names);
        default:
          return grants;
      }
    }, grants),
  );
  // This user keeps the permissions, so that the change itself can continue. No other change starts
  // until this one ends.
  for (const permission of ['RENAME TABLE', 'RENAME COLUMN', 'DROP COLUMN']) {
    const current = grants.get(permission);
    if (current !== undefined) {
      remaining.set(permission, current);
    }
  }
  return remaining;
}

function hasColumn(schema: CurrentSchema, table: string, column: string): boolean {
  return schema.columns(table).some((name) => fold(name) === fold(column));
}

/** The schema after a change, and the user who caused it, if known. */
interface Outcome {
  readonly now: CurrentSchema;
  readonly creator: Principal | null;
}

function apply(draft: Draft, effects: readonly Effect[], { now, creator }: Outcome): void {
  for (const effect of effects) {
    switch (effect.effect) {
      case 'create':
        own(draft, effect.owner, creator, (grants) => ownerGrants(grants, effect.table, null));
        break;
      case 'add column':
        own(draft, effect.owner, creator, (grants) =>
          ownerGrants(grants, effect.table, effect.column),
        );
        break;
      case 'drop':
        draft.mapGrants((grants) => dropTable(grants, effect.table));
        break;
      case 'rename':
        draft.mapGrants((grants) => renameTable(grants, effect.table, effect.to));
        break;
      case 'move columns': {
        const moved = moves(effect.before, now.identified(effect.table));
        draft.mapGrants((grants) => moveColumns(grants, effect.table, moved));
        break;
      }
    }
  }
}

function own(
  draft: Draft,
  owner: string | null,
  creator: Principal | null,
  change: (grants: Grants) => Grants,
): void {
  const key = creator?.identity === undefined ? null : identityKey(creator.identity);
  const self = creator === null ? undefined : draft.find(creator.name);
  const isSame = self !== undefined && keyOf(self) === key;
  const principal = owner === null ? (isSame ? self : undefined) : draft.find(owner);
  if (principal !== undefined) {
    draft.put({ ...principal, grants: change(principal.grants) });
  }
}

/** Grants every permission of the object's level, with the grant option. */
function ownerGrants(grants: Grants, table: string, column: string | null): Grants {
  const target = column === null ? { table } : { table, columns: [column] };
  const names = permissionsAt(column === null ? 'table' : 'column');
  return names.reduce((grants, name) => grant(grants, name, target, true), grants);
}

// ---- from statements ----

/** Returns the statement's effects on names, to the extent known before it runs. */
function effectsOf({ text, description }: CatalogChange, tree: Tree): readonly Effect[] {
  const dropped = description.accesses.filter(({ permission }) => DROPS.has(permission));
  if (dropped.length > 0) {
    return dropped.map(({ table }) => ({ effect: 'drop', table }));
  }
  const { nodes, root } = tree;
  const node = nodes[root];
  switch (node?.kind) {
    case 'CreateTable':
      return [{ effect: 'create', table: node.name.text, owner: ownerOf(node.options) }];
    case 'CreateView':
      return [{ effect: 'create', table: node.name.text, owner: ownerOfView(node) }];
    case 'Rename':
      // With IF EXISTS, the table may not exist.
      return description.accesses.length === 0
        ? []
        : [{ effect: 'rename', table: node.table.text, to: node.to.text }];
    case 'AlterTable': {
      const table = node.table.text;
      const owner = ownerOfColumns(text);
      const added = node.actions.flatMap((action): readonly Effect[] =>
        action.action === 'AddColumn'
          ? [{ effect: 'add column', table, column: action.column.name.text, owner }]
          : [],
      );
      const names = node.actions.flatMap(movedNames);
      return names.length === 0
        ? added
        : [...added, { effect: 'move columns', table, names, before: [] }];
    }
    default:
      return [];
  }
}

function movedNames(action: AlterAction): readonly string[] {
  switch (action.action) {
    case 'DropColumn':
      return [action.column.text];
    case 'RenameColumn':
      return [action.column.text, action.to.text];
    default:
      return [];
  }
}

/**
 * Returns the owner in OWNED BY at the end of ADD COLUMN. The engine ignores this clause, and the
 * syntax tree does not contain it.
 */
function ownerOfColumns(text: string): string | null {
  const { values, starts, ends } = scan(text);
  const at = values.lastIndexOf('OWNED');
  if (at < 0 || values[at + 1] !== 'BY') {
    return null;
  }
  const written = text.slice(starts[at + 2], ends[at + 2]);
  return /^["'`$]/.test(written) ? unquote(written) : written;
}
