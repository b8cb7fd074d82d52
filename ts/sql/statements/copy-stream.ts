/** COPY over the connection, and its options. */
import { TokenKind } from '../lexer/lexer.js';
import type { Parser } from '../parser/parser.js';
import type { StatementText } from '../lexer/split.js';

/** Options that the statement specifies; others are absent. */
export interface CopyStreamOptions {
  readonly format?: string;
  readonly delimiter?: string;
  /** The string that represents null. */
  readonly nullText?: string;
  /** Whether there is a header. With `match`, its names must match the columns. */
  readonly header?: boolean | 'match';
  readonly quote?: string;
  readonly escape?: string;
  readonly encoding?: string;
  /** Column names, or `*` for all columns. */
  readonly forceQuote?: readonly string[];
  readonly forceNotNull?: readonly string[];
  readonly forceNull?: readonly string[];
  /** Whether the statement has a WHERE clause. */
  readonly where?: boolean;
}

interface CopiedTable {
  readonly table: string;
  /** Columns to copy; `null` for all columns in table order. */
  readonly columns: readonly string[] | null;
}

export type CopyStream =
  | ({ readonly kind: 'CopyIn'; readonly options: CopyStreamOptions } & CopiedTable)
  | {
      readonly kind: 'CopyOut';
      readonly source: CopiedTable | StatementText;
      readonly options: CopyStreamOptions;
    };

type Draft = { -readonly [K in keyof CopyStreamOptions]?: CopyStreamOptions[K] };

const ALL = '*';
const TRUE: ReadonlySet<string> = new Set(['TRUE', 'ON', '1']);
const FALSE: ReadonlySet<string> = new Set(['FALSE', 'OFF', '0']);

/** Either word denotes the connection, in both directions. */
const STREAMS = ['STDIN', 'STDOUT'] as const;

/** Parses the statement after COPY; returns `null` if it does not copy over the connection. */
export function parseCopyStream(p: Parser): CopyStream | null {
  const options: Draft = {};
  if (p.at('BINARY') && p.value(1) !== 'FROM' && p.value(1) !== 'TO') {
    p.advance();
    options.format = 'binary';
  }
  const source = copied(p);
  const isIn = STREAMS.some((stream) => p.take('FROM', stream));
  if (source === null || (!isIn && !STREAMS.some((stream) => p.take('TO', stream)))) {
    return null;
  }
  readOptions(p, options);
  if (p.take('WHERE')) {
    options.where = true;
    p.advance(Number.MAX_SAFE_INTEGER);
  }
  if (!isIn) {
    return { kind: 'CopyOut', source, options };
  }
  return 'table' in source
    ? { kind: 'CopyIn', ...source, options }
    : p.fail('COPY … FROM STDIN expects a table, not a query');
}

/**
 * Parses the table or query. Returns `null` if it is invalid, so that the parser for COPY with
 * files reports the error.
 */
function copied(p: Parser): CopiedTable | StatementText | null {
  if (p.at('(')) {
    return query(p);
  }
  if (!isName(p)) {
    return null;
  }
  let table = name(p);
  while (p.take('.')) {
    table = name(p);
  }
  return { table, columns: p.at('(') ? names(p) : null };
}

function query(p: Parser): StatementText | null {
  p.advance();
  const start = p.start();
  let depth = 1;
  while (!p.atEnd()) {
    depth += p.at('(') ? 1 : p.at(')') ? -1 : 0;
    if (depth === 0) {
      const text = p.text.slice(start, p.start());
      p.advance();
      return { text, start };
    }
    p.advance();
  }
  return null;
}

function readOptions(p: Parser, options: Draft): void {
  p.take('WITH');
  if (p.at('(')) {
    p.parenthesised(() => {
      option(p, options);
    });
    return;
  }
  while (oldOption(p, options)) {
    // The loop condition parses one option per iteration.
  }
}

