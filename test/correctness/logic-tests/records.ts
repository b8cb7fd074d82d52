/**
 * Parses sqllogictest files (records, conditions, loops and variables) in the variants of SQLite,
 * DuckDB and DataFusion. Independent of any database.
 */

export interface Position {
  readonly file: string;
  /** Line number, from 1. */
  readonly line: number;
}

export type SortMode = 'nosort' | 'rowsort' | 'valuesort';

export interface StatementRecord {
  readonly kind: 'statement';
  readonly at: Position;
  readonly sql: string;
  readonly expects: 'ok' | 'error' | 'any';
  /** Expected number of affected rows, if given. */
  readonly count: number | undefined;
  readonly connection: string;
}

export interface QueryRecord {
  readonly kind: 'query';
  readonly at: Position;
  readonly sql: string;
  /** One letter per column: I, R, T, B, D, P. */
  readonly types: string;
  readonly sort: SortMode;
  /** Queries with the same label must have the same result. */
  readonly label: string | undefined;
  readonly connection: string;
  readonly expected: readonly string[];
}

/** A directive to skip a range of records, or the remainder of the file. */
interface Skip {
  readonly kind: 'skip';
  readonly at: Position;
  readonly reason: string;
  readonly endsFile: boolean;
}

/** An included file, given by the path in the directive. */
interface Include {
  readonly kind: 'include';
  readonly at: Position;
  readonly path: string;
}

export type TestRecord = StatementRecord | QueryRecord | Skip | Include;

export interface Format {
  /** Database name against which `skipif` and `onlyif` are compared. */
  readonly engine: string;
  /** Names that `require` accepts. */
  readonly provided: ReadonlySet<string>;
}

const SORTS: ReadonlyMap<string, SortMode> = new Map([
  ['nosort', 'nosort'],
  ['rowsort', 'rowsort'],
  ['sort', 'rowsort'],
  ['valuesort', 'valuesort'],
]);

const SIGNED = ['TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'HUGEINT'];
const UNSIGNED = ['UTINYINT', 'USMALLINT', 'UINTEGER', 'UBIGINT', 'UHUGEINT'];
const NUMERIC = [...SIGNED, ...UNSIGNED, 'FLOAT', 'DOUBLE'];
/** Value lists that `foreach` refers to by a name in angle brackets. */
const LISTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['<signed>', SIGNED],
  ['<unsigned>', UNSIGNED],
  ['<integral>', [...SIGNED, ...UNSIGNED]],
  ['<numeric>', NUMERIC],
  ['<alltypes>', [...NUMERIC, 'BOOL', 'INTERVAL', 'VARCHAR']],
]);

/** Directives that configure the other database and do not affect results. */
const WITHOUT_EFFECT =
  /^(?:restart|reconnect|load|unzip|tags|sleep|reset|template|import|control|subtest|system)\b/;

/** An error message that spans several lines ends with blank lines. */
const ERROR_HEAD = /^(?:statement|query) error\b/;

export class Reader {
  readonly #file: string;
  readonly #lines: readonly string[];
  readonly #format: Format;
  readonly #variables = new Map<string, string>();
  #isSkipping = false;

  constructor(file: string, text: string, format: Format) {
    this.#file = file;
    this.#lines = text.split(/\r?\n/);
    this.#format = format;
  }

  *records(): Generator<TestRecord> {
    yield* this.#range(0, this.#lines.length);
  }

