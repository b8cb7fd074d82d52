/**
 * Names in scope at a cursor: the tables whose columns are valid there, the CTEs and the variables.
 * It uses only tokens, so it also handles incomplete statements.
 */
import { AFTER_SOURCE, SOFT_JOINS } from './keywords.js';
import { scan, TokenKind, type Tokens, unquote } from './lexer.js';

/** A source of columns. */
interface ScopeSource {
  /** The table's name; `null` for a subquery or a table function. */
  readonly table: string | null;
  /** The alias; `null` if it has none. */
  readonly alias: string | null;
  /** A subquery's SQL text. */
  readonly query?: string;
}

/** The names in scope at an offset. */
export interface Scope {
  /** Sources of the innermost query first, then those of the enclosing queries. */
  readonly sources: readonly ScopeSource[];
  /** Names of CTEs, which WITH defines. */
  readonly commonTables: readonly string[];
  /** Names that DECLARE defines, without the `@` prefix. */
  readonly variables: readonly string[];
}

/** Words before a table name that cannot have an alias or arguments. */
const BEFORE_TABLE: ReadonlySet<string> = new Set(['INTO', 'TABLE']);

/** Words that end the FROM list. */
const AFTER_SOURCES: ReadonlySet<string> = new Set([
  'WHERE',
  'LATEST',
  'SAMPLE',
  'GROUP',
  'HAVING',
  'ORDER',
  'LIMIT',
  'OFFSET',
  'FETCH',
  'PIVOT',
  'SET',
  'VALUES',
  'SELECT',
]);

const SET_OPERATORS: ReadonlySet<string> = new Set(['UNION', 'EXCEPT', 'INTERSECT']);

/**
 * Cursor over the tokens of one nesting level, in which a parenthesised group counts as one token.
 */
class Level {
  private readonly tokens: Tokens;
  private readonly closing: readonly number[];
  readonly end: number;
  at: number;

  constructor(tokens: Tokens, closing: readonly number[], start: number, end: number) {
    this.tokens = tokens;
    this.closing = closing;
    this.at = start;
    this.end = end;
  }

  get done(): boolean {
    return this.at >= this.end;
  }

  /** Returns the current word in upper case, or the current mark; empty for other tokens. */
  value(offset = 0): string {
    const index = this.at + offset;
    return index < this.end ? (this.tokens.values[index] ?? '') : '';
  }

  kind(): TokenKind {
    return this.done ? TokenKind.End : (this.tokens.kinds[this.at] ?? TokenKind.End);
  }

  step(): void {
    const close = this.closing[this.at] ?? -1;
    this.at = close < 0 ? this.at + 1 : close + 1;
  }

  /** Returns whether the current token is a word in `words`. */
  sees(words: ReadonlySet<string>): boolean {
    return this.kind() === TokenKind.Word && words.has(this.value());
  }

  /** Returns the text inside the parentheses that open at the cursor. */
  inside(): string {
    const { text, starts, ends } = this.tokens;
    return text.slice(ends[this.at], starts[this.closing[this.at] ?? -1]);
  }

  /** Returns the unquoted name at the cursor and advances; `null` if the token is not a name. */
  name(): string | null {
    const kind = this.kind();
    const isQuoted = kind === TokenKind.Quoted || kind === TokenKind.String;
    if (!isQuoted && kind !== TokenKind.Word) {
      return null;
    }
    const { text, starts, ends } = this.tokens;
    const written = text.slice(starts[this.at], ends[this.at]);
    this.at += 1;
    return isQuoted ? unquote(written) : written;
  }
}

/** Returns the names in scope at `offset` in `text`, which contains one statement. */
export function scopeAt(text: string, offset: number): Scope {
  const tokens = scan(text);
  const last = tokens.kinds.length - 1;
  const closing = closingParentheses(tokens, last);
  const sources: ScopeSource[] = [];
  const commonTables: string[] = [];
  for (const [start, end] of groupsAround(tokens, closing, last, offset)) {
    commonTables.push(...namesOfWith(new Level(tokens, closing, start, end)));
    const [from, to] = blockAround(tokens, new Level(tokens, closing, start, end), offset);
    sources.push(...sourcesOf(new Level(tokens, closing, from, to)));
  }
  const variables: string[] = [];
  tokens.kinds.forEach((kind, index) => {
    const start = tokens.starts[index] ?? 0;
    if (kind === TokenKind.Variable && tokens.values[index + 1] === ':=' && start < offset) {
      variables.push(text.slice(start + 1, tokens.ends[index]));
    }
  });
  return { sources, commonTables, variables };
}

/**
 * Maps each opening parenthesis to the index of its closing parenthesis, or to `last` if it is not
 * closed.
 */
function closingParentheses(tokens: Tokens, last: number): number[] {
  const closing = Array<number>(last + 1).fill(-1);
  const open: number[] = [];
  for (let index = 0; index < last; index += 1) {
    const value = tokens.kinds[index] === TokenKind.Mark ? tokens.values[index] : '';
    if (value === '(') {
      open.push(index);
      closing[index] = last;
    } else if (value === ')') {
      const start = open.pop();
      if (start !== undefined) {
        closing[start] = index;
      }
    }
  }
  return closing;
}

