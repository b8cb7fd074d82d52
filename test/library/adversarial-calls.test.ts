/** Mistakes in calls of the embedded library, and loops and handles left open. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import test from 'ava';

import { open, type Parameter, type QueryOptions, sql } from '../../ts/index.js';
import { until } from '../until.js';
import { isRefused, withLibrary } from './with-library.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const FOREVER = 'SELECT x FROM long_sequence(100000000)';

test('mistakes in the arguments of a query are refused', async (t) => {
  await withLibrary(async (db) => {
    const options = { timeoutMs: 5 } as unknown as readonly Parameter[];
    const mistakes: readonly (readonly [() => Promise<unknown>, RegExp])[] = [
      [() => db.query(undefined as never), /^expected SQL text, found undefined$/],
      [() => db.prepare(sql`SELECT ${1}` as never), /^expected SQL text, found object$/],
      [() => db.changes({} as never).next(), /^expected SQL text, found object$/],
      [() => db.query('SELECT 1', options), /^expected an array of parameters, followed by/],
      [() => db.query(sql`SELECT 1`, options), /^expected an array of parameters, followed by/],
      [() => db.query(sql`SELECT ${1}`, [2]), /^a template contains its parameters/],
      [() => db.query(sql`SELECT ${1} a, '\user' b`), /^invalid escape sequence in the template/],
      [() => db.importCsv('t', []), /^not enough lines/],
      [() => open(''), /^root must be the path of a directory$/],
      [() => open(undefined as never), /^root must be the path of a directory$/],
    ];
    for (const [call, message] of mistakes) {
      await isRefused(t, async () => await call(), 'InvalidValue', message);
    }
    for (const timeoutMs of [0, -1, Number.NaN, '5', 5n] as number[]) {
      const call = (): Promise<unknown> => db.query(FOREVER, [], { timeoutMs });
      await isRefused(
        t,
        call,
        'InvalidValue',
        /^invalid timeoutMs .*: expected a positive number$/,
      );
    }
    await isRefused(t, () => db.query(FOREVER, [], { timeoutMs: 0.5 }), 'Timeout', /1ms/);
  });
});

test('arrays are parameters only if all of their items are', async (t) => {
  await withLibrary(async (db) => {
    const times = 'SELECT count() n FROM long_sequence(1) WHERE $1::timestamp = ANY($2)';
    const time = new Date('2026-01-02T03:04:05.678Z');
    t.deepEqual(await db.get(times, [time, [null, time]]), { n: 1n });
    const endless: unknown[] = [];
    endless.push(endless);
    for (const value of [[{}], [Symbol('x')], [new Date(Number.NaN)], endless]) {
      const call = (): Promise<unknown> => db.query('SELECT $1', [value as never]);
      await isRefused(t, call, 'InvalidValue', /^invalid parameter \$1: expected/);
    }
    const view = new DataView(new ArrayBuffer(8)) as never;
    await isRefused(t, () => db.query('SELECT $1', [view]), 'InvalidValue', /^invalid parameter/);
  });
});

test('timestamps that a Date cannot represent are formatted', async (t) => {
  await withLibrary(async (db) => {
    const query = `SELECT 9223372036854775807::timestamp a, (-9223372036854775807)::timestamp b,
      253402300800000000::timestamp c, 9223372036854775807::date d`;
    t.deepEqual(await db.get(query, [], { timestamps: 'string' }), {
      a: '294247-01-10T04:00:54.775807Z',
      b: '-290308-12-21T19:59:05.224193Z',
      c: '10000-01-01T00:00:00.000000Z',
      d: '292278994-08-17T07:12:55.807Z',
    });
  });
});

test('a failed commit rejects with its own error, and SQL begins no transaction', async (t) => {
  await withLibrary(async (db) => {
    await db.execute('CREATE TABLE t (x INT, y INT)');
    const call = (): Promise<unknown> =>
      db.transaction(async (tx) => {
        await tx.execute('INSERT INTO t VALUES (1, 2)');
        await db.execute('ALTER TABLE t DROP COLUMN y');
      });
    await isRefused(t, call, 'Replan', /changed concurrently$/);
    for (const text of ['BEGIN', 'COMMIT', 'ROLLBACK', 'SAVEPOINT a', 'RELEASE a']) {
      const hint = 'the library has no transaction blocks';
      await isRefused(t, () => db.execute(text), 'NotSupported', hint);
      await isRefused(t, () => db.transaction((tx) => tx.prepare(text)), 'NotSupported', hint);
    }
  });
});

test('closing ends loops, and every close waits until the root is free', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-adversarial-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  const db = await open(root);
  const loop = db.stream(FOREVER);
  await loop.next();
  void db.close();
  await db.close();
  const other = await open({ root, workers: 1 });
  await other.close();
  const rest = async (): Promise<void> => {
    let isOver = false;
    while (!isOver) {
      isOver = (await loop.next()).done === true;
    }
  };
  await isRefused(t, rest, 'Closed', 'the database is closed');
  const server = (): Promise<unknown> => db.serve({ set: ['pg.enabled=false'] });
  await isRefused(t, server, 'Closed', 'the database is closed');
});

test('the query of an abandoned loop ends', async (t) => {
  await withLibrary(async (db) => {
    const { signal } = new AbortController();
    for (let loop = 0; loop < 10; loop += 1) {
      await db.iterate(FOREVER, [], loop % 2 === 0 ? { signal } : {}).next();
    }
    const running = async (): Promise<number> => {
      collectGarbage();
      const query = 'SELECT query FROM query_activity() WHERE query = $1';
      return (await db.query(query, [FOREVER])).length;
    };
    await until(async () => (await running()) === 0, 'the queries end');
    t.is(await running(), 0);
  });
});

interface Columns {
  readonly x: number[];
  readonly y: Float64Array;
}

test('options may be undefined, and interfaces and nested arrays are accepted', async (t) => {
  await withLibrary(async (db) => {
    const none = undefined as QueryOptions | undefined;
    await db.execute('CREATE TABLE t (x INT, y DOUBLE)');
    const columns: Columns = { x: [1], y: Float64Array.of(2) };
    const appender = await db.appender('t', { columns: undefined });
    await appender.appendColumns(columns);
    await appender.finish();
    const form = { signal: none?.signal, timeoutMs: none?.timeoutMs, longs: none?.longs };
    t.deepEqual(await db.query('SELECT x, y FROM t', [], form), [{ x: 1, y: 2 }]);
    const cube: readonly number[][][] = [[[1, 2]]];
    t.deepEqual(await db.get('SELECT $1::double[][][] v', [cube]), { v: cube });
    await db.changes('t', { from: undefined, signal: undefined }).return?.();
    const report = await db.importCsv('csv', ['a\n1\n'], { header: true, timestamp: undefined });
    t.is(report.rowsImported, 1);
  });
});
