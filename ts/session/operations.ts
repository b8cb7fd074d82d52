/**
 * Functions that act on the server instead of on its data: `SELECT reload_config()`. Each call in
 * the syntax tree is replaced with a parameter that follows the client's parameters. At every
 * execution, the session passes the function's result as the parameter's value.
 */
import { DatabaseError } from '../engine/error.js';
import type { ParameterBatch } from '../engine/parameters.js';
import type { CallNode, Name, Node, NodeId, SelectNode, Span, Tree } from '../sql/index.js';
import type { Backends } from './backends.js';

/** The server's implementation of each function. */
export type Operations = Readonly<Record<'reload_config' | 'reload_tls', () => Promise<boolean>>>;

/** The caller, and the objects it can act on. */
interface OperationSetting {
  readonly user: { readonly key: string; readonly readOnly: boolean };
  /** Throws `AccessDenied` unless the caller may administer the server. */
  readonly authorise: () => void;
  /** Process id of the caller's connection; 0 if it has none. */
  readonly backend: number;
  readonly backends: Backends;
  /** Absent if the database is embedded without a server. */
  readonly operations: Operations | null;
}

interface Operation {
  readonly type: 'BOOLEAN' | 'INT';
  /** Allowed argument counts. */
  readonly argumentCounts: readonly number[];
  /** Whether the function changes state and must therefore run exactly once, never per row. */
  readonly isChange: boolean;
  /** Resolves to the function's result. */
  run(setting: OperationSetting, numbers: readonly number[]): Promise<boolean | number>;
}

/** A number, or the client parameter that contains the number. */
type Argument = { readonly number: string } | { readonly parameter: number };

/** A call to a server function. */
export interface OperationCall {
  readonly name: string;
  readonly operation: Operation;
  readonly arguments: readonly Argument[];
  readonly span: Span;
}

/** A syntax tree in which parameters replace the calls to server functions. */
export interface Operated {
  readonly tree: Tree;
  /** The calls, in parameter order. */
  readonly calls: readonly OperationCall[];
  /** Number of the client's own parameters, which precede the parameters for the calls. */
  readonly parameters: number;
}

function reload(name: keyof Operations): Operation {
  return {
    type: 'BOOLEAN',
    argumentCounts: [0],
    isChange: true,
    run: async ({ user, authorise, operations }) => {
      authorise();
      if (user.readOnly) {
        const message = `${name}() changes the server: this session is read-only`;
        throw new DatabaseError({ code: 'ReadOnly', message });
      }
      return operations === null ? false : operations[name]();
    },
  };
}

function stop(how: 'cancel' | 'terminate', argumentCounts: readonly number[]): Operation {
  return {
    type: 'BOOLEAN',
    argumentCounts,
    isChange: true,
    run: async ({ user, authorise, backends }, [backend = 0]) => {
      await Promise.resolve();
      return backends.stop(how, backend, { ...user, authorise });
    },
  };
}

const OPERATIONS: ReadonlyMap<string, Operation> = new Map([
  ['reload_config', reload('reload_config')],
  ['reload_tls', reload('reload_tls')],
  ['pg_cancel_backend', stop('cancel', [1])],
  // PostgreSQL also accepts a second argument: the wait timeout.
  ['pg_terminate_backend', stop('terminate', [1, 2])],
  [
    'pg_backend_pid',
    {
      type: 'INT',
      argumentCounts: [0],
      isChange: false,
      run: ({ backend }) => Promise.resolve(backend),
    },
  ],
]);

const CATALOG = 'pg_catalog.';

function nameOf({ name }: CallNode): string {
  const folded = name.text.toLowerCase();
  return folded.startsWith(CATALOG) ? folded.slice(CATALOG.length) : folded;
}

/** Replaces calls to server functions with parameters; throws if a call is invalid. */
export function operated(tree: Tree): Operated {
  const { nodes = [], spans = [] } = tree as Partial<Tree>;
  const calls: OperationCall[] = [];
  let at: CallPositions | null = null;
  let given = 0;
  const replaced = new Map<NodeId, Node>();
  for (const [id, node] of nodes.entries()) {
    const operation = node.kind === 'Call' ? OPERATIONS.get(nameOf(node)) : undefined;
    if (node.kind !== 'Call' || operation === undefined || isOfRows(nodes, node)) {
      continue;
    }
    at ??= new CallPositions(tree);
    given ||= nodes.reduce((highest, node) => Math.max(highest, parameterOf(node)), 0);
    const span = spans[id] ?? node.name.span;
    const call = { name: nameOf(node), operation, arguments: argumentsOf(nodes, node), span };
    at.check(id, node, call);
    calls.push(call);
    replaced.set(id, { kind: 'Parameter', index: given + calls.length });
  }
  if (calls.length === 0) {
    return { tree, calls, parameters: 0 };
  }
  const names = new Map([...replaced.keys()].map((id, index) => [id, calls[index]?.name ?? '']));
  const named = nodes.map((node, id) => replaced.get(id) ?? withAliases(nodes, node, names));
  return { tree: { ...tree, nodes: named }, calls, parameters: given };
}

function parameterOf(node: Node): number {
  return node.kind === 'Parameter' ? node.index : 0;
}

/**
 * Whether `pg_cancel_backend(pid)` is called with a column, for each row of pg_stat_activity. The
 * engine executes such a call like CANCEL QUERY.
 */
