/**
 * Lists of users and rights: rows of SHOW USERS and similar statements, of `all_permissions()` and
 * of SHOW CREATE DATABASE, and the results of has_table_privilege().
 */
import type { Listed, ListedRows, Principal } from '../session/index.js';
import type { AccessList, Tree } from '../sql/index.js';
import { denied } from './authorise.js';
import { allPermissions, ASSUME, DATABASE_ADMIN } from './catalogue.js';
import { dumped, dumpOf } from './dump.js';
import { fold, type GrantRow, grantRows, type Grants, NO_GRANTS } from './model.js';
import type { StoredPrincipal } from './principals.js';
import { isSelf } from './owners.js';
import { answeredPrivileges, isPrivilegeCall } from './privileges.js';
import { parseWithReplacements, type Replacement } from './replacements.js';
import { type CurrentSchema, readSchema } from './schema.js';
import { type AccessContext, hasPermission, rightsOf } from './setting.js';
import { refused, type Rights } from './store.js';

type Rows = ListedRows['rows'];
type Columns = ListedRows['columns'];

/** One list that a statement requests. */
interface ListRequest {
  readonly list: AccessList;
  readonly of: string | null;
  readonly span: { readonly start: number; readonly end: number } | undefined;
}

const CATALOGUE = 'all_permissions';

/** Returns whether a syntax tree refers to any of the lists. */
export function readsLists(tree: object): boolean {
  return nodesOf(tree).some(
    (node) =>
      (node.kind === 'Show' && node.subject.subject === 'Access') ||
      isCatalogue(node) ||
      dumpOf(node) !== null ||
      isPrivilegeCall(node),
  );
}

type Node = Tree['nodes'][number];

function nodesOf(tree: Partial<Tree>): readonly Node[] {
  return tree.nodes ?? [];
}

function isCatalogue(node: Node): boolean {
  return node.kind === 'Call' && node.name.text.toLowerCase() === CATALOGUE;
}

export class Lists {
  readonly #context: AccessContext;

  constructor(context: AccessContext) {
    this.#context = context;
  }

