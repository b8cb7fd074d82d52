/** Queries of the embedded library: parameters, and the forms of their results. */
import test from 'ava';
import { RecordBatch, Table, tableFromIPC, tableToIPC } from 'apache-arrow';

import { identifier, open, type Parameter, sql, type TidemarkDatabase } from '../../ts/index.js';
import { isRefused, withLibrary } from './with-library.js';

/** A query that practically never ends and yields no row. */
const ENDLESS =
  'SELECT a.x FROM long_sequence(1000000) a CROSS JOIN long_sequence(1000000) b ' +
  'WHERE a.x + b.x = -1';
const FIRST_ROWS = 'SELECT x FROM long_sequence(100000000)';

test('JavaScript values become parameters of the matching type', async (t) => {
  await withLibrary(async (db) => {
    const value = async (expression: string, parameter: Parameter): Promise<unknown> =>
      (await db.get(`SELECT ${expression} v`, [parameter]))?.['v'];
    t.is(await value('$1::long', 7), 7n);
    t.is(await value('$1::long', 9_007_199_254_740_993n), 9_007_199_254_740_993n);
    t.is(await value('$1::double', 1e21), 1e21);
    t.is(await value('year($1::timestamp)', new Date(0)), 1970);
    // Here only the value determines the parameter's type.
    t.is(await value('$1', 7), 7n);
    t.is(await value('$1', 1.5), 1.5);
    t.is(await value('$1', true), true);
    t.is(await value('$1', 'seven'), 'seven');
    t.is(await value('$1', null), null);
    const chosen = (parameter: Parameter): Promise<unknown> =>
      db.query('SELECT x FROM long_sequence(5) WHERE x = ANY($1)', [parameter]);
    t.deepEqual(await chosen([1, 3]), [{ x: 1n }, { x: 3n }]);
    t.deepEqual(await chosen(new Float64Array([5])), [{ x: 5n }]);
    t.deepEqual(await chosen([]), []);
  });
});

test('unsupported parameter values and wrong parameter counts are refused', async (t) => {
  await withLibrary(async (db) => {
    const expected = /^invalid parameter \$2: expected a string, number, bigint, boolean, Date/;
    for (const value of [{}, undefined, Symbol('x'), () => 1, new Date(Number.NaN)]) {
      const call = (): Promise<unknown> => db.query('SELECT $1::int, $2::int', [1, value as never]);
      await isRefused(t, call, 'InvalidValue', expected);
    }
    const few = (): Promise<unknown> => db.query('SELECT $1::int + $2::int', [1]);
    await isRefused(t, few, 'InvalidValue', 'the statement has 2 parameters, found 1');
    const many = (): Promise<unknown> => db.query('SELECT $1::int', [1, 2]);
    await isRefused(t, many, 'InvalidValue', 'the statement has 1 parameter, found 2');
  });
});

test('Temporal values can be parameters', async (t) => {
  // Node.js 24 and earlier have no Temporal; the library recognizes it by its tag.
  const temporal = (tag: string, text: string): Parameter => ({
    [Symbol.toStringTag]: `Temporal.${tag}`,
    toString: () => text,
  });
  await withLibrary(async (db) => {
    const nanos = '2026-01-02T03:04:05.123456789Z';
    t.deepEqual(
      await db.query('SELECT $1::timestamp_ns v', [temporal('Instant', nanos)], {
        timestamps: 'string',
      }),
      [{ v: nanos }],
    );
    t.is(
      (await db.get('SELECT year($1::timestamp) y', [temporal('PlainDate', '2026-01-02')]))?.['y'],
      2026,
    );
  });
});

test('a tagged template passes values as parameters and quotes names', async (t) => {
  await withLibrary(async (db) => {
    const name = 'select table';
    await db.execute(sql`CREATE TABLE ${identifier(name)} (s STRING)`);
    const value = "'); DROP TABLE x; --";
    t.is(
      (await db.execute(sql`INSERT INTO ${identifier(name)} VALUES (${value})`)).rowsAffected,
      1,
    );
    const found = sql`SELECT s FROM ${identifier(name)} WHERE s = ${value}`;
    t.is(found.text, 'SELECT s FROM "select table" WHERE s = $1');
    t.is(sql`SELECT ${identifier('a"b')}`.text, 'SELECT "a""b"');
    t.deepEqual(await db.query<{ s: string }>(found), [{ s: value }]);
  });
});

