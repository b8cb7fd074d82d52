/**
 * `tidemark check`: reads every row of every table of a root nobody uses. Opening verifies the
 * log, the manifest and its references; reading verifies the checksum of every column.
 */
import { existsSync } from 'node:fs';

import { type Database, DatabaseError, openDatabase } from './engine/index.js';
import { type PreparedStatement, SessionHost } from './session/index.js';
import { parse } from './sql/index.js';
import { reasonOf, StartError } from './start-error.js';

/** One line per problem; a root in use, or none at all, is a `StartError`. */
export async function checkRoot(
  root: string,
  progress: (text: string) => void,
): Promise<readonly string[]> {
  if (!existsSync(root)) {
    throw new StartError(`there is no root directory '${root}'`);
  }
  let database: Database;
  try {
    database = await openDatabase({ root });
  } catch (error) {
    if (error instanceof DatabaseError && error.code === 'RootLocked') {
      throw new StartError(`the root directory '${root}' is in use by another process`);
    }
    return [reasonOf(error)];
  }
  try {
    return await checkTables(database, progress);
  } finally {
    await database.close();
  }
}

/** Reading a large table takes as long as it takes. */
const WEEK_MS = 7 * 86_400_000;

async function checkTables(
  database: Database,
  progress: (text: string) => void,
): Promise<readonly string[]> {
  const limits = { defaultTimeoutMs: WEEK_MS, maxTimeoutMs: WEEK_MS };
  const host = new SessionHost({ database, parse, ...limits });
  const session = host.open({ name: 'check', readOnly: true });
  const problems: string[] = [];
  for (const name of await tableNames(await session.prepare('SHOW TABLES'))) {
    progress(`checking ${name}`);
    try {
      const statement = await session.prepare(`SELECT * FROM "${name.replaceAll('"', '""')}"`);
      await readRows(statement, () => undefined);
    } catch (error) {
      problems.push(`table '${name}': ${reasonOf(error)}`);
    }
  }
  return problems;
}

async function tableNames(statement: PreparedStatement): Promise<readonly string[]> {
  const chunks: Buffer[] = [];
  await readRows(statement, (bytes) => chunks.push(bytes));
  const rows = JSON.parse(`[${Buffer.concat(chunks).toString('utf8')}]`) as string[][];
  return rows.map(([name]) => name ?? '');
}

async function readRows(
  statement: PreparedStatement,
  take: (bytes: Buffer) => void,
): Promise<void> {
  try {
    const reply = await statement.execute([], { rows: { format: 'json' } });
    let chunk = reply.chunk ?? (await reply.stream?.next()) ?? null;
    while (chunk !== null) {
      take(chunk.bytes);
      chunk = (await reply.stream?.next()) ?? null;
    }
  } finally {
    statement.close();
  }
}
