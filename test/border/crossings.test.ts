/**
 * Counts calls across the native interface. Runs alone in its process, because calls are counted
 * for all databases.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import type * as Addon from '#native';

import { openDatabase } from '../../ts/engine/index.js';
import { SessionHost } from '../../ts/session/index.js';
import { readStatement } from '../../ts/sql/index.js';

type Method = (this: unknown, ...given: unknown[]) => unknown;

/** Records the names of all addon methods called from now on. */
function countCalls(): string[] {
  const native = createRequire(import.meta.url)('#native') as typeof Addon;
  const calls: string[] = [];
  for (const { prototype } of [native.NativeDatabase, native.NativeStatement]) {
    for (const name of Object.getOwnPropertyNames(prototype)) {
      const inner = Object.getOwnPropertyDescriptor(prototype, name)?.value as unknown;
      if (name !== 'constructor' && typeof inner === 'function') {
        const counted: Method = function (...given) {
          calls.push(name);
          return (inner as Method).apply(this, given);
        };
        Object.defineProperty(prototype, name, { value: counted });
      }
    }
  }
  return calls;
}

test('a repeated query without a table only reads the current epoch', async (t) => {
  const calls = countCalls();
  const root = await mkdtemp(join(tmpdir(), 'tidemark-crossings-'));
  const database = await openDatabase({ root });
  const session = new SessionHost({ database, parse: readStatement }).open({
    name: 'admin',
    readOnly: false,
  });
  const query = async (): Promise<readonly string[]> => {
    calls.length = 0;
    const statement = await session.prepare('SELECT 1');
    const { chunk, summary } = await statement.execute([], { rows: { format: 'json' } });
    statement.close();
    t.is(chunk?.bytes.toString(), '[1]');
    t.is(summary?.rowsReturned, 1);
    return [...calls];
  };
  t.deepEqual(await query(), ['prepare', 'execute']);
  t.deepEqual(await query(), ['currentEpoch', 'currentEpoch']);
  await database.close();
  await rm(root, { recursive: true, force: true });
});
