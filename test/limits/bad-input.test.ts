/**
 * Impossible operations. Each refusal names the cause and leaves the table unchanged, and the next
 * row is accepted. The disks are real: a small file system that the test fills, and one that is
 * mounted read-only.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

import test, { type ExecutionContext } from 'ava';

import { runCli, startTestServer, type TestServer } from '../golden/server.js';
import { until } from '../until.js';
import { send, rowsOf } from './client.js';

const TABLE = `create table t (i int, v varchar, s symbol, g geohash(3c), ts timestamp)
  timestamp(ts) partition by day dedup upsert keys(ts, s)`;
const run = promisify(execFile);

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['cairo.max.columns=6', 'cairo.max.cell.size=1K'] });
  await rowsOf(server, TABLE);
  await rowsOf(server, 'create table u (x int)');
  await rowsOf(server, `insert into t values (0, 'a', 'b', #sp0, '2026-01-01')`);
});

test.after.always(async () => {
  await server.stop();
});

/** Returns everything that a user can see of a table. */
async function seen(target: TestServer): Promise<unknown> {
  const queries = ['select * from t order by i', 'show create table t', 'show columns from t'];
  return await Promise.all(queries.map((query) => rowsOf(target, query)));
}

let next = 1;

/**
 * Checks that the statement is refused with this message, nothing changes, and the next row is
 * accepted.
 */
async function refused(
  t: ExecutionContext,
  target: TestServer,
  query: string,
  words: RegExp,
): Promise<void> {
  const before = await seen(target);
  const { error } = await send(target, query);
  t.regex(error ?? 'no error', words, query);
  t.deepEqual(await seen(target), before, query);
  const key = `k${next++}`;
  await rowsOf(target, `insert into t values (1, 'a', '${key}', null, '2026-01-01')`);
  const [row] = await rowsOf(target, `select count() from t where s = '${key}'`);
  t.deepEqual(row, [1], `after ${query}`);
}

const DAY = "'2026-01-02'";
const REFUSALS: Readonly<Record<string, readonly (readonly [query: string, words: RegExp])[]>> = {
  'an invalid value': [
    [`insert into t values ('abc', 'a', 'b', null, ${DAY})`, /abc.*INT|inconvertible.*abc/],
    [`insert into t values (99999999999, 'a', 'b', null, ${DAY})`, /99999999999|INT/],
    [`insert into t values (1, 'a', 'b', #a!, ${DAY})`, /'!'/],
    [`insert into t values (1, 'a', 'b', #s, ${DAY})`, /GEOHASH/],
    [`insert into t values (1, 'a', 'b', null, 'yesterday')`, /yesterday/],
    [`insert into t values (1, 'a', 'b', null, null)`, /[Dd]esignated timestamp/],
    [`insert into t values (1, 'a', 'b', null, '1969-12-31')`, /1970/],
    [`insert into t values (1, 'a')`, /2|count|values/],
    [`insert into t (i, nope, ts) values (1, 2, ${DAY})`, /nope/],
    [`insert into t select 'abc', 'a', 'b', null, ${DAY}::timestamp`, /abc|INT/],
    [`update t set i = 'abc'`, /abc|INT/],
    [`update t set nope = 1`, /nope/],
    [`update t set ts = 0`, /[Dd]esignated timestamp/],
  ],
  'an impossible ALTER': [
    ['alter table t drop column ts', /designated timestamp|ts/],
    ['alter table t drop column nope', /nope/],
    ['alter table t add column i int', /'?i'?.*(exists|duplicate)|(exists|duplicate).*i/i],
    ['alter table t add column I long', /i.*(exists|duplicate)|(exists|duplicate).*i/i],
    ['alter table t add column x nosuchtype', /nosuchtype/],
    ['alter table t rename column i to v', /column already exists/],
    ['alter table t rename column nope to x', /nope/],
    ['alter table t alter column ts type long', /designated timestamp|ts/],
    ['alter table t alter column i type i', /i/],
    ['alter table t alter column i type geohash(3c)', /INT.*GEOHASH|incompatible/],
    ['alter table t alter column v add index', /v.*VARCHAR|symbol/],
    ['alter table t dedup enable upsert keys(i)', /timestamp/],
    ['alter table t set param maxUncommittedRows = -1', /maxUncommittedRows/],
    ['alter table t set ttl 1 parsec', /parsec|unit/],
    ['alter table nope add column x int', /nope/],
    ['alter table u set type wal', /type of table 'u': expected a partitioned table/],
    ["rename table t to 'u'", /u/],
  ],
  'a column over a limit': [
    ['alter table t add column x int, y int', /7 columns: at most 6 columns are allowed/],
    [
      `update t set v = '${'x'.repeat(1_025)}'`,
      /column 'v': value is 1025 bytes long: at most 1024/,
    ],
  ],
  'a partition that does not exist': [
    ["alter table t drop partition list '1999-12-31'", /1999-12-31/],
    ["alter table t detach partition list '1999-12-31'", /1999-12-31/],
    ["alter table t attach partition list '1999-12-31'", /1999-12-31/],
    ["alter table t convert partition to parquet list '1999-12-31'", /1999-12-31/],
    ["alter table t drop partition list 'someday'", /someday/],
    ['alter table u drop partition list 1', /u|partition/],
  ],
};

