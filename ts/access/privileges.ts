/**
 * has_table_privilege() and related functions, which PostgreSQL clients call. They are evaluated
 * here, because the engine has no rights. A call with constant arguments is replaced by its result.
 * If the table name varies by row, as in catalog queries, the call is replaced by a comparison with
 * the tables on which the user lacks the privilege.
 */
import type { Principal } from '../session/index.js';
import type { NodeId, Tree } from '../sql/index.js';
import { denied, ALL_COLUMNS } from './authorise.js';
import { fold, refusal } from './model.js';
import { isSelf } from './owners.js';
import type { Replacement } from './replacements.js';
import { type CurrentSchema, readRows, readSchema } from './schema.js';
import { type AccessContext, hasPermission, rightsOf } from './setting.js';
import { EVERYTHING, keyOf, refused, type Rights } from './store.js';

type Node = Tree['nodes'][number];

const NAME = /^(?:pg_catalog\.)?has_(table|any_column|column|schema|database)_privilege$/i;
const OPTION = /\s+with\s+grant\s+option$/i;
const CATALOG = /^(?:pg_|information_schema\.)/;

/** Permissions by PostgreSQL privilege name; `null` for a privilege that has no equivalent here. */
const ON_TABLES: ReadonlyMap<string, string | null> = new Map([
  ['SELECT', 'SELECT'],
  ['INSERT', 'INSERT'],
  ['UPDATE', 'UPDATE'],
  ['DELETE', 'DELETE'],
  ['TRUNCATE', 'TRUNCATE TABLE'],
  ['MAINTAIN', 'VACUUM TABLE'],
  ['REFERENCES', null],
  ['TRIGGER', null],
  ['RULE', null],
]);
const ON_ALL: ReadonlyMap<string, string | null> = new Map([
  ['CREATE', 'CREATE TABLE'],
  ['CONNECT', 'PGWIRE'],
  ['TEMP', null],
  ['TEMPORARY', null],
]);

/** One privilege to check. */
interface RequestedPrivilege {
  readonly permission: string | null;
  readonly required: 'yes' | 'option';
}

/** A parsed call. */
interface Call {
  readonly kind: string;
  readonly rights: Rights;
  /** Any one of these privileges suffices. */
  readonly requested: readonly RequestedPrivilege[];
  /** The table, followed by the column, if any. */
  readonly objects: readonly NodeId[];
}

export function isPrivilegeCall(node: Node): boolean {
  return node.kind === 'Call' && NAME.test(node.name.text);
}

/** Returns the calls in a syntax tree, each with its replacement. */
export async function answeredPrivileges(
  context: AccessContext,
  principal: Principal,
  tree: Tree,
  text: string,
): Promise<readonly Replacement[]> {
  const calls = tree.nodes.flatMap((node, id) => {
    const call = callOf(context, principal, tree, node);
    const span = tree.spans[id];
    return call === null || span === undefined ? [] : [{ call, span }];
  });
  if (calls.length === 0) {
    return [];
  }
  const schema = await readSchema(context.database);
  const numbers = new Map(
    (await readRows(context.database, 'SELECT relname, oid FROM pg_class')).map(
      ([name, oid]) => [fold(String(name)), String(oid)] as const,
    ),
  );
  return calls.map(({ call, span }) => ({
    start: span.start,
    end: span.end,
    text: new Answer(call, schema, numbers).of(tree, text),
  }));
}

function callOf(context: AccessContext, principal: Principal, tree: Tree, node: Node): Call | null {
  const kind = node.kind === 'Call' ? NAME.exec(node.name.text)?.[1]?.toLowerCase() : undefined;
  if (node.kind !== 'Call' || kind === undefined) {
    return null;
  }
  const objects = kind === 'column' ? 2 : 1;
  const count = node.arguments.length - 1;
  const list = textOf(tree, node.arguments.at(-1));
  if (list === null || count < objects || count > objects + 1) {
    return null;
  }
  const of = count > objects ? textOf(tree, node.arguments[0]) : null;
  const known = kind === 'schema' || kind === 'database' ? ON_ALL : ON_TABLES;
  return {
    kind,
    rights: rightsOfUser(context, principal, of),
    requested: list.split(',').flatMap((word) => parsePrivilege(word.trim(), known)),
    objects: node.arguments.slice(count - objects, count),
  };
}

