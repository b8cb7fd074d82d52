/**
 * Every aggregate in the registry, over every accepted type, for no rows, only nulls, one row and
 * several rows: in total, grouped, sampled, filtered, over a partition and over a moving frame.
 * Small scan chunks force partial states to be merged. aggregate-models.ts defines the expected
 * results.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { send, rowsOf } from '../limits/client.js';
import {
  known,
  OF_NUMBERS,
  OF_VALUES,
  PROPERTIES,
  type Property,
  type Row,
} from './aggregate-models.js';

let server: TestServer;

test.before(async () => {
  // Scans use many chunks, so partial states are merged.
  const parallel = ['query.scan.part.rows=2', 'shared.query.worker.count=4'];
  const set = ['cairo.commit.mode=nosync', 'log.level=error', ...parallel];
  server = await startTestServer({ set });
  await prepare();
});

test.after.always(async () => {
  await server.stop();
});

/** Types, each with three values in ascending order. */
const TYPES: Readonly<Record<string, readonly [string, string, string]>> = {
  BOOLEAN: ['false', 'false', 'true'],
  BYTE: ['1', '2', '3'],
  SHORT: ['1', '2', '3'],
  INT: ['5', '6', '12'],
  LONG: ['5', '6', '12'],
  FLOAT: ['1.5', '2.5', '4.0'],
  DOUBLE: ['1.5', '2.5', '4.0'],
  'DECIMAL(9,2)': ['1.25m', '2.50m', '3.75m'],
  'DECIMAL(10,2)': ['1.25m', '2.50m', '3.75m'],
  'DECIMAL(30,4)': ['1.25m', '2.50m', '3.75m'],
  'DECIMAL(60,4)': ['1.25m', '2.50m', '3.75m'],
  CHAR: ["'a'", "'b'", "'c'"],
  VARCHAR: ["'ab'", "'b'", "'ć'"],
  STRING: ["'ab'", "'b'", "'ć'"],
  SYMBOL: ["'ab'", "'b'", "'ć'"],
  DATE: ["'2024-01-01'", "'2024-01-02'", "'2024-03-01'"],
  TIMESTAMP: ["'2024-01-01'", "'2024-01-02'", "'2024-03-01'"],
  TIMESTAMP_NS: ["'2024-01-01'", "'2024-01-02'", "'2024-03-01'"],
  IPV4: ["'1.2.3.4'", "'1.2.3.5'", "'9.2.3.4'"],
  UUID: ['1', '2', '3'].map((digit) => `'${digit.repeat(8)}-1111-1111-1111-111111111111'`) as [
    string,
    string,
    string,
  ],
  'DOUBLE[]': ['ARRAY[1.0, null]', 'ARRAY[2.0, 1.0]', 'ARRAY[3.0, 5.0]'],
};

/** Types that cannot represent null and store zero instead. */
const NEVER_NULL: ReadonlySet<string> = new Set(['BOOLEAN', 'BYTE', 'SHORT']);

const isNumeric = (type: string): boolean =>
  /^(?:BYTE|SHORT|INT|LONG|FLOAT|DOUBLE|DECIMAL\(.*\))$/u.test(type);

const columnOf = (type: string): string => type.toLowerCase().replaceAll(/\W/gu, '_');

/** The groups. Each row is the index of its value, or null for a null value. */
const GROUPS: Readonly<Record<string, readonly (number | null)[]>> = {
  none: [],
  nulls: [null, null, null],
  one: [1],
  some: [null, 2, 0, null, 1, 1, null],
};

async function prepare(): Promise<void> {
  const types = Object.keys(TYPES);
  const columns = types.map((type) => `c_${columnOf(type)} ${type}`).join(', ');
  const head = `ts TIMESTAMP, g SYMBOL, n INT, y DOUBLE, ${columns}`;
  await rowsOf(server, `CREATE TABLE t (${head}) TIMESTAMP(ts) PARTITION BY DAY`);
  const rows = Object.entries(GROUPS).flatMap(([group, positions], number) =>
    positions.map((position, row) => {
      const cells = types.map((type) => (position === null ? 'null' : TYPES[type]?.[position]));
      const hour = String(row * 9).padStart(2, '0');
      const at = `dateadd('h', ${hour}, '2024-05-01'::timestamp)`;
      return `(${at}, '${group}', ${String(number)}, ${String(row + 1)}, ${cells.join(', ')})`;
    }),
  );
  for (const row of rows) {
    await rowsOf(server, `INSERT INTO t VALUES ${row}`);
  }
}

const GROUP_NAMES = Object.keys(GROUPS);

