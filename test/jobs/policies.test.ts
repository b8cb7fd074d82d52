/** Storage policies: their definitions, their effects, and the states of their jobs. */
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, rows, run } from '../scenario/statements.js';
import { until } from '../until.js';

const OPTIONS = { set: ['storage.policy.check.interval=100ms'] };
const TABLE = `CREATE TABLE t (ts TIMESTAMP, s SYMBOL, x LONG) TIMESTAMP(ts) PARTITION BY HOUR`;
/** Six hours of rows. The last hour is active; an hour ends when the next begins. */
const ROWS = `INSERT INTO t SELECT dateadd('m', (10 * x)::int, '2026-03-01T00:00:00Z'), 'a', x
  FROM long_sequence(35)`;
const PARQUET = "SELECT name FROM table_partitions('t') WHERE isParquet ORDER BY name";
const NAMES = "SELECT name FROM table_partitions('t') ORDER BY name";

async function withPolicies(body: (server: TestServer) => Promise<TestServer>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-policies-'));
  const first = await startTestServer({ ...OPTIONS, root });
  try {
    await (await body(first)).stop();
  } finally {
    first.process.kill('SIGKILL');
    await rm(root, { recursive: true, force: true });
  }
}

async function names(server: TestServer, query: string): Promise<readonly string[]> {
  return (await rows(server, query)).map((row) => String(row[0]).slice(11));
}

async function becomes(server: TestServer, query: string, expected: string[]): Promise<void> {
  const is = async (): Promise<boolean> => (await names(server, query)).join() === expected.join();
  await until(is, `${query}: ${expected.join()}`);
}

async function error(server: TestServer, statement: string): Promise<string> {
  const answer = await exec(server, statement);
  return `${answer.position ?? ''}: ${answer.error ?? 'no error'}`;
}

async function job(server: TestServer): Promise<Record<string, unknown>> {
  const columns = ['state', 'last_error', 'runs', 'failures', 'total_micros'];
  const found = await rows(
    server,
    `SELECT ${columns.join()} FROM jobs() WHERE kind = 'policy' AND name = 't'`,
  );
  return Object.fromEntries(columns.map((column, index) => [column, found[0]?.[index]]));
}

test('partitions become Parquet at the given age, and late rows are converted too', async (t) => {
  await withPolicies(async (first) => {
    let server = first;
    await run(server, TABLE, ROWS);
    const before = await rows(server, 'SELECT * FROM t');
    await run(server, 'ALTER TABLE t SET STORAGE POLICY(TO PARQUET 2h)');
    await becomes(server, PARQUET, ['00', '01', '02']);
    t.deepEqual(await rows(server, 'SELECT * FROM t'), before);
    await run(server, "INSERT INTO t VALUES ('2026-03-01T01:30:00Z', 'late', 100)");
    t.deepEqual(await rows(server, "SELECT x FROM t WHERE s = 'late'"), [[100]]);
    await becomes(server, PARQUET, ['00', '01', '02']);
    // After this row, the earlier partitions are old enough to be converted.
    await run(server, "INSERT INTO t VALUES ('2026-03-01T06:00:00Z', 'b', 101)");
    await becomes(server, PARQUET, ['00', '01', '02', '03']);
    const done = await job(server);
    t.true(Number(done['runs']) >= 1 && Number(done['total_micros']) > 0);
    t.is(done['failures'], 0);
    server.process.kill('SIGKILL');
    await once(server.process, 'exit');
    server = await startTestServer({ ...OPTIONS, root: server.root });
    await run(server, "INSERT INTO t VALUES ('2026-03-01T07:00:00Z', 'b', 102)");
    await becomes(server, PARQUET, ['00', '01', '02', '03', '04']);
    return server;
  });
});