/** Parses `FORMAT csv`, `HEADER` or `FORCE_QUOTE (a, b)`. */
function option(p: Parser, options: Draft): void {
  const start = p.start();
  const word = p.value();
  p.advance();
  switch (word) {
    case 'FORMAT':
      options.format = name(p).toLowerCase();
      break;
    case 'HEADER':
      options.header = p.take('MATCH') ? 'match' : flag(p);
      break;
    case 'FREEZE':
      flag(p);
      break;
    case 'ENCODING':
      options.encoding = text(p);
      break;
    case 'FORCE_QUOTE':
      options.forceQuote = p.take(ALL) ? [ALL] : names(p);
      break;
    case 'FORCE_NOT_NULL':
      options.forceNotNull = p.take(ALL) ? [ALL] : names(p);
      break;
    case 'FORCE_NULL':
      options.forceNull = p.take(ALL) ? [ALL] : names(p);
      break;
    default:
      textOption(p, options, word, start);
  }
}

function textOption(p: Parser, options: Draft, word: string, start: number): void {
  switch (word) {
    case 'DELIMITER':
    case 'DELIMITERS':
      options.delimiter = text(p);
      break;
    case 'NULL':
      options.nullText = text(p);
      break;
    case 'QUOTE':
      options.quote = text(p);
      break;
    case 'ESCAPE':
      options.escape = text(p);
      break;
    default:
      p.failAt(`COPY option "${word.toLowerCase()}" not recognized`, start, start);
  }
}

/**
 * Parses `BINARY`, `CSV HEADER`, `DELIMITER AS '|'` or `FORCE QUOTE a, b`; returns false if there
 * are no more options.
 */
function oldOption(p: Parser, options: Draft): boolean {
  if (p.take('USING')) {
    return true;
  }
  if (p.kind() !== TokenKind.Word || p.at('WHERE')) {
    return false;
  }
  const start = p.start();
  const word = p.value();
  p.advance();
  if (word === 'BINARY' || word === 'CSV') {
    options.format = word.toLowerCase();
  } else if (word === 'HEADER') {
    options.header = true;
  } else if (word === 'ENCODING') {
    options.encoding = text(p);
  } else if (word === 'FORCE') {
    oldForce(p, options);
  } else if (word !== 'FREEZE') {
    p.take('AS');
    textOption(p, options, word, start);
  }
  return true;
}

function oldForce(p: Parser, options: Draft): void {
  if (p.take('QUOTE')) {
    options.forceQuote = p.take(ALL) ? [ALL] : p.list(() => name(p));
  } else if (p.take('NOT', 'NULL')) {
    options.forceNotNull = p.list(() => name(p));
  } else if (p.take('NULL')) {
    options.forceNull = p.list(() => name(p));
  } else {
    p.fail("'quote', 'null' or 'not null' expected");
  }
}

/** Parses a boolean; true if it is omitted. */
function flag(p: Parser): boolean {
  if (p.at(',') || p.at(')')) {
    return true;
  }
  const word = (p.kind() === TokenKind.String ? p.unquoted() : p.written()).toUpperCase();
  if (!TRUE.has(word) && !FALSE.has(word)) {
    p.fail(`Boolean value expected, found "${word}"`);
  }
  p.advance();
  return TRUE.has(word);
}

function isName(p: Parser): boolean {
  const kind = p.kind();
  return kind === TokenKind.Word || kind === TokenKind.Quoted || kind === TokenKind.String;
}

/** Parses a name as written, without its quotes. */
function name(p: Parser): string {
  return isName(p) ? p.takeName(p.kind() !== TokenKind.Word).text : p.fail('name expected');
}

function names(p: Parser): readonly string[] {
  return p.parenthesised(() => name(p));
}

/** `'…'` or `E'…'`. */
function text(p: Parser): string {
  const isEscaped = p.at('E') && p.kind(1) === TokenKind.String && p.end() === p.start(1);
  p.advance(isEscaped ? 1 : 0);
  if (p.kind() !== TokenKind.String) {
    p.fail('quoted string expected');
  }
  const body = p.takeName(true).text;
  return isEscaped ? unescaped(body) : body;
}

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

function unescaped(body: string): string {
  return body.replace(/\\(?:x([0-9a-f]{1,2})|([0-7]{1,3})|(.))/gis, (_, hex, octal, other) => {
    if (hex !== undefined || octal !== undefined) {
      return String.fromCharCode(parseInt(String(hex ?? octal), hex === undefined ? 8 : 16) & 255);
    }
    return ESCAPES[String(other)] ?? String(other);
  });
}