/** Returns the rows of each group with the values that a plain query returns. */
async function groupsOf(type: string, spellings: readonly string[]): Promise<Row[][]> {
  const column = `c_${columnOf(type)}`;
  const shown = new Map<string, unknown[]>();
  for (const [group, value] of await rowsOf(server, `SELECT g, ${column} FROM t`)) {
    shown.set(String(group), [...(shown.get(String(group)) ?? []), value]);
  }
  const filled = NEVER_NULL.has(type);
  return Object.entries(GROUPS).map(([group, positions]) =>
    positions.map((position, row) => {
      // A zero that replaces null ranks below the lowest value. For BOOLEAN the replacement is
      // false, which is the lowest value.
      const lowest = type === 'BOOLEAN' ? 0 : -1;
      const equal = position === null ? -1 : spellings.indexOf(spellings[position] ?? '');
      const written = position === null ? '0' : String(spellings[position]).replace(/m$/u, '');
      const numeric = isNumeric(type) && (filled || position !== null);
      return {
        shown: position === null && !filled ? null : shown.get(group)?.[row],
        rank: position === null ? (filled ? lowest : null) : equal,
        number: numeric ? Number(written) : null,
        key: row + 1,
        seconds: row * 9 * 3600,
      };
    }),
  );
}

/** Value of each argument after the first, by its name in the registry. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  descending: 'true',
  digits: '3',
  max: '12.0',
  method: "'locf'",
  min: '0.0',
  p: '0.5',
  places: '2',
  precision: '10',
  separator: "','",
  timestamp: 'ts',
  width: '8',
};

interface Form {
  readonly name: string;
  /** Arguments after the column. If the only argument is `*`, the aggregate counts rows. */
  readonly rest: readonly string[];
}

/**
 * Returns each aggregate with its arguments after the column, according to its signatures in the
 * registry.
 */
async function aggregates(): Promise<Form[]> {
  const query = "SELECT name, signature FROM functions() WHERE family = 'aggregate'";
  return (await rowsOf(server, query)).flatMap((row) => {
    const [name, signature] = [String(row[0]), String(row[1])];
    if (signature.endsWith('()')) {
      return [{ name, rest: ['*'] }];
    }
    const [needed = '', optional] = signature.slice(name.length + 1, -1).split(' [, ');
    const rest = needed.split(', ').slice(1);
    const forms = optional === undefined ? [rest] : [rest, [...rest, optional.slice(0, -1)]];
    return forms.map((names) => ({ name, rest: names.map((one) => ARGUMENTS[one] ?? 'y') }));
  });
}

const callOf = ({ name, rest }: Form, column: string): string =>
  rest[0] === '*' ? `${name}()` : `${name}(${[column, ...rest].join(', ')})`;

/** Parses a list given as an array, as JSON, or as a PostgreSQL text array. */
function listOf(found: unknown): unknown {
  if (typeof found !== 'string') {
    return found;
  }
  if (found.startsWith('[')) {
    return JSON.parse(found);
  }
  const parts = found.slice(1, -1).split(',');
  return parts.map((part) => (part === 'NULL' ? null : part === '' ? null : part));
}

/** Whether a value matches: numbers approximately, lists by element, JSON by value. */
function same(found: unknown, expected: unknown, slack: number): boolean {
  if (Array.isArray(expected)) {
    const read = listOf(found);
    const listed = Array.isArray(read) && read.length === expected.length;
    return listed && expected.every((one, at) => same(read[at], one, slack));
  }
  if (typeof expected === 'boolean') {
    // min(BOOLEAN) is a number; string arrays contain the name of the value.
    return [expected, String(expected), Number(expected)].some((one) => one === found);
  }
  const nothing = [null, ''].some((none) => found === none || expected === none);
  const [left, right] = [Number(found), Number(expected)];
  if (!nothing && !Number.isNaN(left + right)) {
    return Math.abs(left - right) <= slack * Math.max(1, Math.abs(left), Math.abs(right));
  }
  return found === expected;
}

/** Returns the result according to the model; undefined if no model covers the type. */
function expectedOf({ name, rest }: Form, type: string, rows: readonly Row[]): unknown {
  const property = PROPERTIES.get(name);
  if (property !== undefined) {
    return !property.numeric || isNumeric(type) ? property.model(rows, rest) : undefined;
  }
  const numeric = OF_NUMBERS.get(name);
  if (numeric !== undefined) {
    return isNumeric(type) ? numeric(rows, rest) : undefined;
  }
  const model = OF_VALUES.get(name);
  if (model === undefined) {
    throw new Error(`add a model for ${name} to aggregate-models.ts`);
  }
  // Arrays are concatenated; null arrays contribute no elements.
  return model(name === 'array_agg' && type.endsWith('[]') ? known(rows) : rows, rest);
}

const isProperty = (expected: unknown): expected is Property =>
  typeof expected === 'object' && expected !== null && 'holds' in expected;

/** Values that replace null in types without null. */
const NULL_REPLACEMENTS: Readonly<Record<string, unknown>> = {
  BOOLEAN: false,
  BYTE: 0,
  CHAR: '',
  SHORT: 0,
};