for (const [title, cases] of Object.entries(REFUSALS)) {
  test.serial(title, async (t) => {
    for (const [query, words] of cases) {
      await refused(t, server, query, words);
    }
  });
}

/** Runs a command in the server's mount namespace. */
async function inside(target: TestServer, ...command: readonly string[]): Promise<void> {
  await run('nsenter', ['-t', String(target.process.pid), '-m', '--', ...command]);
}

test.serial('writes to a full disk are refused, and reads continue', async (t) => {
  const disk = await mkdtemp(join(tmpdir(), 'tidemark-disk-'));
  const mount = `mount -t tmpfs -o size=64m tmpfs ${disk} && exec "$@"`;
  const wrapper = ['unshare', '-m', 'sh', '-c', mount, 'sh'];
  const limited = await startTestServer({ root: join(disk, 'root'), wrapper }).catch(() => null);
  if (limited === null) {
    t.log('a file system cannot be mounted here');
    t.pass();
    return;
  }
  await rowsOf(limited, TABLE);
  const filler = join(disk, 'filler');
  await inside(limited, 'sh', '-c', `dd if=/dev/zero of=${filler} bs=64k 2>/dev/null || true`);
  // The server checks the disk every 100 ms. Until the next check, a small row may still fit into
  // the log.
  await sleep(500);
  const before = await seen(limited);
  for (const query of [
    `insert into t values (1, 'a', 'b', null, ${DAY})`,
    'update t set i = 3',
    'create table copy as (select x from long_sequence(200000))',
  ]) {
    const { error, status } = await send(limited, query);
    if (query.startsWith('update')) {
      continue; // no row to change: nothing to refuse
    }
    t.regex(error ?? 'no error', /disk full/, query);
    t.is(status, 507, query);
  }
  t.deepEqual(await seen(limited), before);
  await inside(limited, 'rm', filler);
  await until(async () => {
    const { error } = await send(limited, `insert into t values (1, 'a', 'b', null, ${DAY})`);
    return error === undefined;
  }, 'space is available again');
  t.deepEqual(await rowsOf(limited, 'select count() from t'), [[1]]);
  await limited.stop();
  await rm(disk, { recursive: true, force: true });
});

test.serial('a server does not start on a read-only disk, and its data stays intact', async (t) => {
  const disk = await mkdtemp(join(tmpdir(), 'tidemark-disk-'));
  const root = join(disk, 'root');
  const first = await startTestServer({ root });
  await rowsOf(first, TABLE);
  await rowsOf(first, `insert into t values (1, 'a', 'b', null, ${DAY})`);
  await first.stop();
  const mount = `mount --bind ${disk} ${disk} && mount -o remount,bind,ro ${disk} && exec "$@"`;
  const started = runCli(['serve', '--root', root, '--set', 'http.bind.to=127.0.0.1:0'], {
    wrapper: ['unshare', '-m', 'sh', '-c', mount, 'sh'],
  });
  await new Promise((resolve) => started.process.once('close', resolve));
  if (started.err().includes('unshare') || started.err().includes('mount:')) {
    t.log('a file system cannot be mounted here');
  } else {
    t.not(started.process.exitCode, 0);
    t.regex(started.err(), /root directory '.*': .*read-only/i);
  }
  const again = await startTestServer({ root });
  t.deepEqual(await rowsOf(again, 'select i, v, s from t'), [[1, 'a', 'b']]);
  await rowsOf(again, `insert into t values (2, 'a', 'c', null, ${DAY})`);
  t.deepEqual(await rowsOf(again, 'select count() from t'), [[2]]);
  await again.stop();
  await rm(disk, { recursive: true, force: true });
});
