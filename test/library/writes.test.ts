/** Writes of the embedded library: appenders, imports, transactions and changes. */
import test from 'ava';
import { tableFromArrays, vectorFromArray, Utf8, Table } from 'apache-arrow';

import type { NewRow, TidemarkDatabase } from '../../ts/index.js';
import { isRefused, withLibrary } from './with-library.js';

const READINGS =
  'CREATE TABLE readings (ts TIMESTAMP, station SYMBOL, value DOUBLE, n LONG DEFAULT 7) ' +
  'TIMESTAMP(ts) PARTITION BY DAY';

async function withReadings(work: (db: TidemarkDatabase) => Promise<void>): Promise<void> {
  await withLibrary(async (db) => {
    await db.execute(READINGS);
    await work(db);
  });
}

async function written(db: TidemarkDatabase): Promise<unknown> {
  return await db.query('SELECT * FROM readings', [], { timestamps: 'string', longs: 'number' });
}

interface Station {
  readonly ts: Date;
  readonly station: string;
}

test('objects are appended; absent fields get the default, and null stays null', async (t) => {
  await withReadings(async (db) => {
    const appender = await db.appender('readings');
    // An interface is not assignable to a record, but it must be accepted.
    const typed: Station = { ts: new Date('2026-01-01'), station: 'a' };
    await appender.append(typed);
    await appender.append([
      { ts: '2026-01-02T00:00:00.000001Z', station: null },
      { ts: 1_767_398_400_000_000n, station: 'b' },
    ]);
    t.deepEqual(await db.query('SELECT * FROM readings'), [], 'not visible before the commit');
    t.is(await appender.finish(), 3);
    const rest = { value: null, n: 7 };
    t.deepEqual(await written(db), [
      { ts: '2026-01-01T00:00:00.000000Z', station: 'a', ...rest },
      { ts: '2026-01-02T00:00:00.000001Z', station: null, ...rest },
      { ts: '2026-01-03T00:00:00.000000Z', station: 'b', ...rest },
    ]);
    const all = await db.appender('readings', { columns: ['ts', 'N'] });
    await all.append({ ts: new Date('2026-01-04') });
    await all.append({ N: 8, TS: new Date('2026-01-05') });
    await all.finish();
    t.deepEqual(await db.query('SELECT n FROM readings LIMIT -2'), [{ n: null }, { n: 8n }]);
  });
});

test('one appender accepts rows, columns and Arrow tables', async (t) => {
  await withReadings(async (db) => {
    const appender = await db.appender('readings', { columns: ['ts', 'station', 'value'] });
    const micros = 1_767_225_600_000_000n;
    await appender.appendColumns({
      ts: BigInt64Array.of(micros, micros + 1n),
      value: Float64Array.of(1.5, Number.NaN),
      station: ['a', null],
    });
    const arrow = tableFromArrays({ value: Int32Array.of(3), ts: BigInt64Array.of(micros + 2n) });
    await appender.appendTable(arrow);
    await appender.append({ ts: micros + 3n, station: 'd' });
    t.is(await appender.finish(), 4);
    t.deepEqual(await db.query('SELECT station, value FROM readings'), [
      { station: 'a', value: 1.5 },
      { station: null, value: null },
      { station: null, value: 3 },
      { station: 'd', value: null },
    ]);
  });
});

test('a result can be appended to a table with the same column types', async (t) => {
  await withLibrary(async (db) => {
    const types = `c CHAR, u UUID, i IPV4, g GEOHASH(4c), b GEOHASH(3b), l LONG256,
      d DECIMAL(30,2), a DOUBLE[], n TIMESTAMP_NS, s SYMBOL, x BYTE, o BOOLEAN`;
    await db.script(`CREATE TABLE one (${types}); CREATE TABLE two (${types})`);
    await db.execute(`INSERT INTO one VALUES ('ä', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
      '10.1.2.3', 'u33d', '101', '0x0a12', '12345678901234567890.12', ARRAY[1.0, null],
      '2026-01-02T03:04:05.123456789Z', 'sym', 7, true)`);
    await db.execute("INSERT INTO one (s) VALUES ('empty')");
    const appender = await db.appender('two');
    await appender.appendTable(await db.table('SELECT * FROM one'));
    t.is(await appender.finish(), 2);
    const form = { timestamps: 'string' } as const;
    t.deepEqual(
      await db.query('SELECT * FROM two ORDER BY s', [], form),
      await db.query('SELECT * FROM one ORDER BY s', [], form),
    );
  });
});

