/**
 * Converts JSON to CSV for the reader. Rows are objects in sequence, with or without line ends
 * between them, or in an array. Arrays within an array are rows without names. The first objects
 * determine the columns. Nested values become JSON strings.
 */
import { ImportError } from '../import-error.js';
import { MAX_SAMPLE_BYTES } from '../limits.js';
import { peek } from './peek.js';

/** JSON input as comma-separated CSV. */
export interface JsonText {
  readonly content: AsyncIterable<Buffer>;
  /** Whether the first line of the CSV contains column names. */
  readonly header: boolean;
  /**
   * For each column, whether all sampled values are JSON strings. Such a column is not numeric even
   * if the values look like numbers.
   */
  readonly texts: readonly boolean[];
  /** Notes for the sender; complete once the input has been read. */
  readonly notes: () => readonly string[];
  /** Some of the keys that were omitted; complete once the input has been read. */
  readonly unknownKeys: () => readonly string[];
}

/** Maximum number of columns. It is limited because each row has a cell for every column. */
const MAX_KEYS = 10_000;
const SNIFFED_BYTES = 256;
const BEGINNING = /^\ufeff?\s*(?:\{\s*["}]|\[\s*[[{])/;
const CHUNK_CHARACTERS = 64 * 1024;
/** Matches numbers whose digits may exceed the precision of a JavaScript number. */
const MANY_DIGITS = /\d{16}/;

/** Converts input that starts like JSON to CSV; returns other input unchanged. */
export async function asCsv(
  content: AsyncIterable<Buffer>,
  itemsMax: number,
  isComplete: boolean,
): Promise<{ readonly content: AsyncIterable<Buffer>; readonly json: JsonText | null }> {
  const { head, all } = await peek(content, SNIFFED_BYTES);
  if (!BEGINNING.test(head.toString('utf8'))) {
    return { content: all, json: null };
  }
  const json = await convert(itemsOf(all, isComplete), itemsMax);
  return { content: json.content, json };
}

/**
 * A batch of rows from one chunk. Yielding rows individually would cost one event loop iteration
 * each.
 */
type Items = AsyncGenerator<{ readonly items: readonly Item[]; readonly bytes: number }>;

type Item = readonly unknown[] | Readonly<Record<string, unknown>>;

async function convert(items: Items, itemsMax: number): Promise<JsonText> {
  const sample: Item[] = [];
  let bytes = 0;
  while (sample.length < itemsMax && bytes < MAX_SAMPLE_BYTES) {
    const next = await items.next();
    if (next.done === true) {
      break;
    }
    for (const item of next.value.items) {
      sample.push(item);
    }
    ({ bytes } = next.value);
  }
  const columns = new Columns(sample.slice(0, itemsMax));
  return {
    content: columns.lines(sample, items),
    header: columns.names !== null,
    texts: columns.texts,
    notes: () => columns.notes(),
    unknownKeys: () => columns.unknownKeys(),
  };
}

class Columns {
  /** Column names; `null` if the rows are arrays. */
  readonly names: readonly string[] | null;
  readonly texts: readonly boolean[];
  readonly #known: ReadonlySet<string>;
  readonly #unknown = new Set<string>();

  constructor(sample: readonly Item[]) {
    const [first] = sample;
    if (first === undefined) {
      throw new ImportError('the JSON input has no rows');
    }
    const isNamed = !Array.isArray(first);
    const keys = [...new Set(sample.flatMap((item) => Object.keys(item)))];
    if (keys.length === 0 || keys.length > MAX_KEYS) {
      const limit = keys.length === 0 ? 'no' : `more than ${MAX_KEYS}`;
      throw new ImportError(`the JSON input has ${limit} columns`);
    }
    this.names = isNamed ? keys : null;
    this.#known = new Set(keys);
    this.texts = keys.map((key) => {
      const values = sample.map((item) => valueOf(item, key)).filter((value) => value !== null);
      return values.length > 0 && values.every(isText);
    });
  }

  async *lines(sample: Item[], remainder: Items): AsyncGenerator<Buffer> {
    let text = this.names === null ? '' : `${this.names.map(quoted).join(',')}\n`;
    for await (const items of both(sample.splice(0), remainder)) {
      for (const item of items) {
        text += this.#line(item);
        if (text.length > CHUNK_CHARACTERS) {
          yield Buffer.from(text);
          text = '';
        }
      }
    }
    yield Buffer.from(text);
  }

  #line(item: Item): string {
    if (Array.isArray(item) !== (this.names === null)) {
      throw new ImportError('the JSON input mixes objects and arrays as rows');
    }
    for (const key of Object.keys(item)) {
      if (!this.#known.has(key) && this.#unknown.size < SHOWN_KEYS) {
        this.#unknown.add(key);
      }
    }
    let line = '';
    for (const key of this.#known) {
      line += `${cellOf(valueOf(item, key))},`;
    }
    // A single null is written as quotes, because the reader would skip a blank line.
    return line === ',' ? '""\n' : `${line.slice(0, -1)}\n`;
  }

  unknownKeys(): readonly string[] {
    return [...this.#unknown];
  }

  notes(): readonly string[] {
    const keys = this.unknownKeys()
      .map((key) => `'${key}'`)
      .join(', ');
    return keys === '' ? [] : [`ignored because the first objects do not have these keys: ${keys}`];
  }
}

async function* both(first: readonly Item[], remainder: Items): AsyncGenerator<readonly Item[]> {
  yield first;
  for await (const { items } of remainder) {
    yield items;
  }
}

const SHOWN_KEYS = 10;

function isText(value: unknown): boolean {
  return typeof value === 'string' && !value.startsWith(EXACT);
}

function valueOf(item: Item, key: string): unknown {
  return Object.hasOwn(item, key) ? (item as Readonly<Record<string, unknown>>)[key] : null;
}

function cellOf(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value.startsWith(EXACT) ? value.slice(1) : quoted(value);
    case 'number':
    case 'boolean':
      return String(value);
    case 'object':
      return value === null ? '' : quoted(nestedText(value));
    default:
      return '';
  }
}

function nestedText(value: object): string {
  return written(value).replaceAll(/"\\u0000([\d.eE+-]+)"/g, '$1');
}

/**
 * Serialises a value. Thousands of nested levels would overflow the stack, which is reported as an
 * error in the input.
 */
function written(value: object): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) {
      throw new ImportError('a value in the JSON input is nested too deeply');
    }
    throw error;
  }
}

