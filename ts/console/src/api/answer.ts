/**
 * Incremental parser for `/exec` responses. It does not access the network.
 *
 * The body is `{"query":…,"columns":[…],"timestamp":n,"dataset":[row,…],"count":n,…}`. The parser
 * is in one of three states: *head* (before the rows), *rows*, *tail*. It returns each row as soon
 * as the row is complete. A large result therefore shows its first page immediately, and a
 * cancelled query keeps the rows that have arrived.
 */
import { texts } from '../texts.js';

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly dim?: number;
  readonly elemType?: string;
}

export type Value = string | number | boolean | null | readonly Value[];
export type Row = readonly Value[];

export interface AnswerHead {
  readonly query: string;
  readonly columns: readonly Column[];
  /** Index of the designated timestamp column, or -1 if there is none. */
  readonly timestamp: number;
}

/** Durations in nanoseconds, as measured by the server. */
interface Timings {
  readonly authentication?: number;
  readonly compiler?: number;
  readonly execute?: number;
  readonly count?: number;
}

export interface AnswerTail {
  readonly count?: number;
  /** True if reading stopped early, so that the result has more rows than `count`. */
  readonly isCut?: boolean;
  readonly timings?: Timings;
  readonly ddl?: string;
  readonly dml?: string;
  readonly updated?: number;
  readonly notice?: string;
  readonly error?: string;
  readonly position?: number | string;
}

// JSON escapes quotes inside strings, so this sequence can never be part of a string.
const ROWS_BEGIN = ',"dataset":[';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = 0x5b;
const CLOSE = 0x5d;

export class AnswerReader {
  #state: 'head' | 'rows' | 'tail' = 'head';
  #buffer = '';
  #scanned = 0;
  #depth = 0;
  #inString = false;
  #head: AnswerHead | undefined;

  /** The query and its columns, or `undefined` until they have arrived. */
  get head(): AnswerHead | undefined {
    return this.#head;
  }

  /** True while the parser expects more rows. */
  get inRows(): boolean {
    return this.#state === 'rows';
  }

  /** Parses the next chunk of text and returns the rows that are now complete. */
  feed(text: string): Row[] {
    this.#buffer += text;
    if (this.#state === 'head') {
      this.#readHead();
    }
    return this.#state === 'rows' ? this.#readRows() : [];
  }

  /** Parses the fields after the rows, or the whole response if it has no rows. */
  finish(): AnswerTail {
    if (this.#state === 'rows') {
      throw new SyntaxError(texts.server.endedInsideRows);
    }
    const rest = this.#buffer;
    const text = this.#state === 'tail' ? `{${rest.replace(/^\s*,/, '')}` : rest;
    return parseObject(text) as AnswerTail;
  }

  #readHead(): void {
    const at = this.#buffer.indexOf(ROWS_BEGIN);
    if (at < 0) {
      return;
    }
    const head = parseObject(this.#buffer.slice(0, at) + '}') as Partial<AnswerHead>;
    this.#head = {
      query: head.query ?? '',
      columns: head.columns ?? [],
      timestamp: head.timestamp ?? -1,
    };
    this.#buffer = this.#buffer.slice(at + ROWS_BEGIN.length);
    this.#state = 'rows';
  }

  #readRows(): Row[] {
    const text = this.#buffer;
    let wholeEnd = 0;
    for (let index = this.#scanned; index < text.length; index++) {
      const code = text.charCodeAt(index);
      if (this.#inString) {
        // An escape sequence includes the next character. If a chunk ends with a backslash, wait
        // for the next chunk.
        if (code === BACKSLASH) {
          if (index + 1 === text.length) {
            return this.#takeRows(wholeEnd, index);
          }
          index++;
        } else if (code === QUOTE) {
          this.#inString = false;
        }
      } else if (code === QUOTE) {
        this.#inString = true;
      } else if (code === OPEN) {
        this.#depth++;
      } else if (code === CLOSE) {
        if (this.#depth === 0) {
          return this.#endRows(wholeEnd, index);
        }
        this.#depth--;
        if (this.#depth === 0) {
          wholeEnd = index + 1;
        }
      }
    }
    return this.#takeRows(wholeEnd, text.length);
  }

  /**
   * Parses the complete rows and removes them from the buffer. The next scan resumes at the same
   * character.
   */
  #takeRows(wholeEnd: number, scanned: number): Row[] {
    const rows = parseRows(this.#buffer.slice(0, wholeEnd));
    this.#buffer = this.#buffer.slice(wholeEnd);
    this.#scanned = scanned - wholeEnd;
    return rows;
  }

  #endRows(wholeEnd: number, closeAt: number): Row[] {
    const rows = parseRows(this.#buffer.slice(0, wholeEnd));
    this.#buffer = this.#buffer.slice(closeAt + 1);
    this.#state = 'tail';
    return rows;
  }
}

function parseRows(text: string): Row[] {
  const list = text.replace(/^\s*,/, '');
  return list === '' ? [] : (JSON.parse(`[${list}]`) as Row[]);
}

function parseObject(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SyntaxError(texts.server.notJsonObject);
  }
  return value;
}
