/**
 * The functions listed by `functions()`, with the results of their examples on a Tidemark server.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { execute, send } from '../../golden/http-client.js';
import { startTestServer, type TestServer } from '../../golden/server.js';

export interface ListedFunction {
  readonly name: string;
  readonly family: string;
  readonly kind: string;
  readonly signatures: readonly string[];
  readonly description: string;
  /** The expression after SELECT. */
  readonly example: string;
  /** The cells of the example's result, row by row. */
  readonly result: string;
}

interface Answer {
  readonly dataset?: readonly (readonly unknown[])[];
  readonly error?: string;
}

const DEMO = [
  `CREATE TABLE demo (ts TIMESTAMP, k SYMBOL, v DOUBLE) TIMESTAMP(ts) PARTITION BY DAY`,
  `INSERT INTO demo VALUES ('2026-11-21T10:00:00', 'a', 1.5), ('2026-11-21T11:00:00', 'b', 2.5)`,
];

/** Returns every function, with its example executed. */
export async function listFunctions(): Promise<readonly ListedFunction[]> {
  const server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  try {
    await prepare(server);
    const columns = 'name, family, type, signature, description, example';
    const rows = await query(server.url, `SELECT ${columns} FROM functions()`);
    const found = new Map<string, ListedFunction>();
    for (const row of rows) {
      const [name, family, kind, signature, description, example] = row.map(String) as Cells;
      const known = found.get(`${family} ${name}`);
      const signatures = [...(known?.signatures ?? []), signature];
      const result = known?.result ?? (await run(server.url, example));
      const listed = { name, family, kind, signatures, description, example, result };
      found.set(`${family} ${name}`, listed);
    }
    return [...found.values()];
  } finally {
    await server.stop();
  }
}

type Cells = [string, string, string, string, string, string];

async function prepare(server: TestServer): Promise<void> {
  for (const text of DEMO) {
    await query(server.url, text);
  }
  const target = `/exp?fmt=parquet&query=${encodeURIComponent('SELECT k, v FROM demo')}`;
  const { body } = await send(server.url, { method: 'GET', target, headers: {}, body: null });
  const folder = join(server.root, 'import');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'demo.parquet'), body);
  await writeFile(join(folder, 'demo.csv'), 'k,v\na,1.5\nb,2.5\n');
  await writeFile(join(folder, 'demo.json'), '{"k":"a","v":1.5}\n{"k":"b","v":2.5}\n');
}

async function run(url: string, example: string): Promise<string> {
  const rows = await query(url, `SELECT ${example}`);
  return rows.map((row) => row.map(shown).join(', ')).join('; ');
}

function shown(cell: unknown): string {
  return typeof cell === 'string' ? cell : JSON.stringify(cell);
}

async function query(url: string, text: string): Promise<readonly (readonly unknown[])[]> {
  const { body } = await execute(url, text);
  const answer = JSON.parse(body.toString('utf8')) as Answer;
  if (answer.error !== undefined) {
    throw new Error(`${text}: ${answer.error}`);
  }
  return answer.dataset ?? [];
}
