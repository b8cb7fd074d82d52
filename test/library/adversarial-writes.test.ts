/** Rows and values that an appender of the embedded library must refuse or survive. */
import test from 'ava';
import { RecordBatch, Schema, Struct, Table, makeData } from 'apache-arrow';

import { isRefused, withLibrary } from './with-library.js';

test('an appender refuses values that the column cannot represent', async (t) => {
  await withLibrary(async (db) => {
    await db.execute(`CREATE TABLE t (b BOOLEAN, y BYTE, s SHORT, i INT, l LONG, d DOUBLE,
      v VARCHAR, k SYMBOL, ts TIMESTAMP, tn TIMESTAMP_NS, a DOUBLE[], aa DOUBLE[][])`);
    const refused: readonly (readonly [string, unknown, string])[] = [
      ['y', 128, 'cannot convert 128, expected an integer from -128 to 127'],
      ['s', 40_000, 'cannot convert 40000, expected an integer from -32768 to 32767'],
      ['i', 2 ** 32 + 1, 'cannot convert 4294967297, expected an integer from'],
      ['l', 2n ** 64n + 5n, 'cannot convert 18446744073709551621, expected a value within 64'],
      ['ts', 2n ** 63n, 'cannot convert 9223372036854775808, expected a value within 64 bits'],
      ['tn', new Date(8.64e15), 'expected a value within 64 bits'],
      ['ts', '2026-02-30', "cannot convert '2026-02-30', expected a Date"],
      ['b', 'false', "cannot convert 'false', expected a boolean"],
      ['d', [], 'expected a number'],
      ['d', new Date(5), 'expected a number'],
      ['v', {}, 'cannot convert [object Object], expected a string'],
      ['k', [1, 2], 'cannot convert 1,2, expected a string'],
      ['v', Symbol('x'), 'cannot convert Symbol(x), expected a string'],
      ['a', 5, 'cannot convert 5, expected an array with 1 dimension'],
      ['a', 'abc', "cannot convert 'abc', expected an array with 1 dimension"],
      ['a', [[1]], 'cannot convert 1, expected a number'],
      ['aa', [1], 'cannot convert 1, expected an array with 1 dimension'],
    ];
    const appender = await db.appender('t', { columns: ['y'] });
    for (const [name, value, message] of refused) {
      const call = (): Promise<void> => appender.append({ [name]: value });
      const escaped = message.replace(/[[\]()]/g, '\\$&');
      await isRefused(t, call, 'InvalidValue', new RegExp(`^column '${name}' .*: .*${escaped}`));
    }
    await appender.abort();
    const extreme = await db.appender('t');
    await extreme.append({ y: -128n, s: 32_767, l: 2n ** 63n - 1n, ts: '2024-02-29', b: 1 });
    await extreme.finish();
    t.deepEqual(await db.query('SELECT y, s, l, ts, b FROM t'), [
      { y: -128, s: 32_767, l: 2n ** 63n - 1n, ts: new Date('2024-02-29'), b: true },
    ]);
  });
});

test('an appender refuses what is not a row', async (t) => {
  await withLibrary(async (db) => {
    await db.execute('CREATE TABLE t (x INT)');
    for (const rows of [undefined, null, 5, 'x', [null], new Set([{ x: 1 }])]) {
      const appender = await db.appender('t');
      const call = (): Promise<void> => appender.append(rows as object);
      await isRefused(t, call, 'InvalidValue', /^expected an object or an array of objects, found/);
    }
    const appender = await db.appender('t');
    const data = makeData({ type: new Struct([]), length: 2, children: [] });
    const empty = new Table([new RecordBatch(new Schema([]), data)]);
    for (const call of [() => appender.append({}), () => appender.appendTable(empty)]) {
      const other = await db.appender('t');
      await isRefused(t, call, 'InvalidValue', 'the rows have no columns');
      await other.abort();
    }
    const columns = (): Promise<void> => appender.appendColumns({ x: null as never });
    await isRefused(t, columns, 'InvalidValue', /^column 'x': expected an array/);
  });
});

test('strings that exceed an Arrow column together are not lost', async (t) => {
  await withLibrary(async (db) => {
    await db.execute('CREATE TABLE t (v VARCHAR)');
    // One column of all rows would need more bytes than its 32-bit offsets can address.
    const rows = Array.from({ length: 8 }, () => ({ v: 'x'.repeat(100_000_000) }));
    const appender = await db.appender('t');
    const call = async (): Promise<number> => {
      await appender.append(rows);
      return await appender.finish();
    };
    await isRefused(t, call, 'ResourceLimit', /^column 'v': value is 100000000 bytes long/);
    const text = await db.appender('t');
    const lengths = [9_000_000, 1, 9_000_000, 0, 9_000_000];
    await text.appendColumns({ v: lengths.map((length) => 'ä'.repeat(length)) });
    await text.finish();
    const written = await db.query<{ n: number }>('SELECT length(v) n FROM t');
    t.deepEqual(
      written.map(({ n }) => n),
      lengths,
    );
  });
});

test('columns may have the names of inherited properties', async (t) => {
  await withLibrary(async (db) => {
    await db.execute('CREATE TABLE t (x INT, constructor VARCHAR, "__proto__" INT)');
    const appender = await db.appender('t');
    const own = JSON.parse('{"x": 3, "__proto__": 5}') as object;
    await appender.append([{ x: 1, constructor: 'c' }, { x: 2 }, own]);
    await appender.finish();
    const rows = await db.query('SELECT * FROM t');
    t.deepEqual(rows.map(Object.entries), [
      [
        ['x', 1],
        ['constructor', 'c'],
        ['__proto__', null],
      ],
      [
        ['x', 2],
        ['constructor', null],
        ['__proto__', null],
      ],
      [
        ['x', 3],
        ['constructor', null],
        ['__proto__', 5],
      ],
    ]);
  });
});

test('an appender never commits part of an append', async (t) => {
  await withLibrary(async (db) => {
    await db.execute('CREATE TABLE t (x INT)');
    const rows: { x: unknown }[] = Array.from({ length: 70_000 }, (_, x) => ({ x }));
    const whole = await db.appender('t');
    const waits = whole.append(rows);
    t.is(await whole.finish(), 70_000);
    await waits;
    const failing = await db.appender('t');
    await t.throwsAsync(() => failing.append([...rows, { x: 'last' }]), { message: /'last'/ });
    await isRefused(t, () => failing.finish(), 'InvalidValue', /^nothing was written, because/);
    t.deepEqual(await db.get('SELECT count() n FROM t'), { n: 70_000n });
  });
});
