/**
 * npm run library-speed -- [--rows N] [--rounds N]
 *
 * Compares the embedded library with DuckDB's client for Node.js. Each reads one million rows of
 * five columns as an Arrow table and as objects, and appends them from objects. Each round measures
 * both libraries, in this process. Prints medians in milliseconds. DuckDB is used if its client is
 * installed in the tools folder:
 * `npm install --prefix ~/.cache/tidemark/tools/bench @duckdb/node-api@1`.
 */
import { createRequire } from 'node:module';
import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { open } from '../../ts/index.js';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '5' },
  },
});
const ROWS = Number(values.rows);
const ROUNDS = Number(values.rounds);
const SYMBOLS = ['BTC-USD', 'ETH-USD', 'SOL-USD', 'ADA-USD'] as const;
const START_MS = Date.UTC(2026, 0, 1);

type Measures = Readonly<Record<string, () => Promise<number>>>;

/** A system under test; each measure returns the number of rows it saw. */
interface System {
  readonly name: string;
  readonly measures: Measures;
  close(): Promise<void>;
}

interface Row {
  readonly ts: Date;
  readonly symbol: string;
  readonly price: number;
  readonly amount: number;
  readonly id: number;
}

const rows: readonly Row[] = Array.from({ length: ROWS }, (_, at) => ({
  ts: new Date(START_MS + at),
  symbol: SYMBOLS[at % SYMBOLS.length] ?? '',
  price: 100 + (at % 1000) / 7,
  amount: (at % 97) / 3,
  id: at,
}));

async function tidemark(folder: string): Promise<System> {
  const db = await open({ root: join(folder, 'tidemark') });
  const columns = 'ts TIMESTAMP, symbol SYMBOL, price DOUBLE, amount DOUBLE, id LONG';
  await db.execute(`CREATE TABLE t (${columns}) TIMESTAMP(ts) PARTITION BY DAY`);
  await db.execute(`CREATE TABLE copy (${columns}) TIMESTAMP(ts) PARTITION BY DAY`);
  const append = async (table: string): Promise<number> => {
    const appender = await db.appender(table);
    await appender.append(rows);
    return Number(await appender.finish());
  };
  await append('t');
  return {
    name: 'tidemark',
    measures: {
      'Arrow table': async () => (await db.table('SELECT * FROM t')).numRows,
      objects: async () => (await db.query('SELECT * FROM t')).length,
      'append objects': async () => {
        await db.execute('TRUNCATE TABLE copy');
        return append('copy');
      },
    },
    close: () => db.close(),
  };
}

/** The subset of DuckDB's client API that this program uses. */
interface DuckDb {
  readonly DuckDBInstance: {
    create(path: string): Promise<{ connect(): Promise<DuckDbConnection> }>;
  };
  readonly DuckDBTimestampValue: new (micros: bigint) => object;
}
interface DuckDbConnection {
  run(sql: string): Promise<unknown>;
  runAndReadAll(sql: string): Promise<{
    readonly currentRowCount: number;
    getColumns(): unknown[][];
    getRowObjectsJS(): unknown[];
  }>;
  createAppender(table: string): Promise<{
    appendTimestamp(value: object): void;
    appendVarchar(value: string): void;
    appendDouble(value: number): void;
    appendBigInt(value: bigint): void;
    endRow(): void;
    closeSync(): void;
  }>;
  closeSync(): void;
}

async function duckdb(folder: string): Promise<System | null> {
  const tools = process.env['TIDEMARK_TOOLS_DIR'] ?? join(homedir(), '.cache/tidemark/tools');
  let client: DuckDb;
  try {
    client = createRequire(join(tools, 'bench', 'package.json'))('@duckdb/node-api') as DuckDb;
  } catch {
    return null;
  }
  const connection = await (
    await client.DuckDBInstance.create(join(folder, 'duck.db'))
  ).connect();
  const columns = 'ts TIMESTAMP, symbol VARCHAR, price DOUBLE, amount DOUBLE, id BIGINT';
  await connection.run(`CREATE TABLE t (${columns})`);
  await connection.run(`CREATE TABLE copy (${columns})`);
  const append = async (table: string): Promise<number> => {
    const appender = await connection.createAppender(table);
    for (const { ts, symbol, price, amount, id } of rows) {
      appender.appendTimestamp(new client.DuckDBTimestampValue(BigInt(ts.getTime()) * 1000n));
      appender.appendVarchar(symbol);
      appender.appendDouble(price);
      appender.appendDouble(amount);
      appender.appendBigInt(BigInt(id));
      appender.endRow();
    }
    appender.closeSync();
    return rows.length;
  };
  await append('t');
  return {
    name: 'duckdb',
    measures: {
      'Arrow table': async () => {
        const [first = []] = (await connection.runAndReadAll('SELECT * FROM t')).getColumns();
        return first.length;
      },
      objects: async () =>
        (await connection.runAndReadAll('SELECT * FROM t')).getRowObjectsJS().length,
      'append objects': async () => {
        await connection.run('DELETE FROM copy');
        return append('copy');
      },
    },
    close: () => {
      connection.closeSync();
      return Promise.resolve();
    },
  };
}

const folder = await mkdtemp(join(tmpdir(), 'tidemark-library-'));
try {
  const found = [await tidemark(folder), await duckdb(folder)];
  const systems = found.filter((system) => system !== null);
  console.log(`${ROWS} rows of 5 columns, median of ${ROUNDS} rounds, ms`);
  for (const item of ['Arrow table', 'objects', 'append objects']) {
    const times = new Map(systems.map(({ name }) => [name, [] as number[]]));
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const { name, measures } of systems) {
        const start = performance.now();
        const count = await measures[item]?.();
        times.get(name)?.push(performance.now() - start);
        if (count !== ROWS) {
          throw new Error(`${name}: ${item}: ${count} rows`);
        }
      }
    }
    const medians = [...times].map(([name, all]) => {
      const sorted = all.sort((one, other) => one - other);
      return `${name} ${(sorted[ROUNDS >> 1] ?? 0).toFixed(0)}`;
    });
    console.log(`${item.padEnd(16)} ${medians.join('   ')}`);
  }
  await Promise.all(systems.map((system) => system.close()));
} finally {
  await rm(folder, { recursive: true, force: true });
}
process.exit();
