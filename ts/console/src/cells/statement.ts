/**
 * Builds the statement that a cell sends. Referenced earlier cells become common table expressions,
 * and variables become declarations before the query. The parser locates table names, variables and
 * the start of each query. The cell's own text is sent unchanged, so that error positions still
 * match it. This module has no side effects.
 */
import { parse, type NodeId, type Tree } from '../../../sql/index.js';
import { scan as lex, type Tokens } from '../../../sql/lexer/lexer.js';
import type { Bound } from '../sql/parameters.js';
import { scan } from '../sql/scanner.js';
import { statementsOf } from '../sql/statements.js';
import { sqlCells, type Notebook, type SqlCell, type Variable } from './model.js';
import { serverTime } from './times.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface CellStatement {
  /** The cell's text, without surrounding comments and semicolons. */
  readonly text: string;
  /** Offset of the statement in the cell's text. */
  readonly start: number;
  readonly bound: Bound;
  /** Tables that the cell reads, directly or through referenced cells. */
  readonly tables: readonly string[];
  /** Names of the cells that this cell references, directly or indirectly, in notebook order. */
  readonly cells: readonly string[];
  /** Names of the variables that the cell uses, in lower case. */
  readonly variables: ReadonlySet<string>;
}

/** The reason that a cell cannot run. `offset` is a position in the cell's text. */
export interface CellTrouble {
  readonly message: string;
  readonly offset: number;
  /** Number of statements. Set only if the cell has more than one. */
  readonly statements?: number;
}

type Composed =
  | { readonly statement: CellStatement; readonly trouble?: undefined }
  | { readonly trouble: CellTrouble; readonly statement?: undefined };

/** Builds the statement of a cell. Variables have their values as of `now`. */
export function compose(notebook: Notebook, id: string, now: number): Composed {
  const earlier = new Map<string, SqlCell>();
  for (const cell of sqlCells(notebook)) {
    if (cell.id === id) {
      return new Composer(notebook, earlier, now).compose(cell);
    }
    earlier.set(cell.name.toLowerCase(), cell);
  }
  return { trouble: { message: texts.cellStatement.cellGone, offset: 0 } };
}

/** A statement, and the tables and variables that it uses. */
interface Parsed {
  readonly text: string;
  readonly start: number;
  readonly tree: Tree | undefined;
  /** Table names as written in the statement. */
  readonly tables: readonly string[];
  readonly variables: ReadonlySet<string>;
}

class Composer {
  readonly #notebook: Notebook;
  readonly #earlier: ReadonlyMap<string, SqlCell>;
  readonly #now: number;

  constructor(notebook: Notebook, earlier: ReadonlyMap<string, SqlCell>, now: number) {
    this.#notebook = notebook;
    this.#earlier = earlier;
    this.#now = now;
  }

  compose(cell: SqlCell): Composed {
    const own = parsed(cell.text);
    if ('message' in own) {
      return { trouble: own };
    }
    const included = new Map<string, Parsed>();
    const trouble = this.#include(own, [...this.#earlier.keys()], included);
    if (trouble) {
      return { trouble: { message: trouble, offset: own.start } };
    }
    const names = [...this.#earlier.keys()].filter((name) => included.has(name));
    const all = [own, ...included.values()];
    const variables = new Set(all.flatMap((one) => [...one.variables]));
    const declared = this.#declarations(variables);
    if (typeof declared === 'string') {
      return { trouble: { message: declared, offset: own.start } };
    }
    const common = names.map((name) => {
      const written = this.#earlier.get(name)?.name ?? name;
      return `"${written}" AS (${included.get(name)?.text ?? ''}\n)`;
    });
    const { text, start, tree } = own;
    const inserted = tree ? insertions(text, tree, declared, common) : [];
    if (inserted.length === 0 && (declared.length > 0 || common.length > 0)) {
      const message = texts.cellStatement.notAQuery;
      return { trouble: { message, offset: start } };
    }
    const tables = [...new Set(all.flatMap((one) => one.tables))].filter(
      (name) => !included.has(name.toLowerCase()),
    );
    const bound = boundOf(text, inserted);
    return { statement: { text, start, bound, tables, cells: names, variables } };
  }

  /** Parses the referenced cells recursively. Returns an error message if a cell cannot be used. */
  #include(
    one: Parsed,
    inReach: readonly string[],
    included: Map<string, Parsed>,
  ): string | undefined {
    for (const table of one.tables) {
      const name = table.toLowerCase();
      const cell = inReach.includes(name) ? this.#earlier.get(name) : undefined;
      if (!cell || included.has(name)) {
        continue;
      }
      const read = parsed(cell.text);
      if ('message' in read) {
        return fill(texts.cellStatement.cellUnusable, { name: cell.name, message: read.message });
      }
      if (!read.tree || read.tree.nodes[read.tree.root]?.kind !== 'Query') {
        return fill(texts.cellStatement.cellWithoutRows, { name: cell.name });
      }
      included.set(name, read);
      const trouble = this.#include(read, inReach.slice(0, inReach.indexOf(name)), included);
      if (trouble !== undefined) {
        return trouble;
      }
    }
    return undefined;
  }

