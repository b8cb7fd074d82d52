/** The databases to compare: Tidemark, and DuckDB as the oracle for standard SQL. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import { execute } from '../golden/http-client.js';
import { startTestServer, type TestServer } from '../golden/server.js';

/** Statement timeout in milliseconds, generous for a busy machine. */
const LIMIT_MS = '10000';

export type Cell = string | number | boolean | null;

export interface Answer {
  readonly rows: readonly (readonly Cell[])[];
}

/** An error that the database returned. Any other exception means that it did not answer. */
export class Refusal extends Error {
  readonly status: number;
  /** Position of the error in the SQL text, if reported. */
  readonly position: number | undefined;

  constructor(status: number, message: string, position?: number) {
    super(message);
    this.status = status;
    this.position = position;
  }
}

export interface Database {
  readonly name: string;
  query(sql: string): Promise<Answer>;
  close(): Promise<void>;
}

interface Body {
  readonly dataset?: readonly (readonly Cell[])[];
  readonly error?: string;
  readonly position?: number | string;
}

/** A Tidemark server with an empty root directory. */
export class Tidemark implements Database {
  readonly name = 'tidemark';
  readonly server: TestServer;

  private constructor(server: TestServer) {
    this.server = server;
  }

  static async start(set: readonly string[] = []): Promise<Tidemark> {
    return new Tidemark(await startTestServer({ set }));
  }

  async query(sql: string): Promise<Answer> {
    const reply = await execute(this.server.url, sql, { 'Statement-Timeout': LIMIT_MS });
    const body = JSON.parse(reply.body.toString()) as Body;
    if (body.error !== undefined) {
      const position = body.position === undefined ? undefined : Number(body.position);
      throw new Refusal(reply.status, body.error, position);
    }
    return { rows: body.dataset ?? [] };
  }

  async close(): Promise<void> {
    await this.server.stop();
  }
}

/** A Python program that prints one line of JSON for each line of statements that it reads. */
const DUCKDB_PROGRAM = `
import datetime, decimal, json, sys
import duckdb
connection = duckdb.connect()
def plain(value):
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, datetime.datetime):
        return value.strftime('%Y-%m-%dT%H:%M:%S.%fZ')
    if isinstance(value, float) and (value != value or value in (float('inf'), float('-inf'))):
        return None
    return value
for line in sys.stdin:
    try:
        rows = connection.execute(json.loads(line)).fetchall()
        answer = {'dataset': [[plain(cell) for cell in row] for row in rows]}
    except Exception as error:
        answer = {'error': str(error)}
    print(json.dumps(answer), flush=True)
`;

/** In-memory DuckDB through its Python package. */
export class DuckDb implements Database {
  readonly name = 'duckdb';
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;

  private constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  }

  /** Returns `undefined` if Python or the package is missing. */
  static async start(): Promise<DuckDb | undefined> {
    const child = spawn('python3', ['-c', DUCKDB_PROGRAM]);
    child.on('error', () => undefined);
    child.stdin.on('error', () => undefined);
    const database = new DuckDb(child);
    try {
      await database.query('SELECT 1');
      return database;
    } catch {
      return undefined;
    }
  }

  async query(sql: string): Promise<Answer> {
    this.#child.stdin.write(`${JSON.stringify(sql)}\n`);
    const line = await this.#lines.next();
    if (line.done === true) {
      throw new Error('DuckDB ended');
    }
    const body = JSON.parse(line.value) as Body;
    if (body.error !== undefined) {
      throw new Refusal(400, body.error);
    }
    return { rows: body.dataset ?? [] };
  }

  close(): Promise<void> {
    this.#child.kill();
    return Promise.resolve();
  }
}
