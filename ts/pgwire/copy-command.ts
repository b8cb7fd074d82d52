/**
 * COPY … FROM STDIN and COPY … TO STDOUT, in PostgreSQL's present and older forms. COPY from and to
 * files of the server is a statement of the engine and not read here.
 */
import { scan, type Tokens, TokenKind } from '../session/index.js';
import { unquoted } from './cursor-commands.js';
import { ProtocolError } from './protocol-error.js';

export interface CopyOptions {
  readonly format: 'text' | 'csv' | 'binary';
  readonly delimiter: string;
  /** What stands for null. */
  readonly nullText: string;
  /** `match`: the names must be those of the columns. */
  readonly header: boolean | 'match';
  readonly quote: string;
  readonly escape: string;
  /** Columns, or all for `*`. */
  readonly forceQuote: readonly string[];
  readonly forceNotNull: readonly string[];
  readonly forceNull: readonly string[];
}

export type CopyCommand =
  | {
      readonly direction: 'in';
      readonly table: string;
      /** Null: all of the table's, in its order. */
      readonly columns: readonly string[] | null;
      readonly options: CopyOptions;
    }
  | {
      readonly direction: 'out';
      readonly query: string;
      /** Where `query` begins in the statement; -1 when it is not in there. */
      readonly start: number;
      readonly options: CopyOptions;
    };

type Draft = { -readonly [K in keyof CopyOptions]?: CopyOptions[K] };

const ALL = '*';
const TRUE: ReadonlySet<string> = new Set(['TRUE', 'ON', '1']);
const FALSE: ReadonlySet<string> = new Set(['FALSE', 'OFF', '0']);

/** The COPY over the connection that a text is, or null. */
export function copyCommand(text: string): CopyCommand | null {
  if (!/^copy\b/i.test(text) || !/\b(?:stdin|stdout)\b/i.test(text)) {
    return null;
  }
  return new CopyParser(text).command();
}

/** A name as SQL. */
export function quotedName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

class CopyParser {
  private readonly text: string;
  private readonly tokens: Tokens;
  private at = 1;
  private readonly options: Draft = {};

  constructor(text: string) {
    this.text = text;
    this.tokens = scan(text);
  }

  command(): CopyCommand | null {
    if (this.take('BINARY')) {
      this.options.format = 'binary';
    }
    const source = this.source();
    const isIn = this.take('FROM');
    if (!isIn && !this.take('TO')) {
      return null;
    }
    if (!this.take(isIn ? 'STDIN' : 'STDOUT')) {
      return null;
    }
    this.readOptions();
    if (this.take('WHERE')) {
      throw new ProtocolError('0A000', 'COPY … FROM STDIN takes no WHERE');
    }
    if (this.kind() !== TokenKind.End) {
      throw this.unexpected('the end of COPY');
    }
    const options = complete(this.options);
    if (isIn) {
      if (source.query !== null) {
        throw this.unexpected('a table, not a query,');
      }
      return { direction: 'in', table: source.table, columns: source.columns, options };
    }
    if (source.query !== null) {
      return { direction: 'out', ...source.query, options };
    }
    const columns = source.columns?.map(quotedName).join(', ') ?? ALL;
    const query = `SELECT ${columns} FROM ${quotedName(source.table)}`;
    return { direction: 'out', query, start: -1, options };
  }

  private source(): {
    readonly table: string;
    readonly columns: readonly string[] | null;
    readonly query: { readonly query: string; readonly start: number } | null;
  } {
    if (this.take('(')) {
      const start = this.start();
      const query = this.text.slice(start, this.closing());
      return { table: '', columns: null, query: { query, start } };
    }
    let table = this.name();
    while (this.take('.')) {
      table = this.name();
    }
    return { table, columns: this.see('(') ? this.names() : null, query: null };
  }

  /** Passes the parenthesis that closes an open one; answers where it is. */
  private closing(): number {
    for (let depth = 1; this.kind() !== TokenKind.End; this.at += 1) {
      if (this.see('(')) {
        depth += 1;
      } else if (this.see(')')) {
        depth -= 1;
        if (depth === 0) {
          const place = this.start();
          this.at += 1;
          return place;
        }
      }
    }
    throw this.unexpected("')'");
  }

  // ---- options ----

