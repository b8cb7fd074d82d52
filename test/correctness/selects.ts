/**
 * Random SELECTs like those in sqllogictest, but with nulls and the dialect's logic, compared with
 * a model that evaluates them row by row.
 *
 *     npm run selects -- --queries N --seed S
 */
import { Harness } from '../torture/harness.js';
import { difference } from './answers.js';
import { type Answer, type Cell, Refusal, Tidemark } from './databases.js';
import { NUMBERS, type Row, RowModel, type Scalar, type Value } from './row-model.js';

const QUERIES_PER_TABLE = 100;

const harness = new Harness('selects', ['queries']);
const { random } = harness;
const tidemark = await Tidemark.start();

function randomRow(index: number): Row {
  const number = (): Value => (random.next() < 0.2 ? null : random.between(-6, 6));
  return { id: index, ...Object.fromEntries(NUMBERS.map((name) => [name, number()])) };
}

let rows: readonly Row[] = [];
let setup: readonly string[] = [];

async function fill(): Promise<void> {
  rows = Array.from({ length: random.between(0, 30) }, (_, index) => randomRow(index));
  const literals = rows.map(
    (row) => `(${['id', ...NUMBERS].map((name) => row[name] ?? 'null').join(', ')})`,
  );
  setup = [
    'DROP TABLE IF EXISTS m',
    'CREATE TABLE m (id LONG, a LONG, b LONG, c LONG, e LONG)',
    ...(rows.length === 0 ? [] : [`INSERT INTO m VALUES ${literals.join(', ')}`]),
  ];
  for (const sql of setup) {
    await tidemark.query(sql);
  }
}

interface Query {
  readonly sql: string;
  readonly expected: Answer;
  readonly ordered: boolean;
}

function listed(items: readonly Scalar[]): string {
  return items.map(({ sql }, index) => `${sql} c${index}`).join(', ');
}

function items(model: RowModel): readonly Scalar[] {
  return Array.from({ length: random.between(1, 4) }, () => model.scalar());
}

function plain(model: RowModel): Query {
  const selected = items(model);
  const where = model.condition();
  const descending = random.next() < 0.5;
  const limit = random.next() < 0.3 ? random.between(1, 5) : rows.length + 1;
  const kept = rows.filter((row) => where.holds(row));
  const order = descending ? kept.toReversed() : kept;
  return {
    sql:
      `SELECT ${listed(selected)} FROM m WHERE ${where.sql} ` +
      `ORDER BY id${descending ? ' DESC' : ''}` +
      (limit <= rows.length ? ` LIMIT ${limit}` : ''),
    expected: { rows: order.slice(0, limit).map((row) => selected.map(({ of }) => of(row))) },
    ordered: true,
  };
}

/** The dialect's integer aggregates. Null values are skipped; a null key forms a group. */
const AGGREGATES: Readonly<Record<string, (values: readonly number[]) => Cell>> = {
  count: (values) => values.length,
  sum: (values) => (values.length === 0 ? null : values.reduce((a, b) => a + b, 0)),
  min: (values) => (values.length === 0 ? null : Math.min(...values)),
  max: (values) => (values.length === 0 ? null : Math.max(...values)),
  avg: (values) => (values.length === 0 ? null : values.reduce((a, b) => a + b, 0) / values.length),
};

function grouped(model: RowModel): Query {
  const key = random.pick(NUMBERS);
  const argument = model.scalar(2);
  const where = model.condition();
  const name = random.pick(Object.keys(AGGREGATES));
  const groups = new Map<Value, Row[]>();
  for (const row of rows.filter((candidate) => where.holds(candidate))) {
    const value = row[key] ?? null;
    groups.set(value, [...(groups.get(value) ?? []), row]);
  }
  const answer = [...groups].map(([value, members]) => {
    const values = members.map((row) => argument.of(row)).filter((x) => typeof x === 'number');
    return [value, AGGREGATES[name]?.(values) ?? null, members.length];
  });
  return {
    sql:
      `SELECT ${key} k, ${name}(${argument.sql}) x, count(*) n FROM m ` +
      `WHERE ${where.sql} GROUP BY ${key}`,
    expected: { rows: answer },
    ordered: false,
  };
}

/** A join matches null with null. */
function joined(model: RowModel): Query {
  const [left, right] = [random.pick(NUMBERS), random.pick(NUMBERS)];
  const where = model.condition(1);
  const pairs = rows
    .filter((row) => where.holds(row))
    .flatMap((a) =>
      rows.filter((b) => a[left] === b[right]).map((b) => [a['id'] ?? null, b['id'] ?? null]),
    );
  return {
    sql:
      `SELECT p.id x, q.id y FROM (SELECT * FROM m WHERE ${where.sql}) p ` +
      `JOIN m q ON p.${left} = q.${right}`,
    expected: { rows: pairs },
    ordered: false,
  };
}

