/** Values that callers of the embedded library may pass, and the errors for other values. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';

import { DatabaseError, type EmbeddedDatabase, open, type Parameter } from '../../ts/index.js';

async function withLibrary(work: (database: EmbeddedDatabase) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-library-'));
  const database = await open({ root });
  try {
    await work(database);
  } finally {
    await database.close();
    await rm(root, { recursive: true, force: true });
  }
}

async function isRefused(
  t: ExecutionContext,
  call: () => Promise<unknown>,
  message: RegExp,
): Promise<void> {
  const error = await t.throwsAsync(call, { instanceOf: DatabaseError });
  t.is(error.code, 'InvalidValue');
  t.regex(error.message, message);
}

test('parameters can be JavaScript values', async (t) => {
  await withLibrary(async (database) => {
    const query = async (sql: string, value: Parameter): Promise<unknown> => {
      const table = await database.query(`SELECT ${sql} v`, [value]);
      return table.getChild('v')?.get(0) as unknown;
    };
    t.is(await query('$1::long', 7), 7n);
    t.is(await query('$1::long', 9_007_199_254_740_993n), 9_007_199_254_740_993n);
    t.is(await query('$1::double', 1e21), 1e21);
    t.is(await query('$1::boolean', true), true);
    t.is(await query('$1::string', 'seven'), 'seven');
    t.is(await query('$1::long', null), null);
    t.is(await query('year($1::timestamp)', new Date(0)), 1970);
    for (const value of [{}, undefined, new Date(Number.NaN)]) {
      const call = (): Promise<unknown> => query('$1::long', value as never);
      await isRefused(t, call, /^invalid parameter \$1: expected a string, number, bigint/);
    }
  });
});

test('an appender imports CSV, and unused columns do not need a type', async (t) => {
  await withLibrary(async (database) => {
    const csv = {
      delimiter: ',',
      header: false,
      columns: [{ index: 0, name: 'x', type: 'INT' }],
      atomicity: 'skipCol',
      skipExtraValues: false,
    } as const;
    const spec = { table: 't', create: true, overwrite: false, csv };
    const appender = await database.appender({ kind: 'csv', ...spec });
    await appender.write(Buffer.from('1\n2\n'));
    t.is((await appender.finish()).rowsImported, 2);
    // @ts-expect-error: no such kind.
    const arrow = (): Promise<unknown> => database.appender({ kind: 'arrow', ...spec });
    await isRefused(
      t,
      arrow,
      /^malformed appender: unknown variant `arrow`, expected one of `csv`/,
    );
  });
});

test('unknown engine options are refused with their name', async (t) => {
  const root = join(tmpdir(), 'tidemark-never-made');
  // @ts-expect-error: no such option.
  const unknown = (): Promise<unknown> => open({ root, speed: 'high' });
  await isRefused(t, unknown, /^malformed open options: unknown field `speed`/);
  // @ts-expect-error: no such mode.
  const mode = (): Promise<unknown> => open({ root, commitMode: 'soon' });
  await isRefused(t, mode, /^malformed open options: unknown variant `soon`, expected one of/);
});