  private readOptions(): void {
    this.take('WITH');
    if (this.take('(')) {
      do {
        this.option();
      } while (this.take(','));
      if (!this.take(')')) {
        throw this.unexpected("',' or ')'");
      }
      return;
    }
    while (this.oldOption()) {
      // Each passes its own words.
    }
  }

  /** `FORMAT csv`, `HEADER`, `FORCE_QUOTE (a, b)`. */
  private option(): void {
    const name = this.value();
    this.at += 1;
    switch (name) {
      case 'FORMAT':
        this.options.format = this.format();
        break;
      case 'HEADER':
        this.options.header = this.take('MATCH') ? 'match' : this.flag();
        break;
      case 'FREEZE':
        this.flag();
        break;
      case 'ENCODING':
        this.encoding();
        break;
      case 'FORCE_QUOTE':
        this.options.forceQuote = this.take(ALL) ? [ALL] : this.names();
        break;
      case 'FORCE_NOT_NULL':
        this.options.forceNotNull = this.take(ALL) ? [ALL] : this.names();
        break;
      case 'FORCE_NULL':
        this.options.forceNull = this.take(ALL) ? [ALL] : this.names();
        break;
      default:
        this.textOption(name);
    }
  }

  private textOption(name: string): void {
    switch (name) {
      case 'DELIMITER':
      case 'DELIMITERS':
        this.options.delimiter = this.string();
        break;
      case 'NULL':
        this.options.nullText = this.string();
        break;
      case 'QUOTE':
        this.options.quote = this.string();
        break;
      case 'ESCAPE':
        this.options.escape = this.string();
        break;
      default:
        throw new ProtocolError('42601', `option "${name.toLowerCase()}" not recognized`);
    }
  }

  /** `WITH BINARY`, `CSV HEADER`, `DELIMITER AS '|'`, `FORCE QUOTE a, b`; false at the end. */
  private oldOption(): boolean {
    const name = this.value();
    if (name === 'USING') {
      this.at += 1;
      return true;
    }
    if (this.kind() !== TokenKind.Word || name === 'WHERE') {
      return false;
    }
    this.at += 1;
    if (name === 'BINARY' || name === 'CSV') {
      this.options.format = name === 'CSV' ? 'csv' : 'binary';
    } else if (name === 'HEADER') {
      this.options.header = true;
    } else if (name === 'FORCE') {
      this.oldForce();
    } else if (name !== 'FREEZE') {
      this.take('AS');
      this.textOption(name);
    }
    return true;
  }

  private oldForce(): void {
    if (this.take('QUOTE')) {
      this.options.forceQuote = this.take(ALL) ? [ALL] : this.bareNames();
    } else if (this.take('NOT') && this.take('NULL')) {
      this.options.forceNotNull = this.bareNames();
    } else if (this.take('NULL')) {
      this.options.forceNull = this.bareNames();
    } else {
      throw this.unexpected('QUOTE, NULL or NOT NULL');
    }
  }

  private format(): CopyOptions['format'] {
    const word = unquoted(this.kind() === TokenKind.String ? this.string() : this.name());
    if (word === 'text' || word === 'csv' || word === 'binary') {
      return word;
    }
    const message = `COPY format "${word}" not recognized: expected text, csv or binary`;
    throw new ProtocolError('22023', message);
  }

  private flag(): boolean {
    const written = this.kind() === TokenKind.String ? this.string().toUpperCase() : this.word();
    if (written === '' || TRUE.has(written)) {
      return true;
    }
    if (FALSE.has(written)) {
      return false;
    }
    throw new ProtocolError('42601', `a Boolean expected, found "${written}"`);
  }

  private encoding(): void {
    const encoding = this.string();
    if (!/^utf-?8$/i.test(encoding)) {
      throw new ProtocolError('0A000', `encoding "${encoding}": only UTF8 is supported`);
    }
  }

  // ---- tokens ----

  private kind(): TokenKind {
    return this.tokens.kinds[this.at] ?? TokenKind.End;
  }

  private value(): string {
    return this.tokens.values[this.at] ?? '';
  }

  private start(): number {
    return this.tokens.starts[this.at] ?? this.text.length;
  }

  private written(): string {
    return this.text.slice(this.start(), this.tokens.ends[this.at]);
  }

  private see(value: string): boolean {
    return this.value() === value && this.kind() !== TokenKind.Bad;
  }

  private take(value: string): boolean {
    const found = this.see(value);
    if (found) {
      this.at += 1;
    }
    return found;
  }