/**
 * Returns the token ranges of the groups around the offset: the innermost parentheses first, the
 * whole statement last.
 */
function groupsAround(
  tokens: Tokens,
  closing: readonly number[],
  last: number,
  offset: number,
): [number, number][] {
  const groups: [number, number][] = [[0, last]];
  closing.forEach((close, open) => {
    const inside = (tokens.ends[open] ?? 0) <= offset && offset <= (tokens.starts[close] ?? 0);
    if (close >= 0 && inside) {
      groups.unshift([open + 1, close]);
    }
  });
  return groups;
}

/** Returns the set operation's operand that contains the offset. */
function blockAround(tokens: Tokens, level: Level, offset: number): [number, number] {
  let start = level.at;
  while (!level.done) {
    if (level.sees(SET_OPERATORS)) {
      if ((tokens.starts[level.at] ?? 0) >= offset) {
        break;
      }
      start = level.at + 1;
    }
    level.step();
  }
  return [start, level.at];
}

/** Returns the CTE names in `WITH a AS (…), b (x) AS (…)`. */
function namesOfWith(level: Level): string[] {
  const names: string[] = [];
  let isList = false;
  while (!level.done && level.value() !== 'SELECT') {
    const starts = level.value() === 'WITH' || (isList && level.value() === ',');
    level.step();
    if (starts) {
      if (level.value() === 'RECURSIVE' && level.value(1) !== 'AS' && level.value(1) !== '(') {
        level.step();
      }
      const name = level.name();
      if (level.value() === '(') {
        level.step();
      }
      isList = level.value() === 'AS' && level.value(1) === '(';
      if (name !== null && isList) {
        names.push(name);
      }
    }
  }
  return names;
}

/**
 * Returns the sources of a SELECT block, of the short form `t WHERE …`, or of a statement that
 * names a table.
 */
function sourcesOf(level: Level): ScopeSource[] {
  const sources: ScopeSource[] = [];
  let previous = '';
  for (let index = 0; !level.done; index += 1) {
    const word = level.kind() === TokenKind.Word ? level.value() : '';
    const isShort = index === 0 && isName(level) && !NOT_SHORT.has(word);
    const isList = word === 'UPDATE' || (word === 'FROM' && index > 0 && previous !== 'DISTINCT');
    if (!isShort) {
      level.step();
    }
    if (isShort || isList) {
      readSources(level, sources);
    } else if (BEFORE_TABLE.has(word)) {
      const table = level.name();
      sources.push(...(table === null ? [] : [{ table, alias: null }]));
    }
    previous = word;
  }
  return sources;
}

/** Words that begin a statement other than the short form. */
const NOT_SHORT: ReadonlySet<string> = new Set([
  ...AFTER_SOURCE,
  'DELETE',
  'EXPLAIN',
  'UPDATE',
  'TRUNCATE',
  'RENAME',
  'SHOW',
  'COPY',
]);

function isName(level: Level): boolean {
  return level.kind() === TokenKind.Word || level.kind() === TokenKind.Quoted;
}

/** Reads sources such as `a x, (…) AS y JOIN b ON …`, up to the next clause. */
function readSources(level: Level, sources: ScopeSource[]): void {
  let expected = true;
  while (!level.done && !level.sees(AFTER_SOURCES)) {
    if (expected && level.value() === 'LATERAL') {
      level.step();
    } else if (expected) {
      expected = false;
      readSource(level, sources);
    } else {
      expected = level.value() === ',' || level.value() === 'JOIN';
      level.step();
    }
  }
}

function readSource(level: Level, sources: ScopeSource[]): void {
  let table: string | null = null;
  let query: string | null = null;
  if (level.value() === '(') {
    query = level.inside();
    level.step();
  } else if (level.kind() === TokenKind.Variable) {
    level.step();
  } else if (level.kind() === TokenKind.String || !level.sees(AFTER_SOURCE)) {
    table = level.name();
    if (table === null) {
      return;
    }
    while (level.value() === '.') {
      level.step();
      table += `.${level.name() ?? ''}`;
    }
    if (level.value() === '(') {
      table = null;
      level.step();
    }
  } else {
    return;
  }
  if (level.value() === 'TIMESTAMP' && level.value(1) === '(') {
    level.step();
    level.step();
  }
  sources.push({ table, alias: readAlias(level), ...(query === null ? {} : { query }) });
}

function readAlias(level: Level): string | null {
  if (level.value() === 'AS') {
    level.step();
    return level.name();
  }
  const isJoin = level.sees(SOFT_JOINS) && level.value(1) === 'JOIN';
  const ends = level.sees(AFTER_SOURCE) || level.sees(AFTER_SOURCES) || isJoin;
  return isName(level) && !ends ? level.name() : null;
}
