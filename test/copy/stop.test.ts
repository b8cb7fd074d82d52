/**
 * Jobs that do not complete: they are cancelled, interrupted by kill -9, or stopped with the
 * server.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, restart, rows, run } from '../scenario/statements.js';
import { ended, exported, manyRows, put, reached, start } from './harness.js';
import { pgClient } from '../pg-client.js';

const ROWS = 1_000_000;
const IMPORT = "COPY many FROM 'many.csv' WITH HEADER true TIMESTAMP ts PARTITION BY DAY";
/** A query whose rows take days to compute. */
const ENDLESS =
  'SELECT b.x FROM long_sequence(1000000) a CROSS JOIN long_sequence(1000000) b ' +
  'WHERE a.x * b.x % 7 = 3';
const EXPORT = `COPY (${ENDLESS}) TO 'endless' WITH FORMAT CSV`;
/** No row passes the filter, so the job is stopped before its first row. */
const BARREN = `COPY (${ENDLESS} + 0.5) TO 'barren' WITH FORMAT PARQUET`;
const STAGED =
  `COPY ((SELECT dateadd('s', x::int, '2024-01-01') ts, x FROM (${ENDLESS})) TIMESTAMP(ts)) ` +
  "TO 'staged' WITH FORMAT PARQUET PARTITION_BY DAY";

async function withRoot(
  t: ExecutionContext,
  body: (server: TestServer) => Promise<TestServer>,
): Promise<void> {
  t.timeout(180_000);
  const root = await mkdtemp(join(tmpdir(), 'tidemark-copy-'));
  const first = await startTestServer({ root });
  try {
    await put(first, 'many.csv', manyRows(ROWS));
    await (await body(first)).stop();
  } finally {
    first.process.kill('SIGKILL');
    await rm(root, { recursive: true, force: true });
  }
}

/** Asserts that no table or file from the jobs above exists. */
async function removesEverything(t: ExecutionContext, server: TestServer): Promise<void> {
  t.deepEqual(
    await rows(server, "SELECT table_name FROM tables() WHERE table_name NOT LIKE 'sys.%'"),
    [],
  );
  t.deepEqual(await exported(server), []);
}

const JOBS = [
  ['an import', IMPORT, 'import', 'sys.text_import_log', 'partition_import'],
  ['an export', EXPORT, 'export', 'sys.copy_export_log', 'sending_data'],
  ['an export without rows', BARREN, 'export', 'sys.copy_export_log', 'sending_data'],
  ['a staged export', STAGED, 'export', 'sys.copy_export_log', 'populating_temp_table'],
] as const;

test.serial('a job cancelled midway leaves no data', async (t) => {
  await withRoot(t, async (server) => {
    for (const [what, statement, kind, log, phase] of JOBS) {
      const id = await start(server, statement);
      await reached(server, id, log, phase);
      t.deepEqual(await rows(server, `COPY '${id}' CANCEL`), [[id, 'cancelled']], what);
      const { status, message } = await ended(server, id, kind);
      t.deepEqual([status, message], ['cancelled', 'cancelled by user'], what);
      await removesEverything(t, server);
    }
    t.deepEqual(
      await rows(server, "SELECT query FROM query_activity() WHERE query LIKE 'COPY%'"),
      [],
    );
    return server;
  });
});

for (const [what, statement, kind, log, phase] of JOBS) {
  test.serial(`kill -9 during ${what} leaves no data, and the log table reports it`, async (t) => {
    await withRoot(t, async (server) => {
      const id = await start(server, statement);
      await reached(server, id, log, phase);
      const after = await restart(server);
      const { status, message } = await ended(after, id, kind);
      t.is(status, 'failed');
      t.regex(message ?? '', /^the server stopped before the job ended/);
      await removesEverything(t, after);
      return after;
    });
  });
}

test.serial('a server shutdown stops its jobs, and the log table reports it', async (t) => {
  await withRoot(t, async (server) => {
    const ids = [await start(server, IMPORT), await start(server, EXPORT)];
    await reached(server, ids[1] ?? '', 'sys.copy_export_log', 'sending_data');
    t.is(await server.stop(), 0);
    const after = await startTestServer({ root: server.root });
    const ends = [
      await ended(after, ids[0] ?? '', 'import'),
      await ended(after, ids[1] ?? '', 'export'),
    ];
    t.deepEqual(
      ends.map(({ message }) => message),
      ['the server is shutting down', 'the server is shutting down'],
    );
    await removesEverything(t, after);
    return after;
  });
});

test.serial('the log table may be dropped; the next job re-creates it', async (t) => {
  await withRoot(t, async (server) => {
    await start(server, "COPY '' FROM 'x'".replace("''", 'x'));
    await run(server, 'DROP TABLE sys.text_import_log');
    const id = await start(server, "COPY x FROM 'x'");
    t.is((await ended(server, id, 'import')).status, 'failed');
    const ddl = await rows(server, 'SHOW CREATE TABLE sys.text_import_log');
    t.regex(String(ddl[0]?.[0]), /PARTITION BY DAY TTL 3 DAYS/);
    return server;
  });
});

test.serial('COPY and COPY … CANCEL return their rows over the wire protocol', async (t) => {
  await withRoot(t, async (server) => {
    const client = pgClient(server.pg);
    await client.connect();
    try {
      await client.query('CREATE TABLE t (x INT)');
      const { rows: found } = await client.query<{ id: string }>(
        "COPY t TO 'x' WITH FORMAT PARQUET",
      );
      const id = found[0]?.id ?? '';
      t.regex(id, /^[\da-f]{16}$/);
      t.is((await ended(server, id, 'export')).status, 'finished');
      const again = await client.query({ name: 'c', text: `COPY '${id}' CANCEL` });
      t.deepEqual(again.rows, [{ id, status: 'finished' }]);
    } finally {
      await client.end();
    }
    t.deepEqual(await exported(server), ['x.parquet']);
    t.is((await exec(server, 'DROP TABLE t')).error, undefined);
    return server;
  });
});