function distinct(model: RowModel): Query {
  const selected = items(model);
  const all = rows.map((row) => selected.map(({ of }) => of(row)));
  const unique = new Map(all.map((row) => [JSON.stringify(row), row]));
  return {
    sql: `SELECT DISTINCT ${listed(selected)} FROM m`,
    expected: { rows: [...unique.values()] },
    ordered: false,
  };
}

/** An expression over INT values near the type's limits, and its exact value. */
interface Wide {
  readonly sql: string;
  readonly of: (row: WideRow) => bigint;
}

type WideRow = readonly [i: bigint, j: bigint];

let wideRows: readonly WideRow[] = [];

const NEAR = [0n, 1n, -1n, 3600n, 65_536n, 1_000_000n, 2_147_483_647n, -2_147_483_647n];
const WIDE: Readonly<Record<string, (a: bigint, b: bigint) => bigint>> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
};

async function fillWide(): Promise<void> {
  const value = (): bigint => random.pick(NEAR) / BigInt(random.between(1, 3));
  wideRows = Array.from({ length: 12 }, (): WideRow => [value(), value()]);
  await tidemark.query('DROP TABLE IF EXISTS w');
  await tidemark.query('CREATE TABLE w (i INT, j INT)');
  await tidemark.query(
    `INSERT INTO w VALUES ${wideRows.map(([i, j]) => `(${i}, ${j})`).join(', ')}`,
  );
}

/** A column plus or minus two operands; the result is always within 2^63. */
function wide(): Wide {
  const column = (): Wide =>
    random.pick<Wide>([
      { sql: 'i', of: ([i]) => i },
      { sql: 'j', of: ([, j]) => j },
    ]);
  const constant = (): Wide => {
    const value = random.pick(NEAR);
    return { sql: `(${value})`, of: () => value };
  };
  const operand = (): Wide => random.pick([column, constant])();
  const binary = (operators: readonly string[], a: Wide, b: Wide): Wide => {
    const operator = random.pick(operators);
    const compute = WIDE[operator];
    return {
      sql: `(${a.sql} ${operator} ${b.sql})`,
      of: (row) => compute?.(a.of(row), b.of(row)) ?? 0n,
    };
  };
  const first = binary(
    ['+', '-', '*'],
    ...random.pick([[column(), operand()] as const, [operand(), column()] as const]),
  );
  return random.next() < 0.5 ? first : binary(['+', '-'], first, operand());
}

/** A filter must not be evaluated on an INT that has wrapped around. */
function wideFilter(): Query {
  const [a, b] = [wide(), wide()];
  const bound = random.pick(wideRows.map((row) => b.of(row)));
  const other: Wide = random.pick<Wide>([b, { sql: `(${bound})`, of: () => bound }]);
  const operator = random.pick(['<', '<=', '>', '>=', '=', '!=']);
  const holds = (row: WideRow): boolean => {
    const [x, y] = [a.of(row), other.of(row)];
    return operator.startsWith('<')
      ? x < y || (operator === '<=' && x === y)
      : operator.startsWith('>')
        ? x > y || (operator === '>=' && x === y)
        : (x === y) === (operator === '=');
  };
  return {
    sql: `SELECT count() FROM w WHERE ${a.sql} ${operator} ${other.sql}`,
    expected: { rows: [[wideRows.filter(holds).length]] },
    ordered: true,
  };
}

const total = harness.number('queries', 1000);
for (let index = 0; index < total; index += 1) {
  if (index % QUERIES_PER_TABLE === 0) {
    await fill();
    await fillWide();
  }
  const model = new RowModel(random);
  const { sql, expected, ordered } = random.pick([
    plain,
    plain,
    grouped,
    joined,
    distinct,
    wideFilter,
  ])(model);
  let problem: string | undefined;
  try {
    problem = difference(await tidemark.query(sql), expected, { ordered });
  } catch (error) {
    if (!(error instanceof Refusal)) {
      throw error;
    }
    problem = error.message;
  }
  const first = harness.failures === 0;
  harness.judge(problem === undefined ? undefined : `query ${index}: ${problem}\n  ${sql}`);
  if (problem !== undefined && first) {
    harness.say(`${setup.join(';\n')};`);
  }
}
await tidemark.close();
harness.finish();
