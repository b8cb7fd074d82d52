/** The shape of the native interface: the number of its functions and the values that cross it. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import test from 'ava';

import { arenaToBatch } from '../../ts/engine/arrow.js';
import { DatabaseError, openDatabase, type Statement } from '../../ts/engine/index.js';
import { parse } from '../../ts/sql/index.js';
import { until } from '../until.js';
import { prepare, run, withDatabase } from './database.js';

const MAX_FUNCTIONS = 30;
const declarations = fileURLToPath(new URL('../../../native/index.d.ts', import.meta.url));

test('the native interface has at most 30 functions', async (t) => {
  const text = await readFile(declarations, 'utf8');
  const functions = text.match(/^export declare function \w+|^ {2}\w+\(.*$/gm) ?? [];
  t.true(functions.length > 20, 'the declarations were parsed');
  t.true(functions.length <= MAX_FUNCTIONS, functions.join('\n'));
});

test('written rows can be read back', async (t) => {
  await withDatabase(async (database) => {
    await run(database, 'create table t (ts timestamp, s symbol, x double) timestamp(ts)');
    await run(database, "insert into t values ('2024-01-02', 'b', 2.5), ('2024-01-01', 'a', null)");
    t.is(
      await run(database, 'select * from t'),
      '["2024-01-01T00:00:00.000000Z","a",null],["2024-01-02T00:00:00.000000Z","b",2.5]',
    );
  });
});

test('time elapsed before prepare counts towards the timeout', async (t) => {
  await withDatabase(async (database) => {
    const late = { code: 'Timeout', message: 'timeout, query aborted [timeout=60000ms]' };
    const terms = Array.from({ length: 200 }, (_, at) => `x + ${at}`).join();
    const tree = Buffer.from(JSON.stringify(parse(`select ${terms} from long_sequence(1)`)));
    const prepareAfter = (elapsedMs: number): ReturnType<typeof database.prepare> =>
      database.prepare(tree, { user: 'admin', timeoutMs: 60_000, elapsedMs });
    await t.throwsAsync(prepareAfter(60_000), late);
    const statement = await prepareAfter(1);
    const runAfter = (elapsedMs: number): ReturnType<typeof statement.execute> =>
      statement.execute([], { rows: { format: 'json' }, timeoutMs: 60_000, elapsedMs });
    await t.throwsAsync(runAfter(60_000), late);
    t.is((await runAfter(1)).chunk?.rows, 1);
  });
});

test('a small query completes within its call; a large query runs asynchronously', async (t) => {
  await withDatabase(async (database) => {
    await run(
      database,
      "create table t as (select timestamp_sequence('2024', 1000000) ts, x from " +
        'long_sequence(1000000)) timestamp(ts) partition by month',
    );
    const statement = await prepare(
      database,
      'select count() c, sum(x) s from t where ts >= $1 and ts < $2',
    );
    const between = async (from: string, to: string): Promise<[string, boolean]> => {
      let hasWaited = false;
      // Runs only if the query's result was not available immediately.
      process.nextTick(() => {
        hasWaited = true;
      });
      const reply = await statement.execute([from, to], { rows: { format: 'json' } });
      return [reply.chunk?.bytes.toString() ?? '', hasWaited];
    };
    // After a slow run on a busy machine, the next query may no longer count as small.
    const soon = async (from: string, to: string): Promise<[string, boolean]> => {
      let last = await between(from, to);
      for (let tries = 0; last[1] && tries < 20; tries += 1) {
        last = await between(from, to);
      }
      return last;
    };
    const second = ['2024-01-01T00:00:01Z', '2024-01-01T00:00:02Z'] as const;
    const day = ['2024-01-01', '2024-01-02'] as const;
    const all = ['2024-01-01', '2025-01-01'] as const;
    t.deepEqual(
      await between(...second),
      ['[1,2]', true],
      'the cost of the first execution is unknown',
    );
    t.deepEqual(await soon(...second), ['[1,2]', false]);
    t.deepEqual(
      await between(...all),
      ['[1000000,500000500000]', true],
      'the query completes after its call',
    );
    t.deepEqual(await between(...all), ['[1000000,500000500000]', true]);
    t.deepEqual(await between(...second), ['[1,2]', true]);
    t.deepEqual(await soon(...second), ['[1,2]', false]);
    // The result is available without waiting for other tasks.
    t.deepEqual(await between(...day), ['[86400,3732523200]', true]);
  });
});

test('a query that timed out or has an expensive parameter runs asynchronously', async (t) => {
  await withDatabase(async (database) => {
    await run(database, "create table one as (select 'x'::varchar s)");
    const isDoneAtOnce = async (
      statement: Statement,
      values: readonly string[],
      timeoutMs = 60_000,
    ): Promise<boolean> => {
      let hasWaited = false;
      process.nextTick(() => {
        hasWaited = true;
      });
      const options = { rows: { format: 'json' }, timeoutMs } as const;
      await statement.execute(values, options).catch(() => undefined);
      return !hasWaited;
    };
    const long = await prepare(database, "select length(replace(s, 'x', 'y')) n from one");
    t.false(await isDoneAtOnce(long, []));
    let isQuick = false;
    for (let tries = 0; !isQuick && tries < 20; tries += 1) {
      isQuick = await isDoneAtOnce(long, []);
    }
    t.true(isQuick, 'the query completed within its call');
    await run(database, "update one set s = repeat('x', 60000000)");
    // On a busy machine the timeout may expire before the query starts, in which case nothing is
    // stopped.
    for (let tries = 0; isQuick && tries < 20; tries += 1) {
      isQuick = await isDoneAtOnce(long, [], 1);
    }
    t.false(isQuick, 'the query was stopped');
    const repeated = await prepare(database, 'select length(repeat(s, $1::int)) n from one');
    t.false(await isDoneAtOnce(repeated, ['1']));
    t.false(await isDoneAtOnce(repeated, ['1']), 'the next parameter may be large');
  });
});

test('untyped parameters of polymorphic functions are strings', async (t) => {
  await withDatabase(async (database) => {
    for (const [sql, values, expected] of [
      ['select concat($1, $2)', ['a', '2'], '["a2"]'],
      ["select concat('x', $1, 3)", ['y'], '["xy3"]'],
      ['select coalesce($1, $2)', [null, 'b'], '["b"]'],
      ["select x from long_sequence(3) where 'n' || x = concat('n', $1)", ['2'], '[2]'],
    ] as const) {
      const statement = await prepare(database, sql);
      t.true(
        statement.description.parameters.every((type) => type === 'VARCHAR'),
        sql,
      );
      const { chunk } = await statement.execute(values, { rows: { format: 'json' } });
      t.is(chunk?.bytes.toString(), expected, sql);
    }
  });
});

test('arrow-js-ffi reads an arena without copying columns', async (t) => {
  await withDatabase(async (database) => {
    const statement = await prepare(
      database,
      "select x, x * 1.5 d, 'text ' || x s, x::timestamp ts from long_sequence(3)",
    );
    const reply = await statement.execute([], { rows: { format: 'arrow' } });
    const batch = arenaToBatch(reply.chunk?.bytes ?? Buffer.alloc(0));
    t.is(batch.numRows, 3);
    t.deepEqual([...(batch.getChild('x') ?? [])], [1n, 2n, 3n]);
    t.deepEqual([...(batch.getChild('d') ?? [])], [1.5, 3, 4.5]);
    t.deepEqual([...(batch.getChild('s') ?? [])], ['text 1', 'text 2', 'text 3']);
  });
});

test('an execution can be cancelled immediately after the call', async (t) => {
  await withDatabase(async (database) => {
    const text = 'select sum(sqrt(x)) from long_sequence(100000000000)';
    const statement = await prepare(database, text);
    const ids = [database.newQueryId(), database.newQueryId()];
    const runs = ids.map((queryId) =>
      statement.execute([], { rows: { format: 'json' }, queryId }).then(
        () => 'ended',
        (error: unknown) => (error as DatabaseError).code,
      ),
    );
    t.deepEqual(
      database.activeQueries().map(({ queryId }) => queryId),
      ids,
    );
    t.true(database.cancelQuery(ids[1] ?? 0n));
    t.is(await runs[1], 'Cancelled');
    t.deepEqual(
      database.activeQueries().map(({ queryId }) => queryId),
      ids.slice(0, 1),
    );
    t.true(database.cancelQuery(ids[0] ?? 0n));
    t.is(await runs[0], 'Cancelled');
    t.false(database.cancelQuery(ids[0] ?? 0n));
  });
});

test('the row limit applies to every chunk, and the summary follows the last chunk', async (t) => {
  await withDatabase(async (database) => {
    const statement = await prepare(database, 'select x from long_sequence(10)');
    const reply = await statement.execute([], { rows: { format: 'json' }, firstChunkRows: 4 });
    t.is(reply.chunk?.rows, 4);
    const stream = reply.stream;
    t.is((await stream?.next(4))?.rows, 4);
    t.is((await stream?.next(4))?.rows, 2);
    t.is(await stream?.next(4), null);
    t.is(stream?.summary().rowsReturned, 10);
  });
});

// This test runs first, because it measures the process's memory.
test.serial('a slow reader pauses the query, and memory does not grow', async (t) => {
  await withDatabase(async (database) => {
    const statement = await prepare(database, 'select x, x * 2 y from long_sequence(20000000)');
    const reply = await statement.execute([], { rows: { format: 'json' } });
    const before = process.memoryUsage().rss;
    await new Promise((resolve) => setTimeout(resolve, 500));
    t.true(process.memoryUsage().rss - before < 64 * 1024 * 1024);
    reply.stream?.cancel();
    const error = await t.throwsAsync(async () => {
      let chunk = await reply.stream?.next();
      while (chunk !== null) {
        chunk = await reply.stream?.next();
      }
    });
    t.true(error instanceof DatabaseError && error.code === 'Cancelled');
  });
});

test('a query can be cancelled by its id', async (t) => {
  await withDatabase(async (database) => {
    const statement = await prepare(
      database,
      'select count() from long_sequence(1000000) a cross join long_sequence(1000000) b ' +
        'where a.x * b.x % 7 = 3',
    );
    const running = statement.execute([], { rows: { format: 'json' } });
    await until(() => database.activeQueries().length === 1, 'the query is running');
    const [query] = database.activeQueries();
    t.true(database.cancelQuery(query?.queryId ?? 0n));
    // The query would take hours, so any response proves that it was stopped.
    const error = await t.throwsAsync(running);
    t.true(error instanceof DatabaseError && error.code === 'Cancelled');
  });
});

test('errors cross the native boundary with code, message and position', async (t) => {
  await withDatabase(async (database) => {
    const error = await t.throwsAsync(prepare(database, 'select nope from long_sequence(1)'));
    t.true(error instanceof DatabaseError);
    if (error instanceof DatabaseError) {
      t.is(error.code, 'ColumnNotFound');
      t.is(error.start, 7);
      t.is(error.message, 'Invalid column: nope');
    }
  });
});

test('depth and length limits prevent stack overflows', (t) => {
  const nested = `select ${'('.repeat(100_000)}1${')'.repeat(100_000)}`;
  t.throws(() => parse(nested), { message: /nest|deep/i });
  const terms = Array.from({ length: 100_000 }, (_, i) => `x = ${i}`).join(' or ');
  t.throws(() => parse(`select 1 from t where ${terms}`), { message: /terms|long/i });
});

test('a query with 9,000 terms is planned and run', async (t) => {
  await withDatabase(async (database) => {
    const terms = Array.from({ length: 9_000 }, (_, i) => `x = ${i + 1}`).join(' or ');
    const sql = `select count() from long_sequence(10000) where ${terms}`;
    t.is(await run(database, sql), '[9000]');
  });
});

test('committed records survive a restart and are loaded by kind', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-records-'));
  const first = await openDatabase({ root });
  await first.commitRecords('user', new Map([['ann', Buffer.from([1, 2])]]));
  await first.commitRecords('user', new Map([['bob', Buffer.from('x')]]));
  await first.commitRecords('user', new Map([['bob', null]]));
  await first.close();
  const second = await openDatabase({ root });
  t.deepEqual([...(await second.loadRecords('user'))], [['ann', Buffer.from([1, 2])]]);
  await second.close();
  await rm(root, { recursive: true, force: true });
});
