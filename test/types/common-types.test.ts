/**
 * Values of every pair of types, in expressions that have a common type: `=`, IN, BETWEEN, CASE,
 * coalesce, nullif, greatest and least. Equivalent expressions must give the same result, and none
 * may cause an internal error.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, run } from '../scenario/statements.js';

/** Values of each type, including strings that represent numbers or times, and other strings. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  BOOLEAN: ['true', 'false'],
  BYTE: ['1'],
  SHORT: ['300'],
  INT: ['70000', '1', 'null'],
  LONG: ['5000000000', '1'],
  FLOAT: ['1.5', 'null'],
  DOUBLE: ['2.5', '70000.0'],
  'DECIMAL(10,2)': ['12.34m', '1.00m', 'null'],
  CHAR: ["'c'", "'7'"],
  VARCHAR: ["'text'", "'12'"],
  STRING: ["'abc'", 'null'],
  SYMBOL: ["'sym'"],
  DATE: ["'2026-01-02'", 'null'],
  TIMESTAMP: ["'2026-01-02T03:04:05.000006Z'", "'2026-01-02'"],
  TIMESTAMP_NS: ["'2026-01-02T03:04:05.000006789Z'", 'null'],
  IPV4: ["'10.0.0.1'"],
  UUID: ["'11111111-2222-3333-4444-555555555555'"],
  LONG256: ["'0x1234'"],
};

const COLUMNS = Object.entries(VALUES).flatMap(([type, values]) =>
  values.map((value) => ({ type, value })),
);

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  const columns = COLUMNS.map(({ type }, index) => `c${index} ${type}`);
  await run(
    server,
    `CREATE TABLE v (${columns.join(', ')})`,
    `INSERT INTO v VALUES (${COLUMNS.map(({ value }) => value).join(', ')})`,
  );
});

test.after.always(async () => {
  await server.stop();
});

interface Outcome {
  /** `null` if the expression is refused. */
  readonly value: string | null;
  readonly message: string;
}

const REFUSED: Outcome = { value: null, message: '' };

async function valueOf(expression: string): Promise<Outcome> {
  const { dataset, error } = await exec(server, `SELECT ${expression} FROM v`);
  return error === undefined
    ? { value: JSON.stringify(dataset?.[0]?.[0]), message: '' }
    : { ...REFUSED, message: error };
}

for (const [index, { type, value }] of COLUMNS.entries()) {
  test(`${type} ${value} compares consistently with every other value`, async (t) => {
    const a = `c${index}`;
    for (const [other, { type: otherType, value: otherValue }] of COLUMNS.entries()) {
      const b = `c${other}`;
      const [
        own,
        equal,
        within,
        minimum,
        maximum,
        between,
        first,
        chosen,
        nullif,
        greatest,
        smallest,
      ] = await Promise.all(
        [
          a,
          `${a} = ${b}`,
          `${a} IN (${b})`,
          `${a} >= ${b}`,
          `${a} <= ${b}`,
          `${a} BETWEEN ${b} AND ${b}`,
          `coalesce(${a}, ${b})`,
          `CASE WHEN ${a} IS NOT NULL THEN ${a} ELSE ${b} END`,
          `nullif(${a}, ${b})`,
          `greatest(${a}, ${b})`,
          `least(${a}, ${b})`,
        ].map(valueOf),
      );
      const pair = `${type} ${value}, ${otherType} ${otherValue}`;
      const all = [
        equal,
        within,
        minimum,
        maximum,
        between,
        first,
        chosen,
        nullif,
        greatest,
        smallest,
      ];
      for (const outcome of all) {
        t.notRegex(outcome?.message ?? '', /^internal error/, pair);
      }
      t.is(within?.value, equal?.value, `${pair}: IN`);
      // BETWEEN is never true for nulls.
      const hasNull = [value, otherValue].includes('null');
      if (minimum?.value !== null && maximum?.value !== null && !hasNull) {
        const both = String(minimum?.value === 'true' && maximum?.value === 'true');
        t.is(between?.value, both, `${pair}: BETWEEN`);
      }
      if (first?.value !== null && chosen?.value !== null) {
        t.is(first?.value, chosen?.value, `${pair}: coalesce and CASE`);
      }
      if (nullif?.value !== null && equal?.value === 'false') {
        t.is(nullif?.value ?? null, own?.value ?? null, `${pair}: nullif`);
      }
      t.is(greatest?.value === null, smallest?.value === null, `${pair}: greatest and least`);
    }
  });
}
