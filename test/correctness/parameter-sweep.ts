/**
 * Each literal of the recorded statements as a parameter: undeclared with its text, and declared as
 * drivers declare it, in text and in binary form. A statement with a parameter answers as the one
 * with the literal, or is refused for one of the reasons below.
 *
 * `npm run parameter-sweep [-- --only TEXT]`
 */
import { pathToFileURL } from 'node:url';

import { type NodeId, parse, type Tree } from '../../ts/sql/index.js';
import { sqlCases } from '../golden/cases.js';
import { execute } from '../golden/http-client.js';
import { startTestServer } from '../golden/server.js';
import { clientMessage, errorFields, RawClient } from '../pgwire/raw-client.js';

/** Numbers of PostgreSQL's types. */
const TYPES = { bool: 16, int8: 20, int4: 23, text: 25, float8: 701, varchar: 1043 } as const;

interface Form {
  readonly name: string;
  /** 0 is undeclared. */
  readonly type: number;
  readonly isBinary: boolean;
  readonly value: Buffer;
}

interface Literal {
  readonly start: number;
  readonly end: number;
  readonly forms: readonly Form[];
}

/**
 * Where a parameter is not what the literal is, each with the reason. Matched against the refusal,
 * or against the statement with both answers.
 */
const OTHERWISE: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [/^inconvertible value: `/, 'a literal that is no such value is null, a parameter is refused'],
  [/^table name expected/, 'a name is no value'],
  [/^invalid UUID constant/, 'as of a literal that is no value of the type'],
  [/^Invalid date: 5 /, 'text in the place of an interval is read as one'],
  [/^column must appear in GROUP BY/, 'a parameter is not known to be the constant of the key'],
  [/^there is no matching operator `=` .* = INTERVAL/, 'interval() of a parameter is not folded'],
  [/^inconvertible value: 1 \[CHAR -> TIMESTAMP\]/, 'beside `-` a parameter is taken for a time'],
  [/^precision must be between 0 and 5/, 'text is no number of digits; INT is'],
  [/^the tables changed since .*(epoch|'q')/, 'the unit decides the type of the answer'],
  [/^(undeclared number|binary int8) .*typeOf\(/, "the type that is asked for is the parameter's"],
  [/^binary int8 .*(2147483647|i - \$1)/, 'eight bytes do not wrap as four do'],
  [/^undeclared number .*UNION ALL/, 'beside a parameter a column of a UNION is DOUBLE'],
  [/^undeclared number 5: SELECT ts FROM er WHERE s > /, 'text beside a SYMBOL is text'],
  [/^undeclared number 0\.1: .*0\.1f = \$1/, 'beside FLOAT a parameter is FLOAT'],
];

interface Answer {
  readonly rows: readonly string[];
  readonly error: string | null;
}

/** What was found: statements run, refusals by reason, other answers. */
interface Sweep {
  statements: number;
  runs: number;
  readonly refused: Map<string, string[]>;
  readonly different: string[];
}

/** Sweeps the recorded statements, or those that contain a text. */
export async function sweepParameters(only = ''): Promise<Sweep> {
  const server = await startTestServer({ set: ['pg.auth.method=cleartext'] });
  const sweep: Sweep = { statements: 0, runs: 0, refused: new Map(), different: [] };
  try {
    const client = await RawClient.login(Number(server.pg.split(':')[1]));
    let standing = '';
    for (const { setup, sql, members } of sqlCases()) {
      if ('error' in members || !isQuery(sql) || !sql.includes(only)) {
        continue;
      }
      if (standing !== setup.join(';')) {
        standing = setup.join(';');
        for (const text of setup) {
          await execute(server.url, text);
        }
      }
      await sweepStatement(client, sql, sweep);
    }
    client.close();
  } finally {
    await server.stop();
  }
  return sweep;
}

const isQuery = (sql: string): boolean =>
  /^\s*(select|with|\()/i.test(sql) && !/\b(insert|rnd_|now\(|systimestamp|sysdate)/i.test(sql);

async function sweepStatement(client: RawClient, sql: string, sweep: Sweep): Promise<void> {
  const literal = await ask(client, sql, null);
  if (literal.error !== null) {
    return;
  }
  sweep.statements += 1;
  for (const { start, end, forms } of literalsOf(parse(sql), sql)) {
    const text = `${sql.slice(0, start)}$1${sql.slice(end)}`;
    for (const form of forms) {
      sweep.runs += 1;
      const { rows, error } = await ask(client, text, form);
      const where = `${form.name} ${sql.slice(start, end)}: ${text}`;
      if (error !== null) {
        const known = sweep.refused.get(error) ?? [];
        known.push(where);
        sweep.refused.set(error, known);
      } else if (!sameRows(rows, literal.rows)) {
        const found = `${literal.rows.slice(0, 3).join(' ')} → ${rows.slice(0, 3).join(' ')}`;
        sweep.different.push(`${where}\n    ${found}`);
      }
    }
  }
}

/** Whether cells are the same text or the same number: `-1` and `-1.0`. */
function sameRows(rows: readonly string[], expected: readonly string[]): boolean {
  const same = (cell: string, other: string | undefined): boolean =>
    cell === other || (cell !== '' && other !== '' && Number(cell) === Number(other));
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

/** The cells of a DataRow in text. */
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

/** Runs a statement by the extended protocol; rows are their cells with tabs between. */
async function ask(client: RawClient, sql: string, form: Form | null): Promise<Answer> {
  const types = form === null || form.type === 0 ? [[0] as const] : [[1] as const, form.type];
  const value =
    form === null
      ? [[0] as const, [0] as const]
      : [
          [1] as const,
          [form.isBinary ? 1 : 0] as const,
          [1] as const,
          form.value.length,
          form.value,
        ];
  client.send(
    clientMessage('P', '', sql, ...types),
    clientMessage('D', Buffer.from('S\0')),
    clientMessage('B', '', '', ...value, [0]),
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

/** The literals that may be parameters, and the forms in which drivers send their values. */
function literalsOf(tree: Tree, sql: string): Literal[] {
  const places = ordinals(tree);
  return tree.nodes.flatMap((node, id) => {
    const span = tree.spans[id];
    if (span === undefined || places.has(id) || sql.slice(span.start, span.end) === '') {
      return [];
    }
    const { start, end } = span;
    switch (node.kind) {
      case 'String':
        return [{ start, end, forms: textForms(node.value) }];
      case 'Integer':
        return [{ start, end, forms: integerForms(node.text) }];
      case 'Float':
        return [{ start, end, forms: floatForms(node.text) }];
      default:
        return [];
    }
  });
}

/** Numbers that are places of the list, not values: `ORDER BY 1`, `GROUP BY 2`. */
function ordinals(tree: Tree): ReadonlySet<NodeId> {
  const places = new Set<NodeId>();
  for (const node of tree.nodes) {
    if (node.kind === 'Query') {
      node.order_by.forEach((item) => places.add(item.expression));
    } else if (node.kind === 'Select') {
      node.group_by.forEach((id) => places.add(id));
    }
  }
  return places;
}

function textForms(value: string): Form[] {
  const bytes = Buffer.from(value);
  return [
    { name: 'undeclared text', type: 0, isBinary: false, value: bytes },
    { name: 'varchar', type: TYPES.varchar, isBinary: false, value: bytes },
    { name: 'binary text', type: TYPES.text, isBinary: true, value: bytes },
  ];
}

function integerForms(text: string): Form[] {
  const digits = text.replaceAll('_', '');
  const undeclared = {
    name: 'undeclared number',
    type: 0,
    isBinary: false,
    value: Buffer.from(digits),
  };
  if (!/^\d+$/.test(digits) || BigInt(digits) > 0x7fff_ffff_ffff_ffffn) {
    return [];
  }
  const eight = Buffer.alloc(8);
  eight.writeBigInt64BE(BigInt(digits));
  const forms = [
    undeclared,
    { name: 'binary int8', type: TYPES.int8, isBinary: true, value: eight },
  ];
  if (BigInt(digits) < 0x7fff_ffffn) {
    const four = Buffer.alloc(4);
    four.writeInt32BE(Number(digits));
    forms.push({ name: 'binary int4', type: TYPES.int4, isBinary: true, value: four });
  }
  return forms;
}

function floatForms(text: string): Form[] {
  if (!Number.isFinite(Number(text))) {
    return [];
  }
  const eight = Buffer.alloc(8);
  eight.writeDoubleBE(Number(text));
  return [
    { name: 'undeclared number', type: 0, isBinary: false, value: Buffer.from(text) },
    { name: 'binary float8', type: TYPES.float8, isBinary: true, value: eight },
  ];
}

/** Refusals and other answers that no reason explains. */
export function unexplained({ refused, different }: Sweep): string[] {
  const isNew = (text: string): boolean => !OTHERWISE.some(([pattern]) => pattern.test(text));
  const refusals = [...refused].flatMap(([error, places]) =>
    places.map((place) => `${error} | ${place}`),
  );
  return [...refusals, ...different].filter(isNew);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const only = process.argv[process.argv.indexOf('--only') + 1];
  const sweep = await sweepParameters(process.argv.includes('--only') ? only : '');
  const problems = unexplained(sweep);
  process.stdout.write(`${problems.join('\n')}\n`);
  const failed = problems.length;
  process.stdout.write(`${sweep.statements} statements, ${sweep.runs} runs\n`);
  process.stdout.write(`${sweep.runs - failed} passed, ${failed} failed\n`);
  process.exitCode = failed === 0 ? 0 : 1;
}