/** For each column type, a literal and the value that a result row contains for it. */
const CELLS: readonly (readonly [type: string, literal: string, value: unknown])[] = [
  ['BOOLEAN', 'true', true],
  ['BYTE', '7', 7],
  ['SHORT', '-7', -7],
  ['INT', '70000', 70_000],
  ['LONG', '9007199254740993', 9_007_199_254_740_993n],
  ['FLOAT', '1.5', 1.5],
  ['DOUBLE', '2.25', 2.25],
  ['CHAR', "'ä'", 'ä'],
  ['STRING', "'text'", 'text'],
  ['VARCHAR', "'Ω'", 'Ω'],
  ['SYMBOL', "'sym'", 'sym'],
  ['DATE', "'2026-01-02T03:04:05.678Z'", new Date('2026-01-02T03:04:05.678Z')],
  ['TIMESTAMP', "'2026-01-02T03:04:05.678901Z'", new Date('2026-01-02T03:04:05.678Z')],
  ['TIMESTAMP_NS', "'1969-12-31T23:59:59.9999Z'", new Date(-1)],
  ['UUID', "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
  ['IPV4', "'10.1.2.3'", '10.1.2.3'],
  ['LONG256', "'0x0a12'", '0x0a12'],
  ['GEOHASH(4c)', "'u33d'", 'u33d'],
  ['GEOHASH(3b)', "'101'", '101'],
  ['DECIMAL(30,2)', "'12345678901234567890.12'", '12345678901234567890.12'],
  ['DOUBLE[]', 'ARRAY[1.0, null, 2.5]', [1, null, 2.5]],
  ['DOUBLE[][]', 'ARRAY[[1.0], [2.0]]', [[1], [2]]],
];

async function everyType(db: TidemarkDatabase): Promise<void> {
  const columns = CELLS.map(([type], index) => `c${index} ${type}`);
  await db.execute(`CREATE TABLE every (${columns.join(', ')}, b BINARY, id INT)`);
  const names = CELLS.map((_, index) => `c${index}`).join(', ');
  const literals = CELLS.map(([, literal]) => literal).join(', ');
  await db.execute(`INSERT INTO every (${names}, b, id) VALUES (${literals}, $1, 0)`, [
    new Uint8Array([0, 255]),
  ]);
  await db.execute('INSERT INTO every (id) VALUES (1)');
}

test('rows contain a JavaScript value for every SQL type and for null', async (t) => {
  await withLibrary(async (db) => {
    await everyType(db);
    const [row, empty] = await db.query('SELECT * FROM every ORDER BY id');
    CELLS.forEach(([type, , value], index) => {
      t.deepEqual(row?.[`c${index}`], value as never, type);
      const none = type === 'BOOLEAN' ? false : /^(BYTE|SHORT)$/.test(type) ? 0 : null;
      t.is(empty?.[`c${index}`], none, type);
    });
    t.deepEqual(row?.['b'], new Uint8Array([0, 255]));
    t.is(empty?.['b'], null);
  });
});

test('timestamps and LONG values are returned in the requested form', async (t) => {
  await withLibrary(async (db) => {
    const text = "'1969-12-31T23:59:59.999999999Z'";
    const query = `SELECT ${text}::timestamp_ns n, ${text}::timestamp u, 5::long l`;
    t.deepEqual(await db.get(query, [], { timestamps: 'string', longs: 'number' }), {
      n: '1969-12-31T23:59:59.999999999Z',
      u: '1969-12-31T23:59:59.999999Z',
      l: 5,
    });
    t.deepEqual(await db.get(query, [], { timestamps: 'bigint' }), { n: -1n, u: -1n, l: 5n });
    const large = (): Promise<unknown> =>
      db.query('SELECT 9007199254740993 big', [], { longs: 'number' });
    await isRefused(t, large, 'InvalidValue', /^column 'big' has the value 9007199254740993/);
    if (!('Temporal' in globalThis)) {
      const instant = (): Promise<unknown> => db.query(query, [], { timestamps: 'instant' });
      await isRefused(t, instant, 'NotSupported', /^timestamps: 'instant' requires Temporal/);
    }
  });
});

test('all batches of an Arrow table share one schema', async (t) => {
  await withLibrary(async (db) => {
    const query = `SELECT x, ('s' || (x / 30000))::symbol s,
      CASE WHEN x > 290000 THEN null ELSE x::double END d FROM long_sequence(300000)`;
    const table = await db.table(query);
    t.is(table.numRows, 300_000);
    t.true(table.batches.length > 1);
    const ends = [0, 299_999].map((row) => table.get(row)?.toJSON());
    t.deepEqual(ends, [
      { x: 1n, s: 's0', d: 1 },
      { x: 300_000n, s: 's10', d: null },
    ]);
    const again = tableFromIPC(tableToIPC(table, 'stream'));
    t.deepEqual([again.numRows, again.get(299_999)?.toJSON()], [300_000, ends[1]]);
    t.is((await db.query(query)).at(-1)?.['s'], 's10');
  });
});

test('an empty result still has columns', async (t) => {
  await withLibrary(async (db) => {
    await everyType(db);
    const table = await db.table('SELECT * FROM every WHERE id = 5');
    t.is(table.numRows, 0);
    t.is(table.schema.fields.length, CELLS.length + 2);
    const filled = await db.table('SELECT * FROM every');
    t.deepEqual(
      table.schema.fields.map((field) => String(field.type)),
      filled.schema.fields.map((field) => String(field.type)),
    );
    t.deepEqual(await db.query('SELECT * FROM every WHERE id = 5'), []);
    t.is(await db.get('SELECT * FROM every WHERE id = 5'), undefined);
  });
});

test('an abort signal cancels every kind of query with the given reason', async (t) => {
  await withLibrary(async (db) => {
    const reason = new Error('no longer needed');
    const calls: ((signal: AbortSignal) => Promise<unknown>)[] = [
      (signal) => db.query(ENDLESS, [], { signal }),
      (signal) => db.get(ENDLESS, [], { signal }),
      (signal) => db.table(ENDLESS, [], { signal }),
      (signal) => db.execute(ENDLESS, [], { signal }),
      (signal) => db.iterate(ENDLESS, [], { signal }).next(),
      (signal) => db.stream(ENDLESS, [], { signal }).next(),
      (signal) => db.query(FIRST_ROWS, [], { signal }),
    ];
    for (const call of calls) {
      const controller = new AbortController();
      const waits = call(controller.signal);
      setTimeout(() => {
        controller.abort(reason);
      }, 50);
      t.is(await t.throwsAsync(waits), reason);
      await t.throwsAsync(call(AbortSignal.abort(reason)), { is: reason });
    }
    t.deepEqual(
      await db.query('SELECT query FROM query_activity() WHERE query LIKE $1', ['%-1%']),
      [],
    );
  });
});

test('leaving a result loop cancels its query, even before the first rows', async (t) => {
  await withLibrary(async (db) => {
    for (const loop of [db.stream(ENDLESS), db.iterate(ENDLESS)]) {
      const waits = loop.next();
      setTimeout(() => void loop.return?.(), 50);
      t.deepEqual(await waits, { done: true, value: undefined });
    }
    for await (const row of db.iterate<{ x: bigint }>(FIRST_ROWS)) {
      t.is(row.x, 1n);
      break;
    }
    for await (const batch of db.stream(FIRST_ROWS)) {
      t.true(batch instanceof RecordBatch);
      break;
    }
    const running = await db.query(
      "SELECT query FROM query_activity() WHERE query LIKE '%long_seq%'",
    );
    t.true(running.length <= 1, 'only the list itself');
  });
});

test('a timeout ends a query', async (t) => {
  await withLibrary(async (db) => {
    const call = (): Promise<unknown> => db.query(ENDLESS, [], { timeoutMs: 50 });
    await isRefused(t, call, 'Timeout', 'timeout, query aborted [timeout=50ms]');
  });
});

test('a prepared statement can run many times, even concurrently', async (t) => {
  await withLibrary(async (db) => {
    const statement = await db.prepare('SELECT x FROM long_sequence(10) WHERE x > $1 ORDER BY x');
    t.deepEqual(statement.parameterTypes, ['LONG']);
    t.deepEqual(
      statement.columns.map(({ name, type }) => [name, type]),
      [['x', 'LONG']],
    );
    const results = await Promise.all([8, 9, 10].map((above) => statement.query([above])));
    t.deepEqual(results, [[{ x: 9n }, { x: 10n }], [{ x: 10n }], []]);
    t.deepEqual(await statement.get([3]), { x: 4n });
    t.is((await statement.table([5])).numRows, 5);
    statement.close();
    await isRefused(t, () => statement.query([1]), 'Closed', 'the prepared statement is closed');
  });
});

test('a script runs its statements in order and stops at an error', async (t) => {
  await withLibrary(async (db) => {
    const script = "CREATE TABLE t (s STRING); INSERT INTO t VALUES ('a;b'); -- end;\n";
    t.deepEqual(
      (await db.script(script)).map(({ rowsAffected }) => rowsAffected),
      [0, 1],
    );
    const wrong = (): Promise<unknown> =>
      db.script("INSERT INTO t VALUES ('x'); SELECT * FROM missing; INSERT INTO t VALUES ('y')");
    await isRefused(t, wrong, 'TableNotFound', /missing/);
    t.deepEqual(await db.query('SELECT s FROM t'), [{ s: 'a;b' }, { s: 'x' }]);
  });
});

test('table() returns a Table of the Arrow package that the caller imports', async (t) => {
  await withLibrary(async (db) => {
    t.true((await db.table('SELECT 1 one')) instanceof Table);
  });
});

test('unknown engine options are refused, and the error names them', async (t) => {
  // @ts-expect-error: no such option.
  const unknown = (): Promise<unknown> => open({ root: ':memory:', speed: 'high' });
  await isRefused(t, unknown, 'InvalidValue', /^malformed open options: unknown field `speed`/);
  // @ts-expect-error: no such mode.
  const mode = (): Promise<unknown> => open({ root: ':memory:', commitMode: 'soon' });
  await isRefused(t, mode, 'InvalidValue', /unknown variant `soon`, expected one of/);
});