function quoted(text: string): string {
  return text.includes('"') ? `"${text.replaceAll('"', '""')}"` : `"${text}"`;
}

// ---- items ----

/** Marks a number whose original digits must be preserved. */
const EXACT = '\u0000';

function parseItem(text: string, number: number): Item {
  try {
    return JSON.parse(MANY_DIGITS.test(text) ? exactNumbers(text) : text) as Item;
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'unknown error';
    throw new ImportError(`row ${number} of the JSON input: ${reason}`);
  }
}

/** Converts numbers with many digits to marked strings. */
function exactNumbers(text: string): string {
  return text.replaceAll(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]{15,}/gs, (token) =>
    token.startsWith('"') ? token : `"\\u0000${token}"`,
  );
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN: ReadonlySet<number> = new Set([0x7b, 0x5b]);
const CLOSE: ReadonlySet<number> = new Set([0x7d, 0x5d]);

/** Yields the rows: objects or arrays. */
async function* itemsOf(content: AsyncIterable<Buffer>, isComplete: boolean): Items {
  const splitter = new ItemSplitter();
  let number = 0;
  let bytes = 0;
  for await (const chunk of content) {
    const items = Array.from(splitter.push(chunk), (text) => {
      number += 1;
      return parseItem(text, number);
    });
    bytes += chunk.length;
    yield { items, bytes };
  }
  if (isComplete) {
    splitter.finish(number);
  }
}

/** Splits a JSON stream into the JSON text of its rows. */
class ItemSplitter {
  /**
   * Bracket depth outside of rows: 1 inside the array that contains the rows, 0 without one, `null`
   * before the first byte.
   */
  #outer: number | null = null;
  #depth = 0;
  #inText = false;
  #escaped = false;
  /** The start of the current row, from earlier chunks. */
  #pending: Buffer[] = [];
  #pendingBytes = 0;

  *push(chunk: Buffer): Generator<string> {
    let start = 0;
    let at = 0;
    while (at < chunk.length) {
      if (this.#inText) {
        at = this.#skipText(chunk, at);
        continue;
      }
      const byte = chunk[at] ?? 0;
      if (byte === QUOTE) {
        this.#inText = true;
      } else if (OPEN.has(byte)) {
        if (this.#outer === null && byte === 0x5b) {
          this.#outer = 1;
          start = at + 1;
        } else if (this.#depth === (this.#outer ?? 0)) {
          this.#outer ??= 0;
          this.#checkSeparators(chunk.toString('latin1', start, at));
          start = at;
        }
        this.#depth += 1;
      } else if (CLOSE.has(byte)) {
        this.#depth -= 1;
        if (this.#depth === this.#outer) {
          yield this.#drain(chunk.subarray(start, at + 1));
          start = at + 1;
        }
      }
      at += 1;
    }
    this.#buffer(chunk.subarray(start));
  }

  /** Skips to the end of a string, or of the chunk. */
  #skipText(chunk: Buffer, from: number): number {
    let at = from;
    while (at < chunk.length) {
      const byte = chunk[at];
      at += 1;
      if (this.#escaped) {
        this.#escaped = false;
      } else if (byte === BACKSLASH) {
        this.#escaped = true;
      } else if (byte === QUOTE) {
        this.#inText = false;
        break;
      }
    }
    return at;
  }

  #buffer(bytes: Buffer): void {
    if (this.#depth <= (this.#outer ?? 0)) {
      this.#checkSeparators(bytes.toString('latin1'));
      return;
    }
    this.#pending.push(bytes);
    this.#pendingBytes += bytes.length;
    if (this.#pendingBytes > MAX_SAMPLE_BYTES) {
      throw new ImportError(`a row in the JSON input is larger than ${MAX_SAMPLE_BYTES} bytes`);
    }
  }

  #drain(end: Buffer): string {
    const text = Buffer.concat([...this.#pending, end]).toString('utf8');
    this.#pending = [];
    this.#pendingBytes = 0;
    return text;
  }

  /** Checks the characters between rows; only white space, commas and brackets are allowed. */
  #checkSeparators(text: string): void {
    const plain = text.replaceAll(/^\u00ef\u00bb\u00bf|[\s,[\]]/g, '');
    if (plain !== '') {
      throw new ImportError(`'${plain.slice(0, SHOWN_KEYS)}' between the rows of the JSON input`);
    }
  }

  finish(rows: number): void {
    if (this.#depth > 0 || this.#inText) {
      throw new ImportError(
        `the JSON input ends within row ${rows + 1}, or its array is not closed`,
      );
    }
  }
}
