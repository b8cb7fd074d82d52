/**
 * INSERT, UPDATE and COPY of a Parquet file must all convert a value in the same way, or all refuse
 * it.
 */
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';

import { load, write } from '../copy/harness.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, run } from '../scenario/statements.js';

/** Literals of each type. */
const SOURCES: Readonly<Record<string, readonly string[]>> = {
  BOOLEAN: ['true', 'false'],
  BYTE: ['1', '-7'],
  SHORT: ['300', '-2'],
  INT: ['70000', '-3', 'null'],
  LONG: ['5000000000', '-4', 'null'],
  FLOAT: ['1.5', '-2.25', 'null'],
  DOUBLE: ['2.5', '-1e10', 'null'],
  'DECIMAL(10,2)': ['12.34m', '-1m', 'null'],
  CHAR: ["'c'", "'7'"],
  VARCHAR: ["'text'", "'12'", "'1.5'", "'2026-01-02T03:04:05.000006Z'", "'10.0.0.1'", "''", 'null'],
  DATE: ["'2026-01-02'", 'null'],
  TIMESTAMP: ["'2026-01-02T03:04:05.000006Z'", 'null'],
  TIMESTAMP_NS: ["'2026-01-02T03:04:05.000006789Z'", 'null'],
  IPV4: ["'10.0.0.1'", 'null'],
  UUID: ["'11111111-2222-3333-4444-555555555555'", 'null'],
  LONG256: ["'0x1234'", 'null'],
};

const TARGETS: readonly string[] = [...Object.keys(SOURCES), 'STRING', 'SYMBOL', 'GEOHASH(4c)'];

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  mkdirSync(join(server.root, 'import'), { recursive: true });
});

test.after.always(async () => {
  await server.stop();
});

const named = (type: string): string => type.replaceAll(/\W/g, '_').toLowerCase();

type Way = (target: string, source: string) => Promise<string | undefined>;

const refusalOf = async (statement: string): Promise<string | undefined> =>
  (await exec(server, statement)).error;

/** Ways to copy a table's single row into another table. Each returns the refusal, if any. */
const WAYS: Readonly<Record<string, Way>> = {
  INSERT: (target, source) => refusalOf(`INSERT INTO ${target}(v) SELECT v FROM ${source}`),
  UPDATE: async (target, source) => {
    await run(server, `INSERT INTO ${target}(k) VALUES (1)`);
    return refusalOf(`UPDATE ${target} SET v = ${source}.v FROM ${source}`);
  },
  COPY: async (target, source) => {
    const { status, counts, message } = await load(
      server,
      `COPY ${target} FROM '${source}.parquet'`,
    );
    return status === 'finished' && counts[2] === 0 ? undefined : (message ?? 'errors');
  },
};

const is = (type: string, ...names: readonly string[]): boolean => names.includes(type);
const isInteger = (type: string): boolean => is(type, 'BYTE', 'SHORT', 'INT', 'LONG');
const isFloating = (type: string): boolean => is(type, 'FLOAT', 'DOUBLE');
const isText = (type: string): boolean => is(type, 'VARCHAR', 'STRING', 'SYMBOL');
const isTime = (type: string): boolean => is(type, 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS');

/** Whether this way refuses a conversion that other ways accept. */
function refuses(way: string, from: string, to: string): boolean {
  const isShown = isInteger(from) || isFloating(from) || isTime(from);
  // As in QuestDB, a statement does not store a number as a string, but cells read from files are
  // converted.
  const isCell = (isShown && isText(to)) || (isInteger(from) && to === 'IPV4');
  // UPDATE does not truncate numbers.
  return (way !== 'COPY' && isCell) || (way === 'UPDATE' && isFloating(from) && isInteger(to));
}

for (const [type, literals] of Object.entries(SOURCES)) {
  test.serial(`${type} values are converted the same way by INSERT, UPDATE and COPY`, async (t) => {
    for (const [number, literal] of literals.entries()) {
      const source = `src_${named(type)}_${String(number)}`;
      await run(
        server,
        `CREATE TABLE ${source} (v ${type})`,
        `INSERT INTO ${source} VALUES (${literal})`,
      );
      await write(server, `COPY ${source} TO '${source}' WITH FORMAT PARQUET PARTITION_BY NONE`);
      const file = `${source}.parquet`;
      copyFileSync(join(server.root, 'export', file), join(server.root, 'import', file));
      for (const to of TARGETS) {
        const found: Record<string, string> = {};
        for (const [way, put] of Object.entries(WAYS)) {
          const target = `${source}_${named(to)}_${way}`;
          await run(server, `CREATE TABLE ${target} (v ${to}, k INT)`);
          const refusal = await put(target, source);
          const isTyped = refuses(way, type, to);
          if (isTyped) {
            t.truthy(refusal, `${way} of ${type} ${literal} into ${to}`);
          } else {
            const { dataset } = await exec(server, `SELECT v FROM ${target}`);
            found[way] = refusal === undefined ? JSON.stringify(dataset) : 'refused';
          }
        }
        const outcomes = new Set(Object.values(found));
        t.is(outcomes.size, 1, `${type} ${literal} into ${to}: ${JSON.stringify(found)}`);
      }
    }
  });
}

test.serial('storing a number that is not a valid IPv4 address is refused', async (t) => {
  await run(server, 'CREATE TABLE far (v LONG)', 'CREATE TABLE addresses (v IPV4)');
  await run(server, 'INSERT INTO far VALUES (5000000000)');
  await write(server, "COPY far TO 'far' WITH FORMAT PARQUET PARTITION_BY NONE");
  copyFileSync(join(server.root, 'export/far.parquet'), join(server.root, 'import/far.parquet'));
  const { status, message } = await load(server, "COPY addresses FROM 'far.parquet'");
  t.is(status, 'failed');
  t.regex(message ?? '', /inconvertible value: `5000000000`/);
});
