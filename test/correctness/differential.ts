/**
 * Compares standard SQL with DuckDB: random tables, random queries; the rows must match.
 *
 *     npm run differential -- --queries N --seed S
 */
import { Harness } from '../torture/harness.js';
import { difference } from './answers.js';
import { type Answer, type Database, DuckDb, Refusal, Tidemark } from './databases.js';
import { StandardQueries } from './standard-queries.js';
import { standardTable } from './standard-tables.js';

const QUERIES_PER_TABLES = 50;
const NAMES = ['t0', 't1', 't2'];

const harness = new Harness('differential', ['queries']);
const duckdb =
  (await DuckDb.start()) ??
  harness.skip('DuckDB is not installed: pip install duckdb, or npm test, which installs it');
const tidemark = await Tidemark.start();

async function answerOf(database: Database, sql: string): Promise<Answer | Refusal> {
  try {
    return await database.query(sql);
  } catch (error) {
    if (error instanceof Refusal) {
      return error;
    }
    throw error;
  }
}

/** Setup statements for a query that failed, ready to paste. */
let setup: readonly string[] = [];
let refused = 0;

async function fill(): Promise<void> {
  const tables = NAMES.map((name) => standardTable(name, harness.random));
  setup = tables.flatMap(({ ours }) => ours);
  for (const { ours, standard } of tables) {
    for (const sql of ours) {
      await tidemark.query(sql);
    }
    for (const sql of standard) {
      await duckdb.query(sql);
    }
  }
}

async function compare(queries: StandardQueries): Promise<string | undefined> {
  const { sql, ordered } = queries.next();
  const [ours, theirs] = await Promise.all([answerOf(tidemark, sql), answerOf(duckdb, sql)]);
  if (theirs instanceof Refusal) {
    refused += 1;
    return ours instanceof Refusal ? undefined : `DuckDB refuses: ${theirs.message}\n  ${sql}`;
  }
  const problem = ours instanceof Refusal ? ours.message : difference(ours, theirs, { ordered });
  return problem === undefined ? undefined : `${problem}\n  ${sql}`;
}

const total = harness.number('queries', 500);
for (let done = 0; done < total; done += QUERIES_PER_TABLES) {
  await fill();
  const queries = new StandardQueries(harness.random.fork(), NAMES);
  for (let index = done; index < Math.min(total, done + QUERIES_PER_TABLES); index += 1) {
    const problem = await compare(queries);
    if (problem !== undefined && harness.failures === 0) {
      harness.say(`${setup.join(';\n')};`);
    }
    harness.judge(problem === undefined ? undefined : `query ${index}: ${problem}`);
  }
}
harness.say(`${total} queries, ${refused} of them refused by DuckDB`);
await tidemark.close();
await duckdb.close();
harness.finish();