test('partitions are dropped by the policy, except while it is disabled', async (t) => {
  await withPolicies(async (server) => {
    await run(server, TABLE, ROWS, 'ALTER TABLE t SET STORAGE POLICY(TO PARQUET 1h)');
    await becomes(server, PARQUET, ['00', '01', '02', '03']);
    await run(server, 'ALTER TABLE t DISABLE STORAGE POLICY');
    const listed = `SELECT to_parquet, to_remote, drop_local, drop_remote, status
      FROM storage_policies()`;
    t.deepEqual(await rows(server, listed), [['1h', '0h', '0h', '0h', 'D']]);
    await until(
      async () => (await job(server))['state'] === 'paused',
      'a disabled policy does not run',
    );
    await run(
      server,
      "INSERT INTO t VALUES ('2026-03-01T07:00:00Z', 'b', 1)",
      'ALTER TABLE t SET STORAGE POLICY(TO PARQUET 2h, TO REMOTE 3h, DROP LOCAL 4h)',
    );
    await becomes(server, NAMES, ['03', '04', '05', '07']);
    await becomes(server, PARQUET, ['03', '04']);
    t.deepEqual(await rows(server, listed), [['2h', '3h', '4h', '0h', 'A']]);
    await run(
      server,
      'ALTER TABLE t DISABLE STORAGE POLICY',
      "INSERT INTO t VALUES ('2026-03-01T12:00:00Z', 'b', 2)",
    );
    t.deepEqual(await names(server, NAMES), ['03', '04', '05', '07', '12']);
    await run(server, 'ALTER TABLE t ENABLE STORAGE POLICY');
    await becomes(server, NAMES, ['12']);
    await run(server, 'ALTER TABLE t DROP STORAGE POLICY');
    t.deepEqual(await rows(server, listed), []);
    await until(
      async () => (await job(server))['state'] === undefined,
      "the policy's job is removed",
    );
    return server;
  });
});

test('a policy can be shown and replaced, and its job can be paused', async (t) => {
  await withPolicies(async (server) => {
    const stages = 'STORAGE POLICY(TO PARQUET 3 DAYS, TO REMOTE 1 WEEK, DROP LOCAL 1 MONTH)';
    await run(
      server,
      `CREATE TABLE p (ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY ${stages} BYPASS WAL`,
    );
    const [[ddl] = []] = await rows(server, 'SHOW CREATE TABLE p');
    t.true(String(ddl).includes(`PARTITION BY DAY\n${stages} BYPASS WAL`), String(ddl));
    await run(server, 'DROP TABLE p', String(ddl));
    t.deepEqual(await rows(server, 'SHOW CREATE TABLE p'), [[ddl]]);
    await run(server, 'CREATE TABLE like_p (LIKE p)');
    const ages = 'SELECT to_parquet, to_remote, drop_local, status FROM storage_policies';
    t.deepEqual(await rows(server, ages), [
      ['72h', '168h', '1m', 'A'],
      ['72h', '168h', '1m', 'A'],
    ]);
    await run(server, TABLE, 'ALTER TABLE t SET STORAGE POLICY(TO PARQUET 1h)');
    t.deepEqual(await rows(server, "SELECT pause_job('policy', 't')"), [[true]]);
    t.deepEqual(await rows(server, "SELECT pause_job('policy', 'nothing')"), [[false]]);
    await run(server, ROWS);
    await until(async () => (await job(server))['state'] === 'paused', 'the job is paused');
    t.deepEqual(await names(server, PARQUET), []);
    t.deepEqual(await rows(server, "SELECT resume_job('policy', 't')"), [[true]]);
    await becomes(server, PARQUET, ['00', '01', '02', '03']);
    return server;
  });
});