  /**
   * Returns all lists that a statement requests. Throws `AccessDenied` for a list that the user may
   * not read.
   */
  async of(principal: Principal, tree: Tree, text: string): Promise<Listed> {
    const lists: Record<string, ListedRows> = {};
    const dumps: Replacement[] = [];
    for (const [id, node] of tree.nodes.entries()) {
      const dump = dumpOf(node);
      const span = tree.spans[id];
      if (isCatalogue(node)) {
        lists[CATALOGUE] = catalogue();
      } else if (node.kind === 'Show' && node.subject.subject === 'Access') {
        const { list, of } = node.subject;
        const request = { list, of: of?.text ?? null, span: of?.span };
        lists[`${list}:${of?.text ?? ''}`] = await this.#rows(principal, request);
      } else if (dump !== null && span !== undefined) {
        const rows = dumped(this.#context, rightsOf(this.#context.store, principal), dump);
        // This is the only list that a query can read like a table.
        lists[CATALOGUE] = { columns: strings('ddl'), rows: rows.map((row) => [row]) };
        dumps.push({ ...span, text: withList(text.slice(span.start, span.end)) });
      }
    }
    const answers = await answeredPrivileges(this.#context, principal, tree, text);
    const changes = [...dumps, ...answers];
    return { lists, tree: changes.length === 0 ? null : parseWithReplacements(text, changes) };
  }

  async #rows(principal: Principal, request: ListRequest): Promise<ListedRows> {
    const rights = rightsOf(this.#context.store, principal);
    switch (request.list) {
      case 'Users':
        return names(listed(rights, [this.#context.setting.adminName, ...this.#named('user')]));
      case 'Groups':
        return this.#groups(principal, rights, request);
      case 'ServiceAccounts':
        return this.#accounts(principal, rights, request);
      case 'User':
      case 'ServiceAccount':
        return this.#logins(principal, rights, request);
      case 'Permissions':
        return await this.#permissions(principal, rights, request);
    }
  }

  #named(kind: StoredPrincipal['kind']): readonly string[] {
    const all = [...this.#context.store.list()].filter((principal) => principal.kind === kind);
    return all.map(({ name }) => name).sort();
  }

  #groups(principal: Principal, rights: Rights, { of, span }: ListRequest): ListedRows {
    const { store } = this.#context;
    const all = of === null ? listed(rights, this.#named('group')) : null;
    if (all === null) {
      requireDetails(principal, rights, of, 'LIST USERS');
    }
    const shown = all ?? [...(this.#find(of ?? '', span)?.groups ?? [])].sort();
    const rows = shown.map((name) => [name, (store.find(name)?.aliases ?? []).join(', ')]);
    return { columns: strings('name', 'external_aliases'), rows };
  }

  #accounts(principal: Principal, rights: Rights, { of, span }: ListRequest): ListedRows {
    if (of === null) {
      return names(listed(rights, this.#named('service account')));
    }
    requireDetails(principal, rights, of, 'LIST USERS');
    const listedPrincipal = this.#find(of, span);
    const groups =
      listedPrincipal?.groups.flatMap((name) => this.#context.store.find(name) ?? []) ?? [];
    const accounts = new Map<string, boolean>();
    for (const source of listedPrincipal === null ? [] : [listedPrincipal, ...groups]) {
      source.accounts.forEach((option, name) => {
        accounts.set(name, option || accounts.get(name) === true);
      });
    }
    const rows = [...accounts].sort().map(([name, option]) => [name, option]);
    return { columns: [...strings('name'), ['grant_option', 'BOOLEAN']], rows };
  }

  /** Returns a principal's login methods. */
  #logins(principal: Principal, rights: Rights, { of, span }: ListRequest): ListedRows {
    requireDetails(principal, rights, of, 'USER DETAILS');
    const isExternal = of === null && principal.identity?.kind === 'external';
    const stored = isExternal ? undefined : this.#find(of ?? principal.name, span);
    const has = stored === null ? [true, false, false] : loginMethods(stored);
    const rows = ['Password', 'JWK Token', 'REST Token'].map((type, at) => [
      type,
      has[at] ?? false,
    ]);
    return { columns: [...strings('auth_type'), ['enabled', 'BOOLEAN']], rows };
  }

  async #permissions(
    principal: Principal,
    rights: Rights,
    { of, span }: ListRequest,
  ): Promise<ListedRows> {
    const columns: Columns = [
      ...strings('permission', 'table_name', 'column_name'),
      ['grant_option', 'BOOLEAN'],
      ...strings('origin', 'granted_to'),
    ];
    requireDetails(principal, rights, of, 'USER DETAILS');
    if (of === null && principal.identity?.kind === 'external') {
      const granted = rights.sets.map((grants) => ({ name: null, grants, accounts: NO_ACCOUNTS }));
      const assumed = { name: null, grants: NO_GRANTS, accounts: rights.accounts };
      const schema = await readSchema(this.#context.database);
      return { columns, rows: shown([...granted, assumed], schema) };
    }
    const stored = this.#find(of ?? principal.name, span);
    if (stored === null) {
      return { columns, rows: [[DATABASE_ADMIN, null, null, true, 'G', principal.name]] };
    }
    const groups = stored.groups.flatMap((group) => this.#context.store.find(group) ?? []);
    const schema = await readSchema(this.#context.database);
    return { columns, rows: shown([stored, ...groups], schema) };
  }

  /** Returns `null` for the configured administrator. */
  #find(name: string, span: ListRequest['span']): StoredPrincipal | null {
    if (name === this.#context.setting.adminName) {
      return null;
    }
    const principal = this.#context.store.find(name);
    if (principal === undefined) {
      throw refused(`user, group or service account '${name}' does not exist`, span);
    }
    return principal;
  }
}

/**
 * A set of grants. `name` is the principal that is listed as their source, or `null` to list none.
 */
interface GrantSource {
  readonly name: string | null;
  readonly grants: Grants;
  readonly accounts: Rights['accounts'];
}

const NO_ACCOUNTS: Rights['accounts'] = new Map();

/**
 * Returns the rows of SHOW PERMISSIONS: the grants on existing objects without duplicates, followed
 * by implied grants.
 */
function shown(sources: readonly GrantSource[], schema: CurrentSchema): Rows {
  const explicit = merged(sources, ({ grants }) => grantRows(grants).filter(isThere(schema)));
  const accounts = merged(sources, (source) => assumed(source.accounts));
  return [...explicit.map(listing), ...implied(explicit, schema), ...accounts.map(listing)];
}

interface EffectiveGrantRow extends GrantRow {
  readonly grantedTo: readonly string[];
}

/** Merges duplicate rows. The merged row lists all their sources. */
function merged(
  sources: readonly GrantSource[],
  rowsOf: (source: GrantSource) => readonly GrantRow[],
): EffectiveGrantRow[] {
  const rows = new Map<string, EffectiveGrantRow>();
  for (const source of sources) {
    for (const row of rowsOf(source)) {
      const key = JSON.stringify([row.permission, row.table?.toLowerCase(), row.column]);
      const known = rows.get(key);
      const option = row.option || known?.option === true;
      const grantedTo = [
        ...(known?.grantedTo ?? []),
        ...(source.name === null ? [] : [source.name]),
      ];
      rows.set(key, { ...row, option, grantedTo });
    }
  }
  return [...rows.values()];
}

function listing({
  permission,
  table,
  column,
  option,
  grantedTo,
}: EffectiveGrantRow): Rows[number] {
  const by = grantedTo.length === 0 ? null : grantedTo.join(', ');
  return [permission, table, column, option, 'G', by];
}

/** Returns a grant row for each service account that may be assumed. */
function assumed(accounts: Rights['accounts']): GrantRow[] {
  return [...accounts].map(([name, option]) => ({
    permission: `${ASSUME} ${name}`,
    table: null,
    column: null,
    option,
  }));
}

function isThere(schema: CurrentSchema): (row: GrantRow) => boolean {
  return ({ table, column }) =>
    table === null ||
    (schema.has(table) &&
      (column === null || schema.columns(table).some((name) => fold(name) === fold(column))));
}

/** Returns the designated timestamps that users may read because of grants on other columns. */
function implied(rows: readonly GrantRow[], schema: CurrentSchema): Rows {
  const added = new Map<string, (string | boolean | null)[]>();
  for (const { permission, table, column } of rows) {
    const timestamp = table === null ? null : schema.timestamp(table);
    const carries = permission === 'SELECT' || permission === 'UPDATE';
    if (table === null || column === null || timestamp === null || !carries) {
      continue;
    }
    const isExplicit = rows.some(
      (row) =>
        row.permission === permission &&
        fold(row.table ?? '') === fold(table) &&
        (row.column === null || fold(row.column) === fold(timestamp)),
    );
    if (!isExplicit) {
      added.set(`${permission} ${fold(table)}`, [permission, table, timestamp, false, 'I', null]);
    }
  }
  return [...added.values()];
}

/** Returns a principal's login methods; a principal that is not stored here has none. */
function loginMethods(principal: StoredPrincipal | undefined): readonly boolean[] {
  if (principal === undefined) {
    return [false, false, false];
  }
  const { enabled, verifier, publicKey, tokens } = principal;
  const isAlive = tokens.some(({ expires }) => expires > Date.now());
  return [verifier !== null, publicKey !== null, isAlive].map((has) => has && enabled);
}

/** Appends the list's rows to a SHOW whose only column is `ddl`. */
function withList(shown: string): string {
  return `SELECT ddl FROM (${shown}) UNION ALL SELECT ddl FROM ${CATALOGUE}()`;
}

function catalogue(): ListedRows {
  return { columns: strings('permission', 'levels'), rows: allPermissions() };
}

function names(rows: readonly string[]): ListedRows {
  return { columns: strings('name'), rows: rows.map((name) => [name]) };
}

function strings(...all: readonly string[]): Columns {
  return all.map((name) => [name, 'STRING'] as const);
}

function listed(rights: Rights, rows: readonly string[]): readonly string[] {
  if (!hasPermission(rights, 'LIST USERS')) {
    throw denied('LIST USERS');
  }
  return rows;
}

/** Users may always read their own details. */
function requireDetails(
  principal: Principal,
  rights: Rights,
  of: string | null,
  permission: string,
): void {
  if (of !== null && !isSelf(principal, of) && !hasPermission(rights, permission)) {
    throw denied(permission);
  }
}
