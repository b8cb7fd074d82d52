/** Calls of the embedded library that would have no effect, another effect, or leave something. */
import { execFile } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import test from 'ava';
import {
  type DataType,
  Float64,
  Int32,
  makeData,
  makeVector,
  Table,
  TimestampSecond,
  Uint16,
  Uint64,
  Utf8,
  vectorFromArray,
  type Vector,
} from 'apache-arrow';

import { DatabaseError, serve, StartError } from '../../ts/index.js';
import { isRefused, withLibrary } from './with-library.js';

const LIBRARY = new URL('../../ts/index.js', import.meta.url).href;

test('an appender remains usable after an append that found no columns', async (t) => {
  await withLibrary(async (db) => {
    await db.execute('CREATE TABLE t (x INT)');
    const appender = await db.appender('t');
    await isRefused(t, () => appender.append({}), 'InvalidValue', 'the rows have no columns');
    await isRefused(t, () => appender.append({ y: 1 }), 'ColumnNotFound', /column=y/);
    await appender.append({ x: 1 });
    t.is(await appender.finish(), 1);
    t.deepEqual(await db.query('SELECT x FROM t'), [{ x: 1 }]);
    const refused = await db.appender('t');
    await isRefused(t, () => refused.append({}), 'InvalidValue', 'the rows have no columns');
    t.is(await refused.finish(), 0);
  });
});

test('execute counts the rows of a RETURNING clause', async (t) => {
  await withLibrary(async (db) => {
    await db.execute('CREATE TABLE t (x INT)');
    const affected = async (text: string): Promise<number> => (await db.execute(text)).rowsAffected;
    t.is(await affected('INSERT INTO t VALUES (1), (2) RETURNING x'), 2);
    const many = 'INSERT INTO t SELECT x::int FROM long_sequence(300000) RETURNING x';
    t.is(await affected(many), 300_000);
    t.is(await affected('UPDATE t SET x = 0 WHERE x < 3 RETURNING x'), 4);
    t.is(await affected('UPDATE t SET x = 1 WHERE x < 0 RETURNING x'), 0);
    t.is(await affected('DELETE FROM t WHERE x = 0 RETURNING x'), 4);
    t.is(await affected('INSERT INTO t VALUES (1)'), 1);
    t.is(await affected('SELECT x FROM t'), 0);
    t.deepEqual(await db.query('SELECT count() n FROM t'), [{ n: 299_999n }]);
  });
});

test('a query that fails leaves no listener on its signal', async (t) => {
  await withLibrary(async (db) => {
    const { signal } = new AbortController();
    const wrong = 'SELECT 1::int / x FROM missing';
    const late = 'SELECT $1::int';
    const statement = await db.prepare(late);
    const calls: readonly (() => Promise<unknown>)[] = [
      () => db.get(wrong, [], { signal }),
      () => db.iterate(wrong, [], { signal }).next(),
      () => db.stream(wrong, [], { signal }).next(),
      () => db.changes('missing', { signal }).next(),
      () => db.get(late, ['a'], { signal }),
      () => statement.get(['a'], { signal }),
      () => statement.iterate(['a'], { signal }).next(),
      () => statement.stream(['a'], { signal }).next(),
    ];
    for (const [index, call] of calls.entries()) {
      await t.throwsAsync(call, { instanceOf: DatabaseError });
      t.is(getEventListeners(signal, 'abort').length, 0, `call ${index}`);
    }
  });
});