  /** Returns `@name := value` for each used variable, or an error message. */
  #declarations(used: ReadonlySet<string>): string[] | string {
    const declared: string[] = [];
    const variables = variablesOf(this.#notebook);
    const missing = [...used].find(
      (name) => !variables.some((variable) => variable.name.toLowerCase() === name),
    );
    if (missing !== undefined) {
      return missing === 'from' || missing === 'to'
        ? fill(texts.cellStatement.noRange, { name: missing })
        : fill(texts.cellStatement.noVariable, { name: missing });
    }
    for (const variable of variables) {
      if (!used.has(variable.name.toLowerCase())) {
        continue;
      }
      const value = valueOf(variable, this.#now);
      if (value === undefined) {
        return `@${variable.name}: ${valueTrouble(variable)}`;
      }
      declared.push(`@${variable.name} := ${value}`);
    }
    return declared;
  }
}

/** Returns the variables of a notebook, including `@from` and `@to` if a time range is set. */
function variablesOf({ variables, range }: Notebook): readonly Variable[] {
  const ends: readonly Variable[] = range
    ? [
        { name: 'from', kind: 'time', value: range.from },
        { name: 'to', kind: 'time', value: range.to },
      ]
    : [];
  return [...ends, ...variables];
}

const NUMBER = /^[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:e[+-]?\d{1,3})?$/i;

/** Returns a variable's value as an SQL literal, or `undefined` if the value is invalid. */
export function valueOf({ kind, value }: Variable, now: number): string | undefined {
  switch (kind) {
    case 'text':
    case 'list':
      return `'${value.replaceAll("'", "''")}'`;
    case 'number':
      return NUMBER.test(value.trim()) ? value.trim() : undefined;
    case 'time': {
      const at = serverTime(value, now);
      return at === undefined ? undefined : `'${at}'::timestamp`;
    }
  }
}

/** Returns the error message for a value that does not match the variable's kind. */
export function valueTrouble({ kind, value }: Variable): string {
  const shown = value.trim() === '' ? texts.cellStatement.emptyValue : `"${value.slice(0, 40)}"`;
  return kind === 'number'
    ? fill(texts.cellStatement.notANumber, { value: shown })
    : fill(texts.cellStatement.notATime, { value: shown });
}

function parsed(written: string): Parsed | CellTrouble {
  const statements = statementsOf(scan(written));
  const [only] = statements;
  if (!only) {
    return { message: texts.cellStatement.emptyCell, offset: 0 };
  }
  if (statements.length > 1) {
    const message = fill(texts.cellStatement.manyStatements, { count: statements.length });
    return { message, offset: statements[1]?.start ?? 0, statements: statements.length };
  }
  const { start, end } = only;
  const text = written.slice(start, end);
  try {
    return { text, start, ...namesOf(parse(text)) };
  } catch {
    // The server will report the error and its position.
    return { text, start, tree: undefined, tables: [], variables: new Set() };
  }
}

function namesOf(tree: Tree): Pick<Parsed, 'tree' | 'tables' | 'variables'> {
  const tables = new Map<string, string>();
  const variables = new Set<string>();
  const declared = new Set<string>();
  const common = new Set<string>();
  for (const node of tree.nodes) {
    if (node.kind === 'Table') {
      tables.set(node.name.text.toLowerCase(), node.name.text);
      if (node.name.text.startsWith('@')) {
        variables.add(node.name.text.slice(1).toLowerCase());
      }
    } else if (node.kind === 'Variable') {
      variables.add(node.name.text.replace(/^@/, '').toLowerCase());
    } else if (node.kind === 'Query') {
      node.with.forEach(({ name }) => common.add(name.text.toLowerCase()));
      node.declarations.forEach(({ name }) => declared.add(name.text.toLowerCase()));
    }
  }
  common.forEach((name) => tables.delete(name));
  declared.forEach((name) => variables.delete(name));
  return { tree, tables: [...tables.values()], variables };
}

interface Insertion {
  readonly at: number;
  readonly text: string;
}

/**
 * Computes the text to insert before each outermost query. A query that has declarations or common
 * table expressions needs two insertions.
 */
function insertions(
  text: string,
  tree: Tree,
  declared: readonly string[],
  common: readonly string[],
): Insertion[] {
  if (declared.length === 0 && common.length === 0) {
    return [];
  }
  const tokens = lex(text);
  return outermostQueries(tree).flatMap((id) => {
    const node = tree.nodes[id];
    const start = tree.spans[id]?.start ?? 0;
    if (node?.kind !== 'Query') {
      return [];
    }
    const into: Insertion[] = [];
    const [firstDeclared] = node.declarations;
    const [firstCommon] = node.with;
    if (declared.length > 0) {
      const list = declared.join(', ');
      const at = firstDeclared ? tokenAfter(tokens, start) : start;
      into.push({ at, text: firstDeclared ? `${list}, ` : `DECLARE ${list} ` });
    }
    if (common.length > 0) {
      const list = common.join(', ');
      const lastDeclared = node.declarations.at(-1);
      const at = firstCommon
        ? firstCommon.name.span.start
        : lastDeclared
          ? afterValue(tokens, tree.spans[lastDeclared.value]?.end ?? start)
          : start;
      into.push({ at, text: firstCommon ? `${list}, ` : `WITH ${list} ` });
    }
    return into;
  });
}

/** Returns the queries that are not nested in another query. */
function outermostQueries(tree: Tree): NodeId[] {
  const found: NodeId[] = [];
  let before = Infinity;
  // Parents follow their children in the list. Scanning from the end therefore finds each query
  // before the queries nested in it.
  for (let id = tree.nodes.length - 1; id >= 0; id -= 1) {
    const span = tree.spans[id];
    if (tree.nodes[id]?.kind === 'Query' && span && span.end <= before) {
      found.unshift(id);
      before = span.start;
    }
  }
  return found;
}

/** Returns the start of the token after the one at an offset. */
function tokenAfter({ starts }: Tokens, at: number): number {
  return starts[starts.findIndex((start) => start >= at) + 1] ?? at;
}

/** Returns the position after the value of the last declaration. */
function afterValue({ starts, values }: Tokens, end: number): number {
  let index = starts.findIndex((start) => start >= end);
  while (values[index] === ')') {
    index += 1;
  }
  return starts[index] ?? end;
}

function boundOf(text: string, inserted: readonly Insertion[]): Bound {
  let bound = '';
  let from = 0;
  const spans: { readonly start: number; readonly end: number; readonly at: number }[] = [];
  for (const { at, text: insertion } of inserted) {
    bound += text.slice(from, at);
    spans.push({ start: bound.length, end: bound.length + insertion.length, at });
    bound += insertion;
    from = at;
  }
  bound += text.slice(from);
  const original = (offset: number): number => {
    let shift = 0;
    for (const { start, end, at } of spans) {
      if (offset < start) {
        break;
      }
      if (offset < end) {
        return at;
      }
      shift += end - start;
    }
    return offset - shift;
  };
  return { text: bound, original };
}
