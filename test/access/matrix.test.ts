/**
 * Runs each kind of statement with all required permissions, and then with each one missing in
 * turn.
 */
import test from 'ava';

import type { TestServer } from '../golden/server.js';
import { exec, run, startAccessServer } from './harness.js';
import { type Row, ROWS } from './matrix.js';

const WHO = 'u:p';

let server: TestServer;

test.before(async () => {
  server = await startAccessServer();
  await run(
    server,
    'CREATE TABLE t (ts TIMESTAMP, a INT, b INT) TIMESTAMP(ts) PARTITION BY DAY WAL',
    "INSERT INTO t VALUES ('2026-01-01', 1, 2)",
    'CREATE TABLE r (x INT)',
    'CREATE VIEW v AS (SELECT a FROM t)',
    "CREATE USER u WITH PASSWORD 'p'",
    'CREATE USER other',
    'CREATE GROUP g',
  );
});

test.after.always(async () => {
  await server.stop();
});

/** Runs a statement as a user with exactly these permissions and returns its error. */
async function attempt(row: Row, permissions: readonly string[]): Promise<string> {
  await run(server, ...(row.before ?? []), 'REVOKE ALL FROM u', 'GRANT HTTP TO u');
  await run(server, ...permissions.map((need) => `GRANT ${need} TO u`));
  const { error = '' } = await exec(server, WHO, row.sql);
  await run(server, ...(row.after ?? []));
  return error;
}

/** A grant on a table covers its columns, so a refusal may name either the column or the table. */
function isRefusal(error: string, need: string): boolean {
  const denied = /^Access denied \[(.*)\]$/.exec(error)?.[1];
  if (denied === undefined) {
    return false;
  }
  const table = need.replace(/\(.*$/, '');
  return (
    denied === need.replace(' ON ', ' on ') || denied.startsWith(table.replace(' ON ', ' on '))
  );
}

for (const row of ROWS) {
  test.serial(row.sql, async (t) => {
    t.notRegex(
      await attempt(row, row.needs),
      /^Access denied/,
      'the statement runs with all required permissions',
    );
    for (const need of row.needs) {
      const error = await attempt(
        row,
        row.needs.filter((other) => other !== need),
      );
      t.true(isRefusal(error, need), `without ${need}: '${error}'`);
    }
  });
}