test('statements of a connection are refused with a hint', async (t) => {
  await withLibrary(async (db) => {
    await db.execute('CREATE TABLE t (x INT)');
    const refused: readonly (readonly [text: string, missing: string, hint: RegExp])[] = [
      ['BEGIN', 'transaction blocks', /transaction\(\)/],
      ["PREPARE TRANSACTION 'a'", 'transaction blocks', /transaction\(\)/],
      ['SET TRANSACTION READ ONLY', 'transaction modes', /readOnly/],
      ['LOCK TABLE t', 'table locks', /transaction\(\)/],
      ['SET statement_timeout = 5', 'session settings', /timeoutMs/],
      ["SET TIME ZONE 'UTC'", 'session settings', /./],
      ['SET NAMES utf8', 'session settings', /./],
      ['RESET ALL', 'session settings', /./],
      ['DISCARD ALL', 'session settings', /./],
      ['SET ROLE admin', 'roles', /server/],
      ['RESET ROLE', 'roles', /server/],
      ['PREPARE a AS SELECT 1', 'named statements', /prepare\(\)/],
      ['EXECUTE a', 'named statements', /prepare\(\)/],
      ['DEALLOCATE a', 'named statements', /prepare\(\)/],
      ['DECLARE c CURSOR FOR SELECT 1', 'cursors', /iterate\(\)/],
      ['FETCH c', 'cursors', /iterate\(\)/],
      ['CLOSE c', 'cursors', /iterate\(\)/],
      ['LISTEN t', 'channels', /changes\(\)/],
      ['UNLISTEN *', 'channels', /changes\(\)/],
      ['NOTIFY t', 'channels', /changes\(\)/],
      ['COPY t FROM STDIN', 'COPY … FROM STDIN', /importCsv\(\)/],
      ['COPY t TO STDOUT', 'COPY … TO STDOUT', /iterate\(\)/],
    ];
    for (const [text, missing, hint] of refused) {
      const message = `the library has no ${missing}`;
      for (const call of [
        () => db.execute(text),
        () => db.transaction((tx) => tx.execute(text)),
        () => db.prepare(text),
        () => db.script(`SELECT 1; ${text}`),
      ]) {
        await isRefused(t, call, 'NotSupported', message);
      }
      const error = await t.throwsAsync(db.execute(text), { instanceOf: DatabaseError });
      t.regex(error.hint ?? '', hint, text);
    }
  });
});

test('a CSV import refuses a name or delimiter that it would not use as it is', async (t) => {
  await withLibrary(async (db) => {
    for (const delimiter of [';;', '', '"', 'é']) {
      const call = (): Promise<unknown> => db.importCsv('t', ['a;b\n1;2\n'], { delimiter });
      const message = `invalid delimiter '${delimiter}': expected one ASCII character`;
      await isRefused(t, call, 'InvalidValue', message);
    }
    for (const name of ['../c5', 'a/b', 'a.', '']) {
      const call = (): Promise<unknown> => db.importCsv(name, ['a\n1\n']);
      await isRefused(t, call, 'InvalidValue', `invalid table name [table=${name}]`);
    }
    t.deepEqual(await db.query('SELECT table_name FROM tables()'), []);
    await db.importCsv('a b.csv', ['a|b\n1|2\n'], { delimiter: '|', header: true });
    t.deepEqual(await db.query('SELECT a, b FROM "a b.csv"'), [{ a: 1, b: 2 }]);
  });
});

test('a server refuses unknown options and keys, and names the nearest', async (t) => {
  await withLibrary(async (db) => {
    const refused: readonly (readonly [options: object, message: string])[] = [
      [
        { set: ['pg.enabled=false', 'http.bind.too=127.0.0.1:0'] },
        "unknown configuration key 'http.bind.too'; did you mean 'http.bind.to'?",
      ],
      [{ set: ['qwertyuiopasdfgh=1'] }, "unknown configuration key 'qwertyuiopasdfgh'"],
      [{ set: ['pg.enabled'] }, "--set expects key=value, found 'pg.enabled'"],
      [{ sets: [] }, "unknown option 'sets'; did you mean 'set'?"],
      [{ httpPort: 5 }, "unknown option 'httpPort'"],
    ];
    for (const [options, message] of refused) {
      await t.throwsAsync(() => db.serve(options), { instanceOf: StartError, message });
      const alone = { root: join(tmpdir(), 'tidemark-unused'), ...options };
      await t.throwsAsync(() => serve(alone), { instanceOf: StartError, message });
    }
  });
});

function vector(type: DataType, data: object): Vector {
  const { length } = data as { length: number };
  return makeVector(makeData({ type, length, nullCount: 0, data } as never));
}

