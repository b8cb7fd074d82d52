/** Opens an embedded database for a test. */
import type { ExecutionContext } from 'ava';

import { DatabaseError, open, type TidemarkDatabase } from '../../ts/index.js';

export async function withLibrary(
  work: (database: TidemarkDatabase) => Promise<void>,
): Promise<void> {
  const database = await open(':memory:');
  try {
    await work(database);
  } finally {
    await database.close();
  }
}

/** Expects a `DatabaseError` with this code and message. */
export async function isRefused(
  t: ExecutionContext,
  call: () => Promise<unknown>,
  code: DatabaseError['code'],
  message: RegExp | string,
): Promise<void> {
  const error = await t.throwsAsync(call, { instanceOf: DatabaseError });
  t.is(error.code, code, error.message);
  if (typeof message === 'string') {
    t.is(error.message, message);
  } else {
    t.regex(error.message, message);
  }
}
