/**
 * Replaces literals in recorded, documented and benchmarked statements with parameters: one at a
 * time and all together. Values are sent as text without a type, as text with the type that drivers
 * declare, and in binary; IN lists are sent as arrays. With parameters, a statement must give the
 * same answer or make the same changes as with literals, unless it is refused for one of the
 * reasons below. `npm run parameter-sweep [-- --only TEXT]`
 */
import { pathToFileURL } from 'node:url';

import { parse } from '../../ts/sql/index.js';
import { startTestServer } from '../golden/server.js';
import { clientMessage, errorFields, RawClient } from '../pgwire/raw-client.js';
import { changedTable, type Source, statementsToSweep, type Swept } from './parameters/sources.js';
import {
  FAMILIES,
  type Form,
  listsOf,
  literalsOf,
  type LiteralPosition,
} from './parameters/values.js';

/**
 * Maximum number of literals tried one at a time in a statement that changes rows. Each trial of
 * such a statement needs a new setup.
 */
const ALONE = 8;

/**
 * Known differences between parameters and literals, with the reason for each. A pattern is matched
 * against the refusal, or against the statement together with both answers.
 */
const OTHERWISE: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [/^inconvertible value: `/, 'an inconvertible literal is null, a parameter is refused'],
  [/^table name expected/, 'a name cannot be a parameter'],
  [/^atomic or into or batch expected/, 'the batch size cannot be a parameter'],
  [/^integer expected \| (varchar|binary text) '1': .*RANGE/, 'a string cannot be a frame bound'],
  [/^invalid UUID constant/, 'same error as for an invalid literal'],
  [/^Invalid date: (5 |\{)/, 'a string in place of an interval is parsed as one'],
  [/^column must appear in GROUP BY/, "a parameter is not recognized as the key's constant"],
  [/^there is no matching operator `=` .* = INTERVAL/, 'interval() of a parameter is not folded'],
  [/^inconvertible value: 1 \[CHAR -> TIMESTAMP\]/, 'a parameter beside `-` is treated as a time'],
  [/^precision must be between 0 and 5/, 'a string is not a digit count, an INT is'],
  [
    /^recursive query: .* (INT|VARCHAR) in the first term and/,
    'int8 is not INT, a string is not a number',
  ],
  [/^number expected .*generate_series/, 'a string with decimal places is not an integer'],
  [/^(pause|resume)_job\(kind/, 'permissions depend on the named job'],
  [
    /^the schema changed since .*(epoch|'q'|extract|datediff|geohash)/,
    'the parameter determines the type',
  ],
  [
    /^(undeclared|all|int8|binary int8) .*(typeOf|pg_typeof)\(/,
    "the result is the parameter's type",
  ],
  [
    /^(int8|all|binary int8) .*(2147483647|i - \$1|\(-\$1)/,
    'eight-byte integers wrap at a different value',
  ],
  [/^undeclared number .*UNION ALL/, 'beside a parameter a column of a UNION is DOUBLE'],
  [/^undeclared number 5: SELECT ts FROM er WHERE s > /, 'a parameter beside a SYMBOL is a string'],
  [
    /^(undeclared number 0\.1: .*0\.1f = |all undeclared: .*1\.0f = )/,
    'a parameter beside FLOAT is FLOAT',
  ],
  [
    /^undeclared number .*(json|jsonb)_?\w*\(|^all undeclared.*json/,
    'an undeclared parameter is a string',
  ],
  [
    /^undeclared number .*\$1::(char|date|timestamp)/,
    'an undeclared parameter is cast from a string',
  ],
  [
    /^(invalid type: DOUBLE .*)?all undeclared: .*\$\d+(::int)? [-+*/%] \$\d+/,
    'two untyped parameters are DOUBLE',
  ],
  [/^all undeclared: SELECT sum\(x\) FROM \(SELECT \$1 x UNION/, 'the same'],
];

/** Known defects; an entry is removed once its defect is fixed. */
const PENDING: readonly RegExp[] = [/array_build\(\$1/];

interface Answer {
  readonly rows: readonly string[];
  readonly error: string | null;
}

/** A statement with parameters in place of some literals. */
interface Trial {
  readonly sql: string;
  readonly bound: readonly Form[];
  readonly what: string;
}

/**
 * Result of a sweep: the number of statements that ran, the refusals by reason, and the differing
 * answers.
 */
interface Sweep {
  readonly statements: Map<Source, number>;
  /** Number of runs with one parameter, with all of them, and with an array. */
  readonly runs: { one: number; several: number; array: number };
  readonly refused: Map<string, string[]>;
  readonly different: string[];
  /** Statements that are refused with literals as well, because they demonstrate an error. */
  readonly skipped: string[];
}

/** Sweeps all statements, or those that contain `only`. */
export async function sweepParameters(only = ''): Promise<Sweep> {
  const statements = await statementsToSweep();
  const server = await startTestServer({
    set: ['pg.auth.method=cleartext', 'cairo.commit.mode=nosync', 'log.level=error'],
  });
  const runs = { one: 0, several: 0, array: 0 };
  const sweep: Sweep = {
    statements: new Map(),
    runs,
    refused: new Map(),
    different: [],
    skipped: [],
  };
  try {
    const tables = new Tables(await RawClient.login(Number(server.pg.split(':')[1])));
    for (const swept of statements) {
      if (swept.sql.includes(only)) {
        await sweepStatement(tables, swept, sweep);
      }
    }
    tables.client.close();
  } finally {
    await server.stop();
  }
  return sweep;
}

/** Runs statements, each on its own tables. */
class Tables {
  readonly client: RawClient;
  /** The setup that created the current tables; null after a statement has changed them. */
  #standing: string | null = null;

  constructor(client: RawClient) {
    this.client = client;
  }

  /** Returns the result rows; for a change, also the changed table's rows. */
  async run({ setup, sql }: Swept, trial: Trial): Promise<Answer> {
    const expected = setup.join(';\n');
    if (this.#standing !== expected) {
      this.#standing = expected;
      for (const text of setup) {
        await query(this.client, text, []);
      }
    }
    const answer = await query(this.client, trial.sql, trial.bound);
    const table = changedTable(sql) ?? null;
    if (table === null) {
      return answer;
    }
    this.#standing = null;
    const after = await query(this.client, `SELECT * FROM "${table}"`, []);
    return { ...answer, rows: [...answer.rows, ...after.rows] };
  }
}

async function sweepStatement(tables: Tables, swept: Swept, sweep: Sweep): Promise<void> {
  const literal = await tables.run(swept, { sql: swept.sql, bound: [], what: '' });
  if (literal.error !== null) {
    sweep.skipped.push(`${swept.source}: ${literal.error} | ${swept.sql}`);
    return;
  }
  sweep.statements.set(swept.source, (sweep.statements.get(swept.source) ?? 0) + 1);
  const tree = parse(swept.sql);
  const literals = literalsOf(tree, swept.sql);
  const isQuery = changedTable(swept.sql) === null;
  const all = literals.length === 0 ? [] : combined(swept.sql, literals);
  const trials = {
    one: literals
      .slice(0, isQuery ? undefined : ALONE)
      .flatMap((literal) => literal.forms.map((form) => trialOf(swept.sql, [literal], [form]))),
    // Queries run twice, because the second run can use a plan that was cached for other values.
    several: isQuery ? [...all, ...all] : all,
    array: arrays(swept.sql),
  };
  for (const kind of ['one', 'several', 'array'] as const) {
    for (const trial of trials[kind]) {
      sweep.runs[kind] += 1;
      judge(await tables.run(swept, trial), literal, trial, sweep);
    }
  }
}

/** Returns one trial per family of forms, with all literals replaced. */
function combined(sql: string, literals: readonly LiteralPosition[]): Trial[] {
  return FAMILIES.map((family) =>
    trialOf(
      sql,
      literals,
      literals.flatMap(({ forms }) => forms.find((form) => form.family === family) ?? []),
    ),
  );
}

/**
 * Returns trials with lists replaced by arrays. A parameter in `unnest` needs a type, as in
 * PostgreSQL.
 */
function arrays(sql: string): Trial[] {
  return listsOf(parse(sql)).flatMap(({ start, end, forms, alternatives }) =>
    alternatives.flatMap((text) =>
      forms
        .filter(({ type }) => type !== 0 || !text.includes('unnest'))
        .map((form) => ({
          sql: `${sql.slice(0, start)}${text}${sql.slice(end)}`,
          bound: [form],
          what: form.name,
        })),
    ),
  );
}

function trialOf(sql: string, literals: readonly LiteralPosition[], bound: readonly Form[]): Trial {
  let text = '';
  let at = 0;
  for (const [index, { start, end }] of literals.entries()) {
    text += `${sql.slice(at, start)}$${index + 1}`;
    at = end;
  }
  const [literal] = literals;
  const [form] = bound;
  const what =
    bound.length === 1
      ? `${form?.name ?? ''} ${sql.slice(literal?.start, literal?.end)}`
      : `all ${form?.family ?? ''}`;
  return { sql: text + sql.slice(at), bound, what };
}

function judge(answer: Answer, literal: Answer, { what, sql }: Trial, sweep: Sweep): void {
  const where = `${what}: ${sql.replaceAll(/\s+/g, ' ')}`;
  if (answer.error !== null) {
    const known = sweep.refused.get(answer.error) ?? [];
    known.push(where);
    sweep.refused.set(answer.error, known);
  } else if (!sameRows(answer.rows, literal.rows)) {
    const [expected, found] = [literal.rows, answer.rows].map((rows) => rows.slice(0, 3).join(' '));
    sweep.different.push(`${where}\n    ${expected ?? ''} → ${found ?? ''}`);
  }
}

/**
 * Relative tolerance: partial sums that are added in a different order differ in their last digits.
 */
const EPSILON = 1e-12;

/** Whether cells are the same string or the same number, such as `-1` and `-1.0`. */
function sameRows(rows: readonly string[], expected: readonly string[]): boolean {
  const same = (cell: string, other: string | undefined): boolean => {
    if (cell === other) {
      return true;
    }
    const [one, two] = [Number(cell), Number(other)];
    return cell !== '' && other !== '' && Math.abs(one - two) <= EPSILON * Math.abs(one);
  };
  return (
    rows.length === expected.length &&
    rows.every((row, at) => {
      const [ours, theirs] = [row.split('\t'), (expected[at] ?? '').split('\t')];
      return (
        ours.length === theirs.length && ours.every((cell, column) => same(cell, theirs[column]))
      );
    })
  );
}

/** Returns the cells of a DataRow in text format. */
function cellsOf(body: Buffer): string {
  const cells: string[] = [];
  for (let at = 2; at < body.length;) {
    const length = body.readInt32BE(at);
    at += 4;
    cells.push(length < 0 ? 'NULL' : body.toString('utf8', at, at + length));
    at += Math.max(length, 0);
  }
  return cells.join('\t');
}

/** Runs a statement over the extended protocol. Rows are returned as tab-separated cells. */
async function query(client: RawClient, sql: string, bound: readonly Form[]): Promise<Answer> {
  const types = bound.some(({ type }) => type !== 0) ? bound.map(({ type }) => type) : [];
  const values = bound.flatMap(({ value }) => [value.length, value]);
  client.send(
    clientMessage('P', '', sql, [types.length], ...types),
    clientMessage('D', Buffer.from('S\0')),
    clientMessage(
      'B',
      '',
      '',
      [bound.length],
      ...bound.map(({ isBinary }) => [isBinary ? 1 : 0] as const),
      [bound.length],
      ...values,
      [0],
    ),
    clientMessage('E', '', 0),
    clientMessage('S'),
  );
  const messages = await client.until('Z');
  if (messages.length === 0) {
    throw new Error(`no answer to ${sql}`);
  }
  const refusal = messages.find(({ type }) => type === 'E');
  const rows = messages.filter(({ type }) => type === 'D').map(({ body }) => cellsOf(body));
  return { rows, error: refusal === undefined ? null : (errorFields(refusal)['M'] ?? 'unknown') };
}

/** Returns refusals and different answers. */
function findings({ refused, different }: Sweep): string[] {
  const refusals = [...refused].flatMap(([error, literals]) =>
    literals.map((literal) => `${error} | ${literal}`),
  );
  return [...refusals, ...different];
}

/** Returns the findings without a known reason. */
export function unexplained(sweep: Sweep): string[] {
  const known = [...OTHERWISE.map(([pattern]) => pattern), ...PENDING];
  return findings(sweep).filter((text) => !known.some((pattern) => pattern.test(text)));
}

/** Returns the listed defects that no longer occur. */
function mended(sweep: Sweep): string[] {
  const found = findings(sweep);
  return PENDING.filter((pattern) => !found.some((text) => pattern.test(text))).map(String);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const only = process.argv[process.argv.indexOf('--only') + 1];
  const sweep = await sweepParameters(process.argv.includes('--only') ? only : '');
  const problems = unexplained(sweep);
  process.stdout.write(`${problems.join('\n')}\n`);
  const { one, several, array } = sweep.runs;
  const counts = [...sweep.statements].map(([source, count]) => `${source} ${count}`);
  process.stdout.write(`statements: ${counts.join(', ')}; refused as they are: `);
  process.stdout.write(`${sweep.skipped.length}\n`);
  process.stdout.write(`one parameter ${one}, all ${several}, arrays ${array}\n`);
  process.stdout.write(`no longer seen: ${mended(sweep).join(' ')}\n`);
  const failed = problems.length;
  process.stdout.write(`${one + several + array - failed} passed, ${failed} failed\n`);
  process.exitCode = failed === 0 ? 0 : 1;
}