function isOfRows(nodes: readonly Node[], call: CallNode): boolean {
  const [only] = call.arguments;
  return nameOf(call) === 'pg_cancel_backend' && bare(nodes, only)?.kind === 'Column';
}

/** The expression without its casts. */
function bare(nodes: readonly Node[], id: NodeId | undefined): Node | undefined {
  let node = id === undefined ? undefined : nodes[id];
  while (node?.kind === 'Cast') {
    node = nodes[node.operand];
  }
  return node;
}

function argumentsOf(nodes: readonly Node[], call: CallNode): readonly Argument[] {
  return call.arguments.map((id) => {
    const node = bare(nodes, id);
    if (node?.kind === 'Parameter') {
      return { parameter: node.index };
    }
    if (node?.kind === 'Integer') {
      return { number: node.text };
    }
    throw failed(call.name, `${nameOf(call)}() expects a number or a parameter`);
  });
}

function failed({ span }: Pick<Name, 'span'>, message: string): DatabaseError {
  return new DatabaseError({ code: 'NotSupported', message, ...span });
}

/** Names the column after the function, unless it has an alias. */
function withAliases(nodes: readonly Node[], node: Node, names: ReadonlyMap<NodeId, string>): Node {
  if (node.kind !== 'Select') {
    return node;
  }
  const items = node.items.map((item) => {
    const name = item.alias === null ? names.get(belowCasts(nodes, item.expression)) : undefined;
    const span = { start: 0, end: 0 };
    return name === undefined ? item : { ...item, alias: { text: name, quoted: false, span } };
  });
  return { ...node, items };
}

function belowCasts(nodes: readonly Node[], id: NodeId): NodeId {
  const node = nodes[id];
  return node?.kind === 'Cast' ? belowCasts(nodes, node.operand) : id;
}

/** Finds the positions in a syntax tree where calls are allowed. */
class CallPositions {
  private readonly root: Node | undefined;
  /**
   * Select items that are evaluated only once, because the statement's outermost SELECT has no FROM
   * clause.
   */
  private readonly once: ReadonlySet<NodeId>;
  private readonly tables: ReadonlySet<NodeId>;

  constructor({ nodes, root }: Tree) {
    this.root = nodes[root];
    const select = outermostSelect(nodes, root);
    const items = select !== null && returnsOneRow(select) ? select.items : [];
    this.once = new Set(items.map(({ expression }) => belowCasts(nodes, expression)));
    const calls = nodes.map((node) => (node.kind === 'TableFunction' ? node.call : null));
    this.tables = new Set(calls.filter((id) => id !== null));
  }

  check(id: NodeId, node: CallNode, { name, operation, arguments: given }: OperationCall): void {
    const { kind } = this.root ?? {};
    const isView = kind === 'CreateView' || kind === 'AlterView';
    const isPlain = !node.distinct && node.filter === null && node.over === null;
    if (!operation.argumentCounts.includes(given.length)) {
      const argumentCounts = operation.argumentCounts.join(' or ');
      throw failed(
        node.name,
        `${name}() expects ${argumentCounts} arguments, found ${given.length}`,
      );
    }
    if (!isPlain || isView || this.tables.has(id)) {
      const position = isView ? 'in a view' : this.tables.has(id) ? 'as a table' : 'over many rows';
      throw failed(node.name, `${name}() is a session function: it cannot be used ${position}`);
    }
    if (operation.isChange && !this.once.has(id)) {
      const example = `SELECT ${name}(${operation.argumentCounts[0] === 0 ? '' : '7'})`;
      const message = `${name}() can be used only in a SELECT without FROM: ${example}`;
      throw failed(node.name, message);
    }
  }
}

function outermostSelect(nodes: readonly Node[], root: NodeId): SelectNode | null {
  let node = nodes[root];
  while (node?.kind === 'Query') {
    node = nodes[node.body];
  }
  return node?.kind === 'Select' ? node : null;
}

function returnsOneRow(select: SelectNode): boolean {
  const { from, filter, latest_on, sample_by, group_by, having, qualify, pivot } = select;
  const clauses = [from, filter, latest_on, sample_by, having, qualify, pivot];
  const isGrouped = group_by.length > 0 || select.group_by_all;
  return !isGrouped && clauses.every((clause) => clause === null);
}

/** Returns the types of the client's parameters, followed by the types of the calls' results. */
export function typesWithResults(
  { calls, parameters }: Omit<Operated, 'tree'>,
  declared: readonly (string | null)[] = [],
): readonly (string | null)[] {
  const own = Array.from({ length: parameters }, (_, index) => declared[index] ?? null);
  for (const argument of calls.flatMap((call) => call.arguments)) {
    if ('parameter' in argument) {
      own[argument.parameter - 1] ??= 'INT';
    }
  }
  return [...own, ...calls.map(({ operation }) => operation.type)];
}

/** Returns a call's numeric arguments; throws if one is not a number. */
export function numbersOf(call: OperationCall, values: ParameterBatch): readonly number[] {
  return call.arguments.map((argument) => {
    const text = 'number' in argument ? argument.number : values.integerAt(argument.parameter - 1);
    const number = Number(text ?? Number.NaN);
    if (!Number.isSafeInteger(number) || text?.trim() === '') {
      const message = `${call.name}() expects a number, found ${text ?? 'null'}`;
      throw new DatabaseError({ code: 'InvalidValue', message, ...call.span });
    }
    return number;
  });
}
