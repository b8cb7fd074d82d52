/**
 * Locking clauses: `FOR UPDATE OF t SKIP LOCKED`. They have no effect, because sessions never wait
 * for each other. A clause is refused where PostgreSQL refuses it.
 */
import type { CallNode, NodeId, Span } from '../ast.generated.js';
import type { Parser } from '../parser/parser.js';

const STRENGTHS = [['UPDATE'], ['NO', 'KEY', 'UPDATE'], ['SHARE'], ['KEY', 'SHARE']] as const;

/** The usual aggregate functions. The parser does not know the others. */
const AGGREGATES =
  /^(?:count|sum|min|max|avg|first|last|bool_(?:and|or)|(?:string|array)_agg|stddev.*|var.*)$/i;

/** Returns whether a locking clause starts at the current token, which could also be an alias. */
export function atLocking(p: Parser): boolean {
  return p.sees('FOR') && STRENGTHS.some((words) => isAfter(p, words));
}

function isAfter(p: Parser, words: readonly string[]): boolean {
  return words.every((word, index) => p.value(index + 1) === word);
}

/**
 * Parses the locking clauses of a query with this body. FOR is not recorded as a valid word,
 * because it resembles FROM, which is mistyped more often.
 */
export function parseLocking(p: Parser, query: NodeId): void {
  while (atLocking(p)) {
    const body = bodyOf(p, query);
    const start = p.start();
    const clause = lockingClause(p);
    const refused = refusal(p, body);
    if (refused !== null) {
      const message = `${clause} is not allowed with ${refused}`;
      p.failAt(message, start, p.lastEnd(), 'NotSupported');
    }
    p.locking ??= `SELECT ${clause}`;
    if (p.take('OF')) {
      const names = sourceNames(p, body);
      p.list(() => lockedSource(p, clause, names));
    }
    if (!p.take('NOWAIT')) {
      p.take('SKIP', 'LOCKED');
    }
  }
}

/** Returns the query inside parentheses. */
function bodyOf(p: Parser, query: NodeId): NodeId {
  const node = p.node(query);
  return node.kind === 'Query' ? bodyOf(p, node.body) : query;
}

/** Consumes the clause's first words and returns them: `FOR NO KEY UPDATE`. */
function lockingClause(p: Parser): string {
  p.advance();
  const words = STRENGTHS.find((strength) => p.take(...strength)) ?? [];
  return ['FOR', ...words].join(' ');
}

function lockedSource(p: Parser, clause: string, names: ReadonlySet<string>): void {
  const name = p.name('table name expected');
  if (!names.has(name.text.toLowerCase())) {
    const { start, end } = name.span;
    const message = `relation "${name.text}" in ${clause} clause not found in FROM clause`;
    p.failAt(message, start, end, 'TableNotFound');
  }
}

/** Returns the clause with which a locking clause cannot be combined; `null` for none. */
function refusal(p: Parser, body: NodeId): string | null {
  const node = p.node(body);
  if (node.kind === 'SetOperation') {
    return 'UNION/INTERSECT/EXCEPT';
  }
  if (node.kind !== 'Select') {
    return node.kind === 'Values' ? 'VALUES' : null;
  }
  const calls = node.items.flatMap(({ expression }) => callsOf(p, expression));
  const isWindow = calls.some(({ over }) => over !== null);
  const isAggregate = calls.some(({ name, over }) => over === null && AGGREGATES.test(name.text));
  const clauses: readonly (readonly [boolean, string])[] = [
    [node.distinct, 'DISTINCT clause'],
    [node.group_by.length > 0 || node.group_by_all, 'GROUP BY clause'],
    [node.sample_by !== null, 'SAMPLE BY clause'],
    [node.latest_on !== null, 'LATEST ON clause'],
    [node.having !== null, 'HAVING clause'],
    [node.pivot !== null, 'PIVOT clause'],
    [isAggregate, 'aggregate functions'],
    [isWindow || node.qualify !== null, 'window functions'],
  ];
  return clauses.find(([isUsed]) => isUsed)?.[1] ?? null;
}

/** Returns the function calls of an expression, except those of its subqueries. */
function callsOf(p: Parser, expression: NodeId): CallNode[] {
  const calls: CallNode[] = [];
  const queries: Span[] = [];
  const { start } = p.spanOf(expression);
  // An expression's nodes precede it, and follow those of the previous item.
  for (let id = expression; id >= 0 && p.spanOf(id).end > start; id -= 1) {
    const node = p.node(id);
    const span = p.spanOf(id);
    if (node.kind === 'Query') {
      queries.push(span);
    } else if (node.kind === 'Call') {
      const isInner = queries.some((query) => span.start >= query.start && span.end <= query.end);
      calls.push(...(isInner ? [] : [node]));
    }
  }
  return calls;
}

/** Names of a query's sources, in lower case. */
function sourceNames(p: Parser, body: NodeId): ReadonlySet<string> {
  const names = new Set<string>();
  const select = p.node(body);
  const open = select.kind === 'Select' && select.from !== null ? [select.from] : [];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const source = p.node(id);
    if (source.kind === 'Join') {
      open.push(source.left, source.right);
    } else if (source.kind === 'Table') {
      names.add((source.alias ?? source.name).text.toLowerCase());
    } else if (source.kind === 'Derived' && source.alias !== null) {
      names.add(source.alias.text.toLowerCase());
    }
  }
  return names;
}
