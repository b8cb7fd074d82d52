/** An engine database for a single test. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
  type Database,
  openDatabase,
  type Statement,
  type StatementContext,
} from '../../ts/engine/index.js';
import { parse } from '../../ts/sql/index.js';

export type ParameterTypes = StatementContext['parameterTypes'];

/** Opens an empty root and removes it when `work` ends. */
export async function withDatabase(work: (database: Database) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-border-'));
  const database = await openDatabase({ root });
  try {
    await work(database);
  } finally {
    await database.close();
    await rm(root, { recursive: true, force: true });
  }
}

export async function prepare(
  database: Database,
  sql: string,
  parameterTypes?: ParameterTypes,
): Promise<Statement> {
  const types = parameterTypes === undefined ? {} : { parameterTypes };
  const tree = Buffer.from(JSON.stringify(parse(sql)));
  return await database.prepare(tree, { user: 'admin', ...types });
}

/** Runs a statement and returns its first rows as JSON. */
export async function run(database: Database, sql: string): Promise<string> {
  const statement = await prepare(database, sql);
  const reply = await statement.execute([], { rows: { format: 'json' } });
  return reply.chunk?.bytes.toString() ?? '';
}