test('an invalid policy is refused with its position', async (t) => {
  await withPolicies(async (server) => {
    await run(server, TABLE, 'CREATE TABLE whole (ts TIMESTAMP, x INT) TIMESTAMP(ts)');
    await run(server, 'CREATE TABLE flat (x INT)');
    await run(server, 'CREATE TABLE aged (ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY TTL 3d');
    const set = 'ALTER TABLE t SET STORAGE POLICY';
    const cases: readonly (readonly [string, RegExp])[] = [
      [`${set}(TO PARQUET 0h)`, /^44: 'TO PARQUET' must be positive/],
      [`${set}(DROP LOCAL 0 DAYS)`, /^44: 'DROP LOCAL' must be positive/],
      [`${set}(TO PARQUET 3h, DROP LOCAL 2h)`, /^44: 'TO PARQUET' must not come later than/],
      [`${set}(TO REMOTE 1M, DROP LOCAL 2h)`, /^43: 'TO REMOTE' must not come later than/],
      [`${set}(DROP REMOTE 2h)`, /^33: 'DROP REMOTE' is not supported yet/],
      [`${set}(TO PARQUET 1h, TO PARQUET 2h)`, /duplicate 'TO PARQUET'/],
      [`${set}(TO CSV 1h)`, /'to parquet', 'to remote' or 'drop local' expected/],
      [`${set}()`, /'to parquet', 'to remote' or 'drop local' expected/],
      ['ALTER TABLE flat SET STORAGE POLICY(TO PARQUET 1h)', /non-partitioned table/],
      ['ALTER TABLE aged SET STORAGE POLICY(DROP LOCAL 1d)', /^12: Cannot set storage policy/],
      ['ALTER TABLE t ENABLE STORAGE POLICY', /^21: storage policy does not exist \[table=t\]/],
      ['ALTER TABLE t DISABLE STORAGE POLICY', /storage policy does not exist/],
      ['ALTER TABLE t DROP STORAGE POLICY', /storage policy does not exist/],
    ];
    for (const [statement, message] of cases) {
      t.regex(await error(server, statement), message, statement);
    }
    await run(server, 'ALTER TABLE t SET STORAGE POLICY(DROP LOCAL 5h)');
    t.regex(await error(server, 'ALTER TABLE t SET TTL 3h'), /^22: the table has a storage policy/);
    await run(server, 'ALTER TABLE t SET TTL 0h');
    return server;
  });
});

test('a failed job is reported, and retried with increasing delays', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-policies-'));
  const environment = { TIDEMARK_FAILPOINTS: 'engine.convert=error' };
  let server = await startTestServer({ ...OPTIONS, root, environment });
  try {
    await run(server, TABLE, ROWS, 'ALTER TABLE t SET STORAGE POLICY(TO PARQUET 1h)');
    await until(async () => Number((await job(server))['failures']) >= 2, 'the job fails twice');
    const failed = await job(server);
    t.is(failed['state'], 'failing');
    t.regex(String(failed['last_error']), /forced error at engine.convert/);
    t.deepEqual(await rows(server, 'SELECT count() FROM t'), [[35]]);
    await server.stop();
    server = await startTestServer({ ...OPTIONS, root });
    await becomes(server, PARQUET, ['00', '01', '02', '03']);
    t.is((await job(server))['failures'], 0);
  } finally {
    await server.stop();
    await rm(root, { recursive: true, force: true });
  }
});

test('an unreadable table does not delay other tables', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-policies-'));
  let server = await startTestServer({ ...OPTIONS, root });
  try {
    const second = (statement: string): string => statement.replace(/(TABLE|INTO) t/, '$1 second');
    await run(server, TABLE, ROWS);
    await server.stop();
    await damageSegment(root, '2026-03-01T01');
    server = await startTestServer({ ...OPTIONS, root });
    const policy = 'ALTER TABLE t SET STORAGE POLICY(TO PARQUET 1h)';
    await run(server, policy, second(TABLE), second(ROWS), second(policy));
    await becomes(server, PARQUET.replace("'t'", "'second'"), ['00', '01', '02', '03']);
    await until(
      async () => (await job(server))['state'] === 'failing',
      'the job is listed as failing',
    );
    t.regex(String((await job(server))['last_error']), /damaged/);
  } finally {
    await server.stop();
    await rm(root, { recursive: true, force: true });
  }
});

/** Damages the cells in a partition's files. */
async function damageSegment(root: string, partition: string): Promise<void> {
  const files = await readdir(root, { recursive: true, withFileTypes: true });
  const those = files.filter((file) => file.isFile() && file.name.startsWith(partition));
  for (const file of those) {
    const path = join(file.parentPath, file.name);
    const bytes = await readFile(path);
    await writeFile(path, bytes.fill(0xa5, 64, 96));
  }
}