/** Returns the problem with a result, if any. */
function wrong(found: unknown, form: Form, type: string, rows: readonly Row[]): string[] {
  const expected = expectedOf(form, type, rows);
  // Aggregates that select a value, and bit aggregates, return the type of their argument.
  const chosen = OF_VALUES.has(form.name) || PROPERTIES.has(form.name);
  const typed = chosen || form.name.startsWith('bit_');
  const zero = typed && expected === null ? NULL_REPLACEMENTS[type] : null;
  if (expected === undefined) {
    // If there is no model, the aggregate of no values must at least be null or empty.
    const fault = known(rows).length === 0 && found !== null && found !== '';
    return fault ? [`${JSON.stringify(found)} of nothing`] : [];
  }
  // avg(DECIMAL) is rounded to the scale of its type.
  const slack = type.startsWith('DECIMAL') && form.name === 'avg' ? 0.005 : 1e-6;
  const right = isProperty(expected)
    ? expected.holds(found === NULL_REPLACEMENTS[type] && known(rows).length === 0 ? null : found)
    : (zero !== undefined && found === zero) || same(found, expected, slack);
  const shown = isProperty(expected) ? expected.name : JSON.stringify(expected);
  return right ? [] : [`${JSON.stringify(found)}, not ${shown}`];
}

/**
 * Returns the results of one call for all groups, in each query form. Groups without rows are
 * omitted.
 */
async function answers(
  call: string,
  some: unknown,
): Promise<Record<string, ReadonlyMap<string, unknown>>> {
  const keyed = async (query: string): Promise<Map<string, unknown>> =>
    new Map((await rowsOf(server, query)).map((row) => [String(row[0]), row[1]]));
  const complete = ['none', 'nulls'].map(async (group): Promise<[string, unknown]> => {
    const rows = await rowsOf(server, `SELECT ${call} FROM t WHERE g = '${group}'`);
    return [group, rows[0]?.[0]];
  });
  const filters = GROUP_NAMES.map((group) => `${call} FILTER (WHERE g = '${group}')`).join(', ');
  const filtered = await rowsOf(server, `SELECT ${filters} FROM t`);
  const byNumber = await keyed(`SELECT n, ${call} FROM t GROUP BY n`);
  return {
    complete: new Map([...(await Promise.all(complete)), ['some', some]]),
    'by symbol': await keyed(`SELECT g, ${call} FROM t GROUP BY g`),
    'by number': new Map([...byNumber].map(([at, one]) => [GROUP_NAMES[Number(at)] ?? '', one])),
    sampled: await keyed(`SELECT g, ${call} FROM t SAMPLE BY 1y`),
    filtered: new Map(GROUP_NAMES.map((group, at) => [group, filtered[0]?.[at]])),
  };
}

/** Returns the problems with a call, by group and checked separately for each query form. */
async function wrongOfGroups(
  form: Form,
  type: string,
  groups: Row[][],
  some: unknown,
): Promise<string[]> {
  const call = callOf(form, `c_${columnOf(type)}`);
  return Object.entries(await answers(call, some)).flatMap(([way, values]) =>
    GROUP_NAMES.flatMap((group, at) => {
      const alone = way === 'complete' || way === 'filtered';
      const left = way === 'complete' && group === 'one';
      if (left || (group === 'none' && !alone)) {
        return [];
      }
      const faults = wrong(values.get(group), form, type, groups[at] ?? []);
      return faults.map((fault) => `${call} ${way}, ${group}: ${fault}`);
    }),
  );
}

const WINDOWS: readonly (readonly [string, (rows: Row[], at: number) => Row[]])[] = [
  ['PARTITION BY g', (rows) => rows],
  [
    'PARTITION BY g ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING',
    (rows) => rows,
  ],
  [
    'PARTITION BY g ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW',
    (rows, at) => rows.slice(Math.max(0, at - 2), at + 1),
  ],
];

/** Returns the problems with a call over windows, if windows accept the call. */
async function wrongOfWindows(form: Form, type: string, groups: Row[][]): Promise<string[]> {
  const call = callOf(form, `c_${columnOf(type)}`);
  const found: string[] = [];
  for (const [window, frameOf] of WINDOWS) {
    const query = `SELECT n, y, ${call} OVER (${window}) FROM t`;
    const { status, error, rows } = await send(server, query);
    if (status >= 500) {
      found.push(`${query}: ${String(error)}`);
    }
    for (const [group, key, value] of error === undefined ? rows : []) {
      const frame = frameOf(groups[Number(group)] ?? [], Number(key) - 1);
      const at = `${GROUP_NAMES[Number(group)] ?? ''} ${String(key)}`;
      for (const fault of wrong(value, form, type, frame)) {
        found.push(`${call} OVER (${window}), ${at}: ${fault}`);
      }
    }
  }
  return found;
}

for (const [type, spellings] of Object.entries(TYPES)) {
  test(`aggregates of ${type} match the model`, async (t) => {
    const groups = await groupsOf(type, spellings);
    const found: string[] = [];
    let accepted = 0;
    for (const form of await aggregates()) {
      const call = callOf(form, `c_${columnOf(type)}`);
      const probe = await send(server, `SELECT ${call} FROM t WHERE g = 'some'`);
      t.true(probe.status < 500, `${call}: ${probe.error ?? ''}`);
      if (probe.error === undefined) {
        accepted += 1;
        found.push(...(await wrongOfGroups(form, type, groups, probe.rows[0]?.[0])));
        found.push(...(await wrongOfWindows(form, type, groups)));
      }
    }
    t.deepEqual(found, []);
    t.true(accepted > 10, `${String(accepted)} aggregates of ${type}`);
  });
}