function parsePrivilege(
  word: string,
  known: ReadonlyMap<string, string | null>,
): readonly RequestedPrivilege[] {
  const name = word.replace(OPTION, '').toUpperCase();
  if (name === 'USAGE' && known === ON_ALL) {
    return [];
  }
  const permission = known.get(name);
  if (permission === undefined) {
    throw refused(`unrecognized privilege type: '${word}', expected a privilege such as 'SELECT'`);
  }
  return [{ permission, required: OPTION.test(word) ? 'option' : 'yes' }];
}

/** Reading another user's rights requires permission to see that user's details. */
function rightsOfUser(context: AccessContext, principal: Principal, of: string | null): Rights {
  const own = rightsOf(context.store, principal);
  if (of === null || isSelf(principal, of)) {
    return own;
  }
  if (!hasPermission(own, 'USER DETAILS')) {
    throw denied('USER DETAILS');
  }
  const found = context.store.find(of);
  if (of !== context.setting.adminName && found === undefined) {
    throw refused(`user, group or service account '${of}' does not exist`);
  }
  return found === undefined
    ? EVERYTHING
    : context.store.rightsOfOwner({ name: of, id: keyOf(found) });
}

/** Returns the value of a string literal, with or without a cast such as `::regclass`. */
function textOf({ nodes }: Tree, id: NodeId | undefined): string | null {
  let node = id === undefined ? undefined : nodes[id];
  while (node?.kind === 'Cast') {
    node = nodes[node.operand];
  }
  return node?.kind === 'String' ? node.value : null;
}

class Answer {
  readonly #call: Call;
  readonly #schema: CurrentSchema;
  readonly #numbers: ReadonlyMap<string, string>;

  constructor(call: Call, schema: CurrentSchema, numbers: ReadonlyMap<string, string>) {
    this.#call = call;
    this.#schema = schema;
    this.#numbers = numbers;
  }

  of(tree: Tree, text: string): string {
    const { kind, objects } = this.#call;
    if (kind === 'schema' || kind === 'database') {
      return String(this.#onAll());
    }
    const [table, column] = objects;
    const name = textOf(tree, table);
    if (name !== null) {
      return String(this.#on(bareName(name), textOf(tree, column)));
    }
    const without = this.#schema.tables().filter((table) => !this.#on(table, null));
    const named = without.flatMap((table) => [table, this.#numbers.get(fold(table)) ?? table]);
    const span = table === undefined ? undefined : tree.spans[table];
    const list = named.map((table) => `'${table.replaceAll("'", "''")}'`).join(', ');
    const argument = text.slice(span?.start, span?.end);
    return list === '' ? 'true' : `((${argument})::string NOT IN (${list}))`;
  }

  /** Returns whether the user holds a privilege on the database; every user has USAGE. */
  #onAll(): boolean {
    const { requested, rights } = this.#call;
    return (
      requested.length === 0 || requested.some((privilege) => isGranted(rights, privilege, '', []))
    );
  }

  #on(table: string, column: string | null): boolean {
    if (!this.#schema.has(table)) {
      const reads = this.#call.requested.some(({ permission }) => permission === 'SELECT');
      return CATALOG.test(fold(table)) && reads;
    }
    const { kind, requested, rights } = this.#call;
    const timestamp = this.#schema.timestamp(table) ?? undefined;
    const isGrantedOn = (name: string): boolean =>
      requested.some((privilege) => isGranted(rights, privilege, table, [name], timestamp));
    if (kind === 'table' || isGrantedOn(ALL_COLUMNS)) {
      return isGrantedOn(ALL_COLUMNS);
    }
    return column === null ? this.#schema.columns(table).some(isGrantedOn) : isGrantedOn(column);
  }
}

function isGranted(
  rights: Rights,
  { permission, required }: RequestedPrivilege,
  table: string,
  columns: readonly string[],
  timestamp?: string,
): boolean {
  return (
    permission !== null &&
    (rights.all ||
      refusal(rights.sets, { permission, table, columns, timestamp }, required) === null)
  );
}

/** Parses a table name given as a string, following PostgreSQL's rules. */
function bareName(text: string): string {
  return text.replace(/^(?:"public"|public)\./i, '').replace(/^"(.*)"$/s, '$1');
}