test('an Arrow value that the column would change is refused', async (t) => {
  await withLibrary(async (db) => {
    const columns = 'y BYTE, s SHORT, i INT, l LONG, c CHAR, ts TIMESTAMP, d DATE, f DOUBLE';
    await db.execute(`CREATE TABLE t (${columns})`);
    const halves = vector(new Float64(), Float64Array.of(1, 1.5));
    const seconds = vector(new TimestampSecond(), BigInt64Array.of(2n ** 60n));
    const large = vector(new Uint64(), BigUint64Array.of(1n, 2n ** 63n));
    const refused: readonly (readonly [column: string, values: Vector, message: RegExp])[] = [
      ['y', halves, /^column 'y' \(BYTE\): cannot convert 1\.5, expected an integer of 8 bits$/],
      ['i', halves, /^column 'i' \(INT\): cannot convert 1\.5, expected an integer of 32 bits$/],
      ['ts', halves, /expected an integer of 64 bits$/],
      ['s', vector(new Float64(), Float64Array.of(32_768)), /convert 32768, .* of 16 bits$/],
      ['l', vector(new Float64(), Float64Array.of(1e300)), /convert 1e\+300, .* of 64 bits$/],
      ['l', large, /cannot convert 9223372036854775808, expected a value within 64 bits$/],
      ['i', large, /expected a value within 64 bits$/],
      ['c', vector(new Uint16(), Uint16Array.of(65)), /type Uint16, expected strings$/],
      ['ts', seconds, /cannot convert 1152921504606846976, expected a number of seconds within/],
      ['d', seconds, /expected a number of seconds within ±9223372036854775$/],
    ];
    const appender = await db.appender('t', { columns: ['y', 's', 'i', 'l', 'c', 'ts', 'f'] });
    for (const [column, values, message] of refused) {
      const table = new Table({ [column]: values });
      await isRefused(t, () => appender.appendTable(table), 'InvalidValue', message);
    }
    await appender.appendTable(
      new Table({
        i: vector(new Float64(), Float64Array.of(-(2 ** 31) + 1, Number.NaN)),
        l: vectorFromArray([2n ** 63n - 1n, null], new Uint64()),
        c: vectorFromArray(['ä', 'b']),
        ts: vector(new TimestampSecond(), BigInt64Array.of(1n, 2n)),
        f: vector(new Uint64(), BigUint64Array.of(2n ** 63n, 0n)),
        y: vector(new Int32(), Int32Array.of(1, 2)),
      }),
    );
    await appender.appendTable(new Table({ c: vectorFromArray(['x'], new Utf8()) }));
    t.is(await appender.finish(), 3);
    const form = { timestamps: 'bigint' } as const;
    t.deepEqual(await db.query('SELECT i, l, c, ts, f, y FROM t', [], form), [
      { i: 1 - 2 ** 31, l: 2n ** 63n - 1n, c: 'ä', ts: 1_000_000n, f: 2 ** 63, y: 1 },
      { i: null, l: null, c: 'b', ts: 2_000_000n, f: 0, y: 2 },
      { i: null, l: null, c: 'x', ts: null, f: null, y: 0 },
    ]);
  });
});

test('a process that exits without closing a database in memory leaves no directory', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tidemark-exit-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const fill = `
    const db = await open(':memory:');
    await db.execute('CREATE TABLE t AS (SELECT x FROM long_sequence(100000))');`;
  const start = `
    const { readdirSync } = await import('node:fs');
    const { open } = await import('${LIBRARY}');
    ${fill}`;
  const count = 'console.log(readdirSync(process.env.TMPDIR).length);';
  const endless =
    "void db.execute('INSERT INTO t SELECT x FROM long_sequence(20000000)').catch(() => {});";
  const worker = `
    const { Worker } = await import('node:worker_threads');
    const program = \`import('${LIBRARY}').then(async ({ open }) => { ${fill} });\`;
    await new Promise((done) => new Worker(program, { eval: true }).on('exit', done));`;
  const programs: readonly (readonly [program: string, open: number])[] = [
    [`${start} ${count}`, 1],
    [`${start} ${fill.replace('db', 'other').replaceAll('db.', 'other.')} ${count}`, 2],
    [`${start} ${endless} ${count} process.exit(0);`, 1],
    [`${start} ${worker} ${count} process.exit(0);`, 1],
    [`${start} await db.close(); ${count}`, 0],
  ];
  const run = promisify(execFile);
  for (const [program, open] of programs) {
    const { stdout, stderr } = await run(
      process.execPath,
      ['--input-type=module', '--eval', program],
      { env: { ...process.env, TMPDIR: directory } },
    );
    t.deepEqual([stdout.trim(), stderr], [`${open}`, ''], program);
    t.deepEqual(await readdir(directory), [], program);
  }
});
