/**
 * Parses the scripts of PostgreSQL's regression tests: statements, COPY data, and the psql commands
 * that affect them. The expected results come from a PostgreSQL server that runs the same script.
 */
import { existsSync, readFileSync } from 'node:fs';

import type { Position } from './records.js';

export interface ScriptStatement {
  readonly at: Position;
  readonly sql: string;
  readonly copyData?: string;
  /** Whether a psql command consumes the result: `\gset`, `\gexec`. */
  readonly isReadByPsql: boolean;
}

/** Matches a literal, a quoted name or a comment at an offset. */
const OPAQUE = new RegExp(
  '(?:' +
    [
      String.raw`[eE]'(?:[^'\\]|\\.|'')*'`,
      String.raw`'(?:[^']|'')*'`,
      String.raw`"(?:[^"]|"")*"`,
      String.raw`--[^\n]*`,
      String.raw`\/\*[\s\S]*?\*\/`,
      String.raw`(\$\w*\$)[\s\S]*?\1`,
    ].join('|') +
    ')',
  'y',
);

export class PsqlScript {
  readonly #file: string;
  readonly #text: string;
  readonly #variables: Map<string, string>;
  #position = 0;
  /** Line number at the offset up to which line breaks have been counted. */
  #line = 1;
  #counted = 0;

  constructor(file: string, folder: string) {
    this.#file = file;
    this.#text = readFileSync(file, 'utf8');
    this.#variables = new Map([['abs_srcdir', folder]]);
  }

  *statements(): Generator<ScriptStatement> {
    let buffer = '';
    let depth = 0;
    let line = 1;
    while (this.#position < this.#text.length) {
      OPAQUE.lastIndex = this.#position;
      const [opaque] = OPAQUE.exec(this.#text) ?? [];
      const character = this.#text.charAt(this.#position);
      if (buffer.trim() === '') {
        buffer = '';
        line = this.#lineNumber();
      }
      if (opaque !== undefined) {
        buffer += opaque.startsWith('--') || opaque.startsWith('/*') ? ' ' : opaque;
        this.#position += opaque.length;
      } else if (character === '\\' && this.#text[this.#position + 1] !== ';') {
        const command = this.#remainderOfLine();
        this.#set(command);
        if (command.startsWith('\\g') && buffer.trim() !== '') {
          yield this.#statement(buffer, line, command.trim() !== '\\g');
        }
        buffer = /^\\(?:g|crosstab|r\b|watch)/.test(command) ? '' : buffer;
      } else if (character === ';' && depth === 0) {
        this.#position += 1;
        yield this.#statement(buffer, line, false);
        buffer = '';
      } else {
        depth = Math.max(0, depth + (character === '(' ? 1 : character === ')' ? -1 : 0));
        buffer += character;
        this.#position += 1;
      }
    }
  }

  #lineNumber(): number {
    this.#line += this.#text.slice(this.#counted, this.#position).split('\n').length - 1;
    this.#counted = this.#position;
    return this.#line;
  }

  #remainderOfLine(): string {
    const end = this.#text.indexOf('\n', this.#position);
    const text = this.#text.slice(this.#position, end < 0 ? undefined : end);
    this.#position = end < 0 ? this.#text.length : end + 1;
    return text;
  }

  #set(command: string): void {
    const [, name, value = ''] = /^\\set\s+(\w+)\s*(.*)$/.exec(command) ?? [];
    if (name !== undefined) {
      const parts = [...this.#substituted(value).matchAll(/'((?:[^']|'')*)'|(\S+)/g)];
      this.#variables.set(name, parts.map(([, quoted, bare = '']) => quoted ?? bare).join(''));
    }
  }

  /** Replaces `:name`, `:'name'` and `:"name"` for known variables. */
  #substituted(text: string): string {
    return text.replace(/(?<!:):(['"]?)(\w+)\1/g, (match, quote: string, name: string) => {
      const value = this.#variables.get(name);
      return value === undefined ? match : `${quote}${value}${quote}`;
    });
  }

  #statement(buffer: string, line: number, isReadByPsql: boolean): ScriptStatement {
    const sql = this.#substituted(buffer.trim());
    const at = { file: this.#file, line };
    const [, head, file] = /^(copy\s.*?\sfrom\s+)'([^']+)'\s*$/is.exec(sql) ?? [];
    if (head !== undefined && file !== undefined && existsSync(file)) {
      const copyData = readFileSync(file, 'utf8');
      return { at, sql: `${head} STDIN`, copyData, isReadByPsql };
    }
    return /^copy\s.*\sfrom\s+stdin\b/is.test(sql)
      ? { at, sql, copyData: this.#inlineData(), isReadByPsql }
      : { at, sql, isReadByPsql };
  }

  /** Returns the lines after COPY … FROM STDIN, up to `\.`. */
  #inlineData(): string {
    this.#remainderOfLine();
    const lines: string[] = [];
    while (this.#position < this.#text.length) {
      const line = this.#remainderOfLine();
      if (line === '\\.') {
        break;
      }
      lines.push(line);
    }
    return lines.map((line) => `${line}\n`).join('');
  }
}