  /**
   * Returns a line in which each variable is replaced by its current value. Loops change these
   * values.
   */
  #line(index: number): string {
    return (this.#lines[index] ?? '').replace(
      /\$?\{(\w+)\}/g,
      (match, name: string) => this.#variables.get(name) ?? match,
    );
  }

  #at(index: number): Position {
    return { file: this.#file, line: index + 1 };
  }

  *#range(first: number, end: number): Generator<TestRecord> {
    let index = first;
    let isIncluded = true;
    while (index < end) {
      const line = this.#line(index).trim();
      const [word = '', name = '', ...rest] = line.split(/\s+/);
      if (line === '' || line.startsWith('#')) {
        index += 1;
      } else if (word === 'skipif' || word === 'onlyif') {
        isIncluded = isIncluded && this.#holds(name) === (word === 'onlyif');
        index += 1;
      } else if (/^(?:foreach|loop|concurrentloop|concurrentforeach)$/.test(word)) {
        const close = this.#endOfLoop(index, end);
        if (isIncluded) {
          yield* this.#loop(word, name, rest, [index + 1, close]);
        }
        index = close + 1;
        isIncluded = true;
      } else {
        const next = this.#endOfRecord(index, end);
        if (isIncluded) {
          const record = this.#record(index, next);
          if (record !== undefined && (!this.#isSkipping || record.kind === 'skip')) {
            yield record;
          }
        }
        index = next;
        isIncluded = true;
      }
    }
  }

  /** Evaluates `NAME` or a comparison of a loop variable, such as `i=3`. */
  #holds(condition: string): boolean {
    const comparison = /^(\w+)(=|<|>|<=|>=|!=)(.*)$/.exec(condition);
    if (comparison === null) {
      return condition.toLowerCase() === this.#format.engine;
    }
    const [, name = '', operator = '', expected = ''] = comparison;
    const value = this.#variables.get(name) ?? '';
    const order =
      value === expected
        ? 0
        : Math.sign(Number(value) - Number(expected)) || (value < expected ? -1 : 1);
    return operator === '!='
      ? order !== 0
      : (order === 0 && operator.includes('=')) ||
          (order < 0 && operator.startsWith('<')) ||
          (order > 0 && operator.startsWith('>'));
  }

  #endOfLoop(start: number, end: number): number {
    let depth = 0;
    for (let index = start; index < end; index += 1) {
      const line = this.#lines[index]?.trim() ?? '';
      if (/^(?:foreach|loop|concurrentloop|concurrentforeach)\s/.test(line)) {
        depth += 1;
      } else if (line === 'endloop') {
        depth -= 1;
        if (depth === 0) {
          return index;
        }
      }
    }
    return end;
  }

  *#loop(
    word: string,
    name: string,
    rest: readonly string[],
    [first, end]: readonly [number, number],
  ): Generator<TestRecord> {
    const names = name.split(',');
    for (const value of loopValues(word, rest)) {
      const values = names.length === 1 ? [value] : value.split(',');
      for (const [index, one] of names.entries()) {
        this.#variables.set(one, values[index] ?? '');
      }
      yield* this.#range(first, end);
    }
    for (const one of names) {
      this.#variables.delete(one);
    }
  }

  /** Returns the index of the line after a record. */
  #endOfRecord(start: number, end: number): number {
    const head = this.#lines[start]?.trim() ?? '';
    if (!/^(?:statement|query)\b/.test(head)) {
      return start + 1;
    }
    const isBlank = (index: number): boolean => (this.#lines[index] ?? '').trim() === '';
    let index = start + 1;
    let separator = -1;
    while (index < end && !isBlank(index)) {
      separator = separator < 0 && this.#lines[index]?.trim() === '----' ? index : separator;
      index += 1;
    }
    if (separator >= 0 && ERROR_HEAD.test(head) && this.#format.engine === 'datafusion') {
      while (index < end && !(isBlank(index) && isBlank(index + 1))) {
        index += 1;
      }
    }
    return index;
  }

  #record(start: number, end: number): TestRecord | undefined {
    const head = this.#line(start).trim();
    const [word = '', second = '', ...rest] = head.split(/\s+/);
    if (word !== 'statement' && word !== 'query') {
      return this.#directive(start, head, [word, second, ...rest]);
    }
    const body = Array.from({ length: end - start - 1 }, (_, index) =>
      this.#line(start + 1 + index),
    );
    const separator = body.findIndex((line) => line.trim() === '----');
    const sql = (separator < 0 ? body : body.slice(0, separator)).join('\n').trim();
    const at = this.#at(start);
    if (word === 'statement' || second === 'error') {
      const expects = second === 'ok' || second === 'error' ? second : 'any';
      const isCount = second === 'count';
      return {
        kind: 'statement',
        at,
        sql,
        expects: isCount ? 'ok' : expects,
        count: isCount ? Number(rest[0]) : undefined,
        connection: expects === 'error' && word === 'query' ? '' : connectionOf(rest),
      };
    }
    const sort = rest.map((part) => SORTS.get(part)).find((mode) => mode !== undefined);
    const others = rest.filter((part) => !SORTS.has(part));
    return {
      kind: 'query',
      at,
      sql,
      types: second,
      sort: sort ?? 'nosort',
      label: others.find((part) => connectionOf([part]) === ''),
      connection: connectionOf(others),
      expected: separator < 0 ? [] : body.slice(separator + 1),
    };
  }

  #directive(start: number, head: string, words: readonly string[]): TestRecord | undefined {
    const [word = '', name = '', ...rest] = words;
    const skip = (reason: string, endsFile: boolean): Skip => ({
      kind: 'skip',
      at: this.#at(start),
      reason,
      endsFile,
    });
    if (word === 'halt') {
      return skip('halt', true);
    }
    if (word === 'mode' && (name === 'skip' || name === 'unskip')) {
      this.#isSkipping = name === 'skip';
      return this.#isSkipping ? skip('mode skip', false) : undefined;
    }
    if (word === 'include') {
      return { kind: 'include', at: this.#at(start), path: name };
    }
    if (word === 'require' || word === 'require-env') {
      const isProvided = word === 'require' && this.#format.provided.has(name.toLowerCase());
      return isProvided ? undefined : skip(`requires ${name}`, true);
    }
    if (word === 'test-env' || (word === 'set' && name === 'variable')) {
      const [variable = '', value = ''] = word === 'set' ? rest : [name, rest.join(' ')];
      this.#variables.set(variable, value);
      return undefined;
    }
    const isSilent = /^(?:hash-threshold|mode|set|endloop)$/.test(word);
    return isSilent || WITHOUT_EFFECT.test(head) ? undefined : skip(`directive ${word}`, false);
  }
}

function loopValues(word: string, rest: readonly string[]): readonly string[] {
  if (word.endsWith('foreach')) {
    const values = rest.flatMap((value) => LISTS.get(value.toLowerCase()) ?? [value]);
    const without = new Set(values.filter((value) => value.startsWith('!')));
    return values.filter((value) => !value.startsWith('!') && !without.has(`!${value}`));
  }
  const [first = 0, end = 0] = rest.map(Number);
  return Array.from({ length: Math.max(0, end - first) }, (_, index) => String(first + index));
}

/** DuckDB names its connections con1, con2, …; any other word is a label. */
function connectionOf(words: readonly string[]): string {
  return words.find((word) => /^(?:con\w*|old|new)$/.test(word)) ?? '';
}
