/**
 * The state of a parse: a cursor over the tokens, the tree under construction, and the limits.
 *
 * The grammar is in the neighbouring modules (`expression.ts`, `query.ts`, …), as functions of a
 * `Parser`. `nested` limits recursion; `height` and `countTerm` limit long chains. No SQL text can
 * therefore overflow the stack, either here or in code that walks the tree.
 */
import type { Name, Node, NodeId, PlainRows, Span, Tree } from '../ast.generated.js';
import { AFTER_COLUMN_WORDS, CASE_WORDS, COLUMN_WORDS, RESERVED } from '../lexer/keywords.js';
import { TokenKind, tokenize, type Tokens, unquote } from '../lexer/lexer.js';
import { type ParseErrorCode, SyntaxError_ } from '../lexer/syntax-error.js';

/** Maximum length of a statement, in UTF-16 code units. */
export const MAX_TEXT_LENGTH = 1_048_576;
/** The database name that PostgreSQL clients see. */
const DATABASE = 'qdb';
/** Schemas that are part of a table's name, unlike `public`. */
const SCHEMAS: ReadonlySet<string> = new Set(['pg_catalog', 'information_schema', 'sys']);
/** Maximum nesting depth of parentheses, subqueries and prefix operators. */
export const MAX_NESTING = 256;
/** Maximum number of members in a list, or in a chain of AND, OR, || or +. */
export const MAX_TERMS = 10_000;
/** Maximum height of the syntax tree in nodes, which also limits chains of different operators. */
const MAX_HEIGHT = 1_024;

/** Grammar rules that are used recursively. */
export interface Grammar {
  readonly expression: (parser: Parser) => NodeId;
  /** Parses the left operand of IN. */
  readonly operand: (parser: Parser) => NodeId;
  readonly query: (parser: Parser) => NodeId;
}

/** Records which words and grammar elements would be valid at one token. */
export interface Probe {
  /** Index of the probed token. */
  readonly index: number;
  readonly keywords: Set<string>;
  readonly contexts: Set<ProbeContext>;
}

/** A grammar element that is not a keyword. */
export type ProbeContext = 'expression' | 'name' | 'table' | 'type';

const WORD_OR_MARK_MAX = TokenKind.Mark;

export class Parser {
  readonly text: string;
  readonly grammar: Grammar;
  /** Index of the current token. */
  index = 0;
  /** Row values such as `(a, b)` that have not been used in a comparison yet. */
  readonly rows = new Set<NodeId>();
  /** Index of a FROM token that may directly follow SELECT, without a select list. */
  bareFrom = -1;
  /** The first locking clause: `SELECT FOR UPDATE`. */
  locking: string | null = null;
  private readonly tokens: Tokens;
  private readonly nodes: Node[] = [];
  private readonly spans: Span[] = [];
  private readonly heights: number[] = [];
  private depth = 0;
  private questionMarks = 0;
  /** Number of CASE expressions being parsed. */
  private openCases = 0;
  private readonly probe: Probe | null;

  constructor(text: string, grammar: Grammar, probe: Probe | null = null) {
    if (text.length > MAX_TEXT_LENGTH) {
      throw new SyntaxError_(
        `statement text is too long [length=${text.length}, max=${MAX_TEXT_LENGTH}]`,
        MAX_TEXT_LENGTH,
        text.length,
      );
    }
    this.text = text;
    this.grammar = grammar;
    this.tokens = tokenize(text, probe === null);
    this.probe = probe;
  }

  // ---- lookahead ----

  kind(offset = 0): TokenKind {
    return this.tokens.kinds[this.index + offset] ?? TokenKind.End;
  }

  /** Returns the upper-case word or the mark; empty for other tokens. */
  value(offset = 0): string {
    return this.tokens.values[this.index + offset] ?? '';
  }

  /** Returns a token as written. */
  written(offset = 0): string {
    return this.text.slice(this.start(offset), this.end(offset));
  }

  start(offset = 0): number {
    return this.tokens.starts[this.index + offset] ?? this.text.length;
  }

  end(offset = 0): number {
    return this.tokens.ends[this.index + offset] ?? this.text.length;
  }

  /** Consumes the rows of plain literals at the current token; returns `null` if there are none. */
  takePlainRows(): PlainRows | null {
    const { rows } = this.tokens;
    if (this.kind() !== TokenKind.Rows || rows === null) {
      return null;
    }
    this.advance();
    const { start, end } = rows;
    return { text: this.text.slice(start, end), rows: rows.rows, span: { start, end } };
  }

  /** Returns the end of the previous token. */
  lastEnd(): number {
    return this.index === 0 ? 0 : this.end(-1);
  }

  atEnd(): boolean {
    return this.kind() === TokenKind.End;
  }

