/**
 * Golden cases for the dialect: setup statements, then one statement with its rows, its success
 * message, or its error and the error's position. Message text is informative; positions are
 * binding.
 */
import {
  isObject,
  type Json,
  NumberText,
  parseExact,
  printExact,
  sameValue,
} from './exact-json.js';
import { internalWord } from '../internal-words.js';
import { execute } from './http-client.js';

interface Members {
  readonly [name: string]: Json;
}

export interface SqlCase {
  readonly id: string;
  readonly group: string;
  readonly setup: readonly string[];
  readonly sql: string;
  /** All members of the line, including the expected result. */
  readonly members: Members;
}

export function parseSqlCase(line: string): SqlCase {
  const members = parseExact(line) as Members;
  return {
    id: textOf(members['id']),
    group: textOf(members['group']),
    setup: members['setup'] as readonly string[],
    sql: textOf(members['sql']),
    members,
  };
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

interface Outcome {
  readonly status: number;
  readonly body: Members;
}

/** Runs cases in order. A setup is reused as long as the cases only read. */
export class SqlRunner {
  readonly #base: string;
  /** The setup that created the current tables; `null` if the last case may have changed them. */
  #standing: readonly string[] | null = null;

  constructor(base: string) {
    this.#base = base;
  }

  /** Returns `null` if the case passes, otherwise the problem. */
  async run(golden: SqlCase): Promise<string | null> {
    const problem = await this.#setUp(golden.setup);
    if (problem !== null) {
      return problem;
    }
    const outcome = await this.#send(golden.sql);
    const { error } = outcome.body;
    const inner = typeof error === 'string' ? internalWord(error) : null;
    if (inner !== null) {
      return `names an internal term ('${inner}'): ${shorten(printExact(error ?? null), 200)}`;
    }
    this.#standing = isReadOnly(golden.sql) ? golden.setup : null;
    return compare(golden.members, outcome);
  }

  async #setUp(setup: readonly string[]): Promise<string | null> {
    const standing = this.#standing;
    if (standing?.length === setup.length && setup.every((sql, i) => sql === standing[i])) {
      return null;
    }
    this.#standing = null;
    for (const sql of setup) {
      const { status, body } = await this.#send(sql);
      if (status !== 200) {
        const reason = printExact(body['error'] ?? null);
        return `set-up failed: ${shorten(sql, 120)} → ${status} ${shorten(reason, 160)}`;
      }
    }
    return null;
  }

  async #send(sql: string): Promise<Outcome> {
    try {
      const reply = await execute(this.#base, sql);
      const body = parseExact(reply.body.toString('utf8'));
      return { status: reply.status, body: isObject(body) ? body : {} };
    } catch (error) {
      return { status: 0, body: { error: String(error) } };
    }
  }
}

function isReadOnly(sql: string): boolean {
  const text = sql.replace(/^(\s*--[^\n]*\n|\s*\/\*[\s\S]*?\*\/)*/, '');
  return (
    /^\s*(select|with|explain|show|declare|\()/i.test(text) && !/\binsert\s+into\b/i.test(text)
  );
}

function compare(expected: Members, outcome: Outcome): string | null {
  if ('error' in expected) {
    return compareError(expected, outcome);
  }
  const { status, body } = outcome;
  if (status !== 200) {
    return `status ${status}: ${shorten(printExact(body['error'] ?? body), 200)}`;
  }
  const word = 'ddl' in expected ? 'ddl' : 'dml' in expected ? 'dml' : null;
  if (word !== null) {
    return compareMembers(expected, body, 'updated' in expected ? [word, 'updated'] : [word]);
  }
  return 'dataset' in body ? compareRows(expected, body) : `no rows: ${shorten(printExact(body))}`;
}

function compareError(expected: Members, { status, body }: Outcome): string | null {
  if (status === 200 && expected['beyond'] === true) {
    return null; // The peer lacks the feature; a server that has it is right.
  }
  const expectedError = printExact(expected['error']);
  if (status !== 400) {
    const got = shorten(printExact(body['dataset'] ?? body));
    return `expected 400 ${expectedError}, got ${status} ${got}`;
  }
  const problem = compareMembers(expected, body, ['position']);
  const texts = `${shorten(expectedError, 90)} / ${shorten(printExact(body['error']), 90)}`;
  return problem === null ? null : `${problem} | ${texts}`;
}

function compareMembers(expected: Members, got: Members, names: readonly string[]): string | null {
  const name = names.find((candidate) => !sameValue(expected[candidate], got[candidate]));
  if (name === undefined) {
    return null;
  }
  return `${name}: expected ${printExact(expected[name])}, got ${printExact(got[name])}`;
}

function compareRows(expected: Members, body: Members): string | null {
  for (const trait of ['name', 'type']) {
    const [expectedTraits, got] = [traits(expected, trait), traits(body, trait)];
    if (!sameValue(expectedTraits, got)) {
      const shown = shorten(printExact(expectedTraits));
      return `column ${trait}s: expected ${shown}, got ${printExact(got)}`;
    }
  }
  const problem = compareMembers(expected, body, ['timestamp']);
  if (problem !== null) {
    return problem;
  }
  const got = rowsOf(body);
  if ('min_rows' in expected || 'row_count' in expected) {
    const minimum = numberOf(expected['min_rows']) ?? 0;
    const exact = numberOf(expected['row_count']) ?? got.length;
    return got.length < minimum || got.length !== exact ? `row count: got ${got.length}` : null;
  }
  return compareDatasets(rowsOf(expected), got, expected['ordered'] === true);
}

function traits(members: Members, trait: string): Json {
  const columns = members['columns'];
  return Array.isArray(columns)
    ? columns.map((column: Json) => (isObject(column) ? (column[trait] ?? null) : null))
    : [];
}

function rowsOf(members: Members): readonly Json[] {
  const rows = members['dataset'];
  return Array.isArray(rows) ? (rows as readonly Json[]) : [];
}

function numberOf(value: Json | undefined): number | null {
  return value instanceof NumberText ? value.value : null;
}

function compareDatasets(
  expected: readonly Json[],
  got: readonly Json[],
  ordered: boolean,
): string | null {
  if (expected.length !== got.length) {
    const texts = `${shorten(printExact(expected), 160)} / ${shorten(printExact(got), 160)}`;
    return `rows: expected ${expected.length}, got ${got.length} | ${texts}`;
  }
  if (ordered ? sameValue(expected, got) : sameRows(expected, got)) {
    return null;
  }
  const at = expected.findIndex((row, index) => !sameValue(row, got[index]));
  const texts = `expected ${printExact(expected[at])}, got ${printExact(got[at])}`;
  return `row ${at}: ${shorten(texts, 400)}`;
}

/**
 * Compares rows in any order, because numbers that differ in the last digits may sort differently.
 */
function sameRows(expected: readonly Json[], got: readonly Json[]): boolean {
  const left = [...got];
  return expected.every((row) => {
    const at = left.findIndex((candidate) => sameValue(row, candidate));
    if (at >= 0) {
      left.splice(at, 1);
    }
    return at >= 0;
  });
}

function shorten(text: string, length = 220): string {
  return text.length <= length ? text : `${text.slice(0, length)}…`;
}
