/**
 * For every type, the first few of a very large number of rows can be found within the default
 * limits.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec } from '../torture/client.js';

const ROWS = 3_000_000;

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  await exec(
    server,
    'CREATE TABLE t AS (SELECT x::timestamp ts, ' +
      "CASE WHEN x % 7 = 0 THEN rpad((x * 7919 % 1000003)::varchar, 130, '.') END s, " +
      '(x * 7919 % 1000003)::decimal(20, 2) d, x * 7919 % 1000003 n ' +
      `FROM long_sequence(${ROWS})) TIMESTAMP(ts) PARTITION BY DAY`,
    300_000,
  );
});

test.after.always(async () => {
  await server.stop();
});

/** Contents of row `x`. */
const numberOf = (x: number): number => (x * 7919) % 1_000_003;
const textOf = (n: number): string => String(n).padEnd(130, '.');

for (const direction of ['', 'DESC']) {
  test(`ORDER BY strings ${direction} LIMIT needs memory only for returned rows`, async (t) => {
    const numbers: number[] = [];
    for (let x = 7; x <= ROWS; x += 7) {
      numbers.push(numberOf(x));
    }
    const texts = numbers.map(textOf).sort();
    const first = direction === '' ? texts.slice(0, 10) : texts.reverse().slice(0, 10);
    const { dataset } = await exec(
      server,
      `SELECT s FROM t WHERE s IS NOT NULL ORDER BY s ${direction} LIMIT 10`,
    );
    t.deepEqual(dataset.flat(), first);
  });
}

test('ORDER BY a decimal and a string with LIMIT returns the right rows', async (t) => {
  const { dataset } = await exec(
    server,
    'SELECT d, n FROM t WHERE s IS NOT NULL ORDER BY d DESC, s LIMIT 10',
  );
  const numbers: number[] = [];
  for (let x = 7; x <= ROWS; x += 7) {
    numbers.push(numberOf(x));
  }
  numbers.sort((a, b) => b - a);
  t.deepEqual(
    dataset.map(([d, n]) => [String(d), n]),
    numbers.slice(0, 10).map((n) => [`${n}.00`, n]),
  );
});