  /**
   * Returns whether the next tokens are these words and marks, and records that they are valid
   * here.
   */
  at(...values: readonly string[]): boolean {
    for (let offset = 0; offset < values.length; offset += 1) {
      if (this.probe !== null && this.index + offset === this.probe.index) {
        this.probe.keywords.add(values[offset] ?? '');
      }
      if (this.kind(offset) > WORD_OR_MARK_MAX || this.value(offset) !== values[offset]) {
        return false;
      }
    }
    return true;
  }

  /**
   * Like `at`, but does not record the word as valid. It is used to choose an error message or to
   * resolve an ambiguity.
   */
  sees(value: string, next = ''): boolean {
    if (this.kind() > WORD_OR_MARK_MAX || this.value() !== value) {
      return false;
    }
    return next === '' || this.value(1) === next;
  }

  /**
   * Records words that are valid here but are looked up in a table instead of being tested
   * individually.
   */
  suggest(words: Iterable<string>): void {
    if (this.probe?.index !== this.index) {
      return;
    }
    for (const word of words) {
      this.probe.keywords.add(word);
    }
  }

  /** Records that a grammar element, such as a name or an expression, is valid here. */
  suggestContext(context: ProbeContext): void {
    if (this.probe !== null && this.index === this.probe.index) {
      this.probe.contexts.add(context);
    }
  }

  atAnyOf(words: ReadonlySet<string>, offset = 0): boolean {
    return this.kind(offset) === TokenKind.Word && words.has(this.value(offset));
  }

  atReserved(offset = 0): boolean {
    return this.atAnyOf(RESERVED, offset);
  }

  // ---- moving ----

  advance(count = 1): void {
    this.index = Math.min(this.index + count, this.tokens.kinds.length - 1);
  }

  /** Consumes these words and marks if they are the next tokens. */
  take(...values: readonly string[]): boolean {
    if (!this.at(...values)) {
      return false;
    }
    this.advance(values.length);
    return true;
  }

  expect(value: string, message = `'${value.toLowerCase()}' expected`): void {
    if (!this.take(value)) {
      this.fail(message);
    }
  }

  /** Parses a comma-separated list. */
  list<T>(member: () => T): T[] {
    const start = this.start();
    const members = [member()];
    while (this.take(',')) {
      this.countTerm(members.length, start);
      members.push(member());
    }
    return members;
  }

  /** `( a, b )`. */
  parenthesised<T>(member: () => T): T[] {
    const open = this.start();
    this.expect('(');
    const members = this.list(member);
    this.close(open);
    return members;
  }

  /** Consumes the closing parenthesis for `open`, or fails. */
  close(open: number): void {
    if (this.take(')')) {
      return;
    }
    if (this.atEnd()) {
      this.failAt('unbalanced (', open, open + 1);
    }
    if (this.kind() === TokenKind.Mark) {
      this.fail(`unexpected token [${this.written()}]`);
    }
    this.fail('dangling literal');
  }

  // ---- names ----

  /**
   * Parses a name, which is an unreserved word or a quoted name. Any other token fails with
   * `missing`.
   */
  name(missing: string, context: ProbeContext = 'name'): Name {
    this.suggestContext(context);
    const kind = this.kind();
    if (kind === TokenKind.Quoted) {
      return this.takeName(true);
    }
    if (kind === TokenKind.Word) {
      if (this.atReserved()) {
        this.failReserved();
      }
      return this.takeName(false);
    }
    if (kind >= TokenKind.Integer && kind <= TokenKind.Duration) {
      this.fail("identifier should start with a letter or '_'");
    }
    return this.fail(missing);
  }

  /** Parses a column name or an alias in a position where no keyword is valid. */
  columnName(missing: string): Name {
    if (!this.atAnyOf(COLUMN_WORDS)) {
      return this.name(missing);
    }
    this.suggestContext('name');
    return { ...this.takeName(false), quoted: true };
  }

  /**
   * Returns whether a reserved word is a column name here, because the next token does not make it
   * a keyword.
   */
  atColumnWord(): boolean {
    const isOfCase = this.openCases > 0 && this.atAnyOf(CASE_WORDS);
    const isWord = this.atAnyOf(COLUMN_WORDS) && !isOfCase;
    return isWord && !this.atAnyOf(AFTER_COLUMN_WORDS, 1) && !this.atAnyOf(COLUMN_WORDS, 1);
  }

