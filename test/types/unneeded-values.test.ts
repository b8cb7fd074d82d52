/** Casts from constants and parameters to every type, and values that no row needs. */
import test from 'ava';
import type pg from 'pg';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec } from '../torture/client.js';
import { pgClient } from '../pg-client.js';

let server: TestServer;
let client: pg.Client;

test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  client = pgClient(server.pg);
  await client.connect();
  await exec(server, 'CREATE TABLE t (a DECIMAL(10,2), b DOUBLE, s VARCHAR, ts TIMESTAMP)');
  await exec(
    server,
    "INSERT INTO t VALUES (1.00m, 1e300, 'x', '2020-01-01'), (0.00m, 2, '1.5', '2020-01-01')",
  );
});

test.after.always(async () => {
  await client.end();
  await server.stop();
});

const cell = async (sql: string): Promise<unknown> => (await exec(server, sql)).dataset[0]?.[0];

test('a one-digit string or CHAR is converted to a decimal', async (t) => {
  for (let digit = 0; digit <= 9; digit += 1) {
    t.is(await cell(`SELECT cast('${digit}' as decimal(9,0))`), `${digit}`);
    t.is(await cell(`SELECT '${digit}'::char::decimal(9,2)`), `${digit}.00`);
    t.is(
      await cell(`SELECT cast(c as decimal(9,2)) FROM (SELECT '${digit}'::char c)`),
      `${digit}.00`,
    );
  }
  await t.throwsAsync(cell("SELECT cast('x' as decimal(9,2))"), {
    message: /inconvertible value: `x` \[STRING -> DECIMAL\(9,2\)\]/,
  });
});

test('decimal literals may have up to 76 digits', async (t) => {
  for (const digits of [1, 9, 10, 18, 19, 38, 39, 75, 76]) {
    const text = '1234567890'.repeat(8).slice(0, digits);
    t.is(await cell(`SELECT ${text}m`), text);
    t.is(await cell(`SELECT -${text}m`), `-${text}`);
  }
  await t.throwsAsync(cell(`SELECT ${'1'.repeat(77)}m`), {
    message: /exceeds maximum allowed precision of 76/,
  });
});

test("a string added to a time is read as a number in the time's unit", async (t) => {
  t.is(await cell("SELECT '2020-01-01'::timestamp - 1000::varchar"), '2019-12-31T23:59:59.999000Z');
  t.is(await cell('SELECT ts - 1000::varchar FROM t'), '2019-12-31T23:59:59.999000Z');
  t.is(await cell("SELECT ts + '1000' FROM t"), '2020-01-01T00:00:00.001000Z');
});

test('CAST truncates parameters the same way as constants', async (t) => {
  for (const [type, value] of [
    ['SHORT', '70000'],
    ['BYTE', '300'],
    ['SHORT', '-40000'],
    ['INT', '5'],
  ] as const) {
    const constant = await cell(`SELECT cast(${value} as ${type})`);
    const { rows } = await client.query({
      text: `SELECT cast($1 AS ${type}) x`,
      values: [value],
      rowMode: 'array',
    });
    t.deepEqual(rows, [[constant]], `${type} ${value}`);
  }
  const { rows } = await client.query({ text: 'SELECT ~$1', values: ['5'], rowMode: 'array' });
  t.deepEqual(
    rows.map(([x]: unknown[]) => Number(x)),
    [-6],
  );
});

test('unused branches of coalesce and CASE are not evaluated', async (t) => {
  for (const sql of [
    'SELECT coalesce(a, cast(b as decimal(10,2))) FROM t',
    'SELECT coalesce(a, cast(s as decimal(10,2))) FROM t',
    'SELECT coalesce(a, a / a) FROM t',
    'SELECT CASE WHEN a > 5 THEN cast(b as decimal(10,2)) ELSE a END FROM t',
  ]) {
    const { dataset } = await exec(server, sql);
    t.deepEqual(
      dataset.map(([x]) => Number(x)),
      [1, 0],
      sql,
    );
  }
});