test('an invalid value is reported with its column or row, and nothing is written', async (t) => {
  await withReadings(async (db) => {
    const refused: readonly (readonly [NewRow, RegExp])[] = [
      [{ value: 'high' }, /^column 'value' \(DOUBLE\): cannot convert 'high', expected a number$/],
      [{ n: 1.5 }, /^column 'n' \(LONG\): cannot convert 1.5, expected a bigint or an integer$/],
      [{ n: 2 ** 60 }, /^column 'n' \(LONG\): cannot convert 11529215046068\d+, expected/],
      [
        { ts: 'yesterday' },
        /^column 'ts' \(TIMESTAMP\): cannot convert 'yesterday', expected a Date/,
      ],
      [{ ts: new Date(Number.NaN) }, /^column 'ts' \(TIMESTAMP\): cannot convert Invalid Date/],
    ];
    for (const [row, message] of refused) {
      const appender = await db.appender('readings');
      await isRefused(t, () => appender.append(row), 'InvalidValue', message);
      await appender.abort();
    }
    const missing = async (): Promise<unknown> => (await db.appender('readings')).append({ x: 1 });
    await isRefused(
      t,
      missing,
      'ColumnNotFound',
      'column does not exist [table=readings, column=x]',
    );
    const none = (): Promise<unknown> => db.appender('missing');
    await isRefused(t, none, 'TableNotFound', 'table does not exist [table=missing]');
    const appender = await db.appender('readings');
    await appender.append([{ ts: new Date() }, { ts: null }]);
    await isRefused(t, () => appender.finish(), 'InvalidValue', /timestamp/i);
    const late = await db.appender('readings');
    await late.append({ ts: new Date() });
    const hint = /^column 'value' is not among the columns of the appender: ts$/;
    await isRefused(t, () => late.append({ ts: new Date(), value: 1 }), 'InvalidValue', hint);
    await late.abort();
    await isRefused(t, () => late.append({ ts: new Date() }), 'Closed', 'the appender is closed');
    const uneven = await db.appender('readings');
    const columns = { ts: [new Date()], value: [1, 2] };
    const lengths = "column 'value' has 2 values, expected 1";
    await isRefused(t, () => uneven.appendColumns(columns), 'InvalidValue', lengths);
    await uneven.abort();
    t.deepEqual(await written(db), []);
  });
});

test('unknown and duplicate Arrow columns are refused', async (t) => {
  await withReadings(async (db) => {
    const other = await db.appender('readings');
    const wrong = tableFromArrays({ other: Int32Array.of(1) });
    await isRefused(t, () => other.appendTable(wrong), 'ColumnNotFound', /column=other/);
    const twice = await db.appender('readings');
    const vector = vectorFromArray(['a'], new Utf8());
    const both = tableFromArrays({ ts: BigInt64Array.of(1n) }).assign(
      new Table({ station: vector, Station: vector }),
    );
    await isRefused(t, () => twice.appendTable(both), 'DuplicateColumn', /station/i);
    t.is(await twice.finish(), 0);
    t.deepEqual(await written(db), []);
  });
});

test('an appender accepts many rows or none', async (t) => {
  await withReadings(async (db) => {
    const start = Date.UTC(2026, 0, 1);
    const rows = Array.from({ length: 200_000 }, (_, index) => ({
      ts: new Date(start + index),
      station: `s${index % 7}`,
      value: index,
    }));
    const appender = await db.appender('readings');
    await appender.append([]);
    await appender.append(rows);
    t.is(await appender.finish(), 200_000);
    const empty = await db.appender('readings');
    t.is(await empty.finish(), 0);
    t.deepEqual(await db.query('SELECT count() n, sum(value) s FROM readings'), [
      { n: 200_000n, s: (199_999 * 200_000) / 2 },
    ]);
  });
});