  /**
   * Parses a table or view name, optionally in single quotes. PostgreSQL clients qualify it with a
   * database and a schema. The schema `public` contains every table; other schemas are part of the
   * name.
   */
  tableName(missing: string): Name {
    if (this.kind() === TokenKind.String) {
      return this.takeName(true);
    }
    const names = [this.name(missing, 'table')];
    while (this.atNextName()) {
      this.advance();
      names.push(this.takeName(this.kind() === TokenKind.Quoted));
    }
    const [first, ...remaining] = names;
    if (first === undefined || remaining.length === 0) {
      return first ?? this.fail(missing);
    }
    const named = names.length > 2 && first.text.toLowerCase() === DATABASE ? remaining : names;
    const [schema = first, table] = named;
    const known = schema.text.toLowerCase();
    if (table === undefined || named.length > 2 || !(known === 'public' || SCHEMAS.has(known))) {
      const { start, end } = first.span;
      return this.failAt(
        `schema '${schema.text}' does not exist; all tables are in public`,
        start,
        end,
      );
    }
    return {
      text: known === 'public' ? table.text : `${schema.text}.${table.text}`,
      quoted: names.some((name) => name.quoted),
      span: { start: first.span.start, end: table.span.end },
    };
  }

  /** Returns whether another component of a dotted name follows. */
  private atNextName(): boolean {
    return this.at('.') && (this.kind(1) === TokenKind.Word || this.kind(1) === TokenKind.Quoted);
  }

  /** Parses `a.b.c` as a single name. */
  qualified(first: Name): Name {
    let name = first;
    while (this.atNextName()) {
      this.advance();
      const next = this.takeName(this.kind() === TokenKind.Quoted);
      name = {
        text: `${name.text}.${next.text}`,
        quoted: name.quoted || next.quoted,
        span: { start: name.span.start, end: next.span.end },
      };
    }
    return name;
  }

  /** Parses the name of a user or a volume, which may contain dots. */
  dottedName(missing: string): Name {
    const isText = this.kind() === TokenKind.String;
    return this.qualified(isText ? this.takeName(true) : this.name(missing, 'table'));
  }

  /** Consumes the current token as a name, whatever kind of token it is. */
  takeName(quoted: boolean): Name {
    const text = quoted ? this.unquoted() : this.written();
    const span = { start: this.start(), end: this.end() };
    this.advance();
    return { text, quoted, span };
  }

  /** Returns a token without its quotes, with doubled quotes replaced. */
  unquoted(): string {
    return unquote(this.written());
  }

  // ---- building ----

  /** Adds a node; its height is derived from the heights of `children`. */
  add(node: Node, start: number, end: number, ...children: readonly (NodeId | null)[]): NodeId {
    let height = 0;
    for (const child of children) {
      if (child !== null) {
        height = Math.max(height, (this.heights[child] ?? 0) + 1);
      }
    }
    if (height > MAX_HEIGHT) {
      this.failAt('statement is nested too deeply', start, end);
    }
    this.nodes.push(node);
    this.spans.push({ start, end });
    this.heights.push(height);
    return this.nodes.length - 1;
  }

  node(id: NodeId): Node {
    const node = this.nodes[id];
    if (node === undefined) {
      throw new RangeError(`no node ${id}`);
    }
    return node;
  }

  spanOf(id: NodeId): Span {
    return this.spans[id] ?? { start: 0, end: 0 };
  }

  nextQuestionMark(): number {
    this.questionMarks += 1;
    return this.questionMarks;
  }

  /** Runs a production one nesting level deeper. */
  nested<T>(production: () => T): T {
    this.depth += 1;
    if (this.depth > MAX_NESTING) {
      this.fail(`statement is nested too deeply [max=${MAX_NESTING}]`);
    }
    const result = production();
    this.depth -= 1;
    return result;
  }

  /** Runs the production for a CASE, in which ELSE, THEN and WHEN are keywords. */
  inCase<T>(production: () => T): T {
    this.openCases += 1;
    const result = this.nested(production);
    this.openCases -= 1;
    return result;
  }

  /** Enforces the limit on chains and lists; `count` is the current number of members. */
  countTerm(count: number, start: number): void {
    if (count >= MAX_TERMS) {
      this.failAt(`too many terms [max=${MAX_TERMS}]`, start, this.lastEnd());
    }
  }

  tree(root: NodeId): Tree {
    return { nodes: this.nodes, spans: this.spans, root };
  }

  // ---- failing ----

  /** Fails at the current token. */
  fail(message: string): never {
    this.failAt(message, this.start(), this.end());
  }

  /** Fails at the current token or, at the end of the text, at the last token. */
  failAtNearestToken(message: string): never {
    if (this.atEnd() && this.index > 0) {
      this.failAt(message, this.start(-1), this.end(-1));
    }
    this.fail(message);
  }

  failAt(message: string, start: number, end: number, code: ParseErrorCode = 'Syntax'): never {
    throw new SyntaxError_(message, start, end, code);
  }

  failReserved(): never {
    this.fail(
      'table and column names that are SQL keywords have to be enclosed in double quotes, ' +
        `such as "${this.written()}"`,
    );
  }
}