  /** The word or number here, in capitals; empty for anything else. */
  private word(): string {
    const kind = this.kind();
    if (kind !== TokenKind.Word && kind !== TokenKind.Integer) {
      return '';
    }
    const word = this.written().toUpperCase();
    this.at += 1;
    return word;
  }

  /** A name: as it is written but for its quotes. */
  private name(): string {
    const kind = this.kind();
    if (kind !== TokenKind.Word && kind !== TokenKind.Quoted && kind !== TokenKind.String) {
      throw this.unexpected('a name');
    }
    const written = this.written();
    this.at += 1;
    const quote = written.charAt(0);
    return kind === TokenKind.Word
      ? written
      : written.slice(1, -1).replaceAll(quote + quote, quote);
  }

  private names(): string[] {
    if (!this.take('(')) {
      throw this.unexpected("'('");
    }
    const names = this.bareNames();
    if (!this.take(')')) {
      throw this.unexpected("',' or ')'");
    }
    return names;
  }

  private bareNames(): string[] {
    const names = [this.name()];
    while (this.take(',')) {
      names.push(this.name());
    }
    return names;
  }

  /** `'…'` or `E'…'`. */
  private string(): string {
    const isEscaped = this.see('E') && this.text.charAt(this.tokens.ends[this.at] ?? 0) === "'";
    this.at += isEscaped ? 1 : 0;
    if (this.kind() !== TokenKind.String) {
      throw this.unexpected('a quoted text');
    }
    const body = this.written().slice(1, -1).replaceAll("''", "'");
    this.at += 1;
    return isEscaped ? unescaped(body) : body;
  }

  private unexpected(expected: string): ProtocolError {
    const found = this.kind() === TokenKind.End ? 'the end' : `"${this.written()}"`;
    return new ProtocolError('42601', `${expected} expected in COPY, found ${found}`);
  }
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

/** Options with the defaults of their format, or why they do not go together. */
function complete(draft: Draft): CopyOptions {
  const format = draft.format ?? 'text';
  const isCsv = format === 'csv';
  const quote = draft.quote ?? '"';
  const options: CopyOptions = {
    format,
    delimiter: draft.delimiter ?? (isCsv ? ',' : '\t'),
    nullText: draft.nullText ?? (isCsv ? '' : '\\N'),
    header: draft.header ?? false,
    quote,
    escape: draft.escape ?? quote,
    forceQuote: draft.forceQuote ?? [],
    forceNotNull: draft.forceNotNull ?? [],
    forceNull: draft.forceNull ?? [],
  };
  const refuse = (condition: boolean, sqlState: string, message: string): void => {
    if (condition) {
      throw new ProtocolError(sqlState, message);
    }
  };
  const onlyCsv = ['quote', 'escape', 'forceQuote', 'forceNotNull', 'forceNull'] as const;
  for (const name of onlyCsv) {
    refuse(draft[name] !== undefined && !isCsv, '0A000', `COPY ${name} is for the CSV format only`);
  }
  const isBinary = format === 'binary';
  const ofText = draft.delimiter ?? draft.nullText;
  refuse(
    isBinary && ofText !== undefined,
    '42601',
    'DELIMITER and NULL have no place in BINARY mode',
  );
  refuse(isBinary && options.header !== false, '0A000', 'HEADER has no place in BINARY mode');
  for (const name of ['delimiter', 'quote', 'escape'] as const) {
    const isByte = /^[\0-\x7f]$/.test(options[name]) && !/[\r\n]/.test(options[name]);
    refuse(!isByte, '22023', `COPY ${name} must be a single one-byte character`);
  }
  refuse(/[\r\n]/.test(options.nullText), '22023', 'COPY null cannot hold a line end');
  const isLetter = !isCsv && /[\\.a-z0-9]/.test(options.delimiter);
  refuse(isLetter, '22023', `COPY delimiter cannot be "${options.delimiter}"`);
  refuse(isCsv && options.delimiter === quote, '22023', 'COPY delimiter and quote must differ');
  const isMixed = !isBinary && options.nullText.includes(options.delimiter);
  refuse(isMixed, '22023', 'COPY delimiter must not appear in the NULL specification');
  return options;
}

/** Whether a list of columns names one of them. */
export function names(list: readonly string[], column: string): boolean {
  return list.some((name) => name === ALL || name.toLowerCase() === column.toLowerCase());
}