test('a transaction commits all of its inserts and appenders, or none', async (t) => {
  await withReadings(async (db) => {
    await db.execute('CREATE TABLE other (x INT)');
    const counted = async (of: Pick<TidemarkDatabase, 'query'>): Promise<unknown> =>
      (
        await of.query<{ n: number }>(
          'SELECT count() n FROM readings UNION ALL SELECT count() FROM other',
          [],
          { longs: 'number' },
        )
      ).map(({ n }) => n);
    const result = await db.transaction(async (tx) => {
      await tx.execute('INSERT INTO other VALUES ($1)', [5]);
      const appender = await tx.appender('readings');
      await appender.append([{ ts: new Date() }, { ts: new Date() }]);
      await appender.finish();
      t.deepEqual(await counted(tx), [2, 1]);
      t.deepEqual(await counted(db), [0, 0]);
      return 'done';
    });
    t.is(result, 'done');
    t.deepEqual(await counted(db), [2, 1]);
    const failure = new Error('changed my mind');
    let escaped: Pick<TidemarkDatabase, 'query'> | null = null;
    const failed = db.transaction(async (tx) => {
      escaped = tx;
      await tx.execute('INSERT INTO other VALUES (6)');
      throw failure;
    });
    t.is(await t.throwsAsync(failed), failure);
    t.deepEqual(await counted(db), [2, 1]);
    const late = (): Promise<unknown> => counted(escaped ?? db);
    await isRefused(t, late, 'Closed', 'the transaction has ended');
  });
});

test('CSV is imported with detected types, in chunks of any size', async (t) => {
  await withLibrary(async (db) => {
    const text = 'ts;station;value\n2026-01-01T00:00:00Z;a;1,5\n2026-01-02T00:00:00Z;b;2,5\n';
    const report = await db.importCsv('csv', Array.from(text), {
      timestamp: 'ts',
      partitionBy: 'DAY',
    });
    t.is(report.rowsImported, 2);
    t.deepEqual(await db.query('SELECT station, value FROM csv'), [
      { station: 'a', value: 1.5 },
      { station: 'b', value: 2.5 },
    ]);
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(Buffer.from('2026-01-03T00:00:00Z,c,3\n2026-01-04T00:00:00Z,d,4\n'));
        controller.close();
      },
    });
    t.is((await db.importCsv('csv', stream, { header: false })).rowsImported, 2);
    const wrong = (): Promise<unknown> => db.importCsv('new', ['a\n1\n'], { create: false });
    await t.throwsAsync(wrong, { message: /new/ });
  });
});

test('a loop over changes can resume from a position', async (t) => {
  await withReadings(async (db) => {
    const insert = (value: number): Promise<unknown> =>
      db.execute('INSERT INTO readings (ts, value) VALUES ($1, $2)', [new Date(), value]);
    const query = 'SELECT value FROM readings';
    await insert(1);
    let position = '';
    for await (const change of db.changes<{ value: number }>(query, { from: 'start' })) {
      t.deepEqual([change.kind, change.rows], ['range', [{ value: 1 }]]);
      ({ position } = change);
      break;
    }
    await insert(2);
    for await (const change of db.changes<{ value: number }>(query, { from: position })) {
      t.deepEqual(change.rows, [{ value: 2 }]);
      break;
    }
    const waiting = db.changes(query);
    const next = waiting.next();
    setTimeout(() => void waiting.return?.(), 50);
    t.deepEqual(await next, { done: true, value: undefined });
    const wrong = (): Promise<unknown> => db.changes(query, { from: 'then' }).next();
    await isRefused(t, wrong, 'InvalidValue', /^invalid position 'then'/);
    const join = (): Promise<unknown> => db.changes('SELECT count() FROM readings').next();
    await isRefused(t, join, 'NotSupported', /./);
  });
});
