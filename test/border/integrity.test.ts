/** Backups, checks and damage, through the real addon and SQL. */
import { cp, mkdtemp, open, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { checkRoot } from '../../ts/check.js';
import { type Database, openDatabase } from '../../ts/engine/index.js';
import { SessionHost } from '../../ts/session/index.js';
import { readStatement } from '../../ts/sql/index.js';

async function withRoot(use: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-integrity-'));
  try {
    await use(root);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

async function run(database: Database, sql: string): Promise<string> {
  const limits = { defaultTimeoutMs: 60_000, maxTimeoutMs: 60_000 };
  const host = new SessionHost({ database, parse: readStatement, ...limits });
  const session = host.open({ name: 'test', readOnly: false });
  const statement = await session.prepare(sql);
  try {
    const reply = await statement.execute([], { rows: { format: 'json' } });
    return reply.chunk?.bytes.toString() ?? '';
  } finally {
    statement.close();
  }
}

async function create(database: Database): Promise<void> {
  for (const name of ['a', 'b']) {
    await run(
      database,
      `create table ${name} (ts timestamp, x long) timestamp(ts) partition by day`,
    );
    const rows = `select timestamp_sequence(0, 60000000) ts, x from long_sequence(100000)`;
    await run(database, `insert into ${name} ${rows}`);
  }
}

test('a backup taken while the database is open can be restored', async (t) => {
  await withRoot(async (root) => {
    const database = await openDatabase({ root });
    await create(database);
    await run(database, 'checkpoint create');
    await t.throwsAsync(run(database, 'checkpoint create'), { message: /already exists/ });
    await run(database, 'drop table a');
    await run(database, 'check database');
    await database.close();

    // The backup is a complete root.
    const elsewhere = await openDatabase({ root: join(root, '.checkpoint') });
    t.is(await run(elsewhere, 'select count() from a'), '[100000]');
    await elsewhere.close();

    await writeFile(join(root, '_restore'), '');
    const restored = await openDatabase({ root });
    t.is(await run(restored, 'select count(), sum(x) from a'), '[100000,5000050000]');
    await run(restored, 'checkpoint create');
    await run(restored, 'checkpoint release');
    await restored.close();
    t.false((await readdir(root)).includes('.checkpoint'));
    t.deepEqual(await checkRoot(root), []);
  });
});

async function flip(path: string, at: number): Promise<void> {
  const file = await open(path, 'r+');
  const byte = Buffer.alloc(1);
  await file.read(byte, 0, 1, at);
  await file.write(Buffer.from([(byte[0] ?? 0) ^ 4]), 0, 1, at);
  await file.close();
}

test('a damaged table is reported, refuses writes and can be dropped', async (t) => {
  await withRoot(async (root) => {
    let database = await openDatabase({ root });
    await create(database);
    await database.close();
    const folder = join(root, 'db/t/1');
    const day = '1970-01-04';
    // The previous manifest, retained as a fallback, may reference another segment of the same day.
    const segments = (await readdir(folder)).filter((name) => name.startsWith(day));
    const copy = join(root, 'copy');
    await cp(join(root, 'db'), join(copy, 'db'), { recursive: true });
    for (const segment of segments) {
      // The offset lies within the second column: a day has 1,440 rows of 8 bytes.
      await flip(join(folder, segment), 15_000);
    }

    const problems = await checkRoot(root);
    t.is(problems.length, segments.length);
    const isNamed = problems.every(
      ({ table, what }) => table === 'a' && what.startsWith(`db/t/1/${day}`),
    );
    t.true(isNamed);
    t.deepEqual(await checkRoot(copy), []);

    database = await openDatabase({ root });
    t.deepEqual(database.damages(), []);
    await run(database, 'check table b');
    await t.throwsAsync(run(database, 'select sum(x) from a'), { message: /damaged/ });
    await t.throwsAsync(run(database, 'check database'), { message: /^table 'a'/ });
    await t.throwsAsync(run(database, "insert into a values ('2024-01-01', 1)"), {
      message: /table 'a' is damaged/,
    });
    t.deepEqual(
      database.damages().map((damage) => damage.table),
      ['a'],
    );
    const suspended = 'select table_name, table_suspended from tables() order by 1';
    t.is(await run(database, suspended), '["a",true],["b",false]');
    t.is(await run(database, 'select sum(x) from b'), '[5000050000]');
    await run(database, `alter table a drop partition list '${day}'`);
    t.deepEqual(database.damages(), []);
    await run(database, "insert into a values ('2024-01-01', 1)");
    await database.close();
  });
});
