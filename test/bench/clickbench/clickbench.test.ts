/**
 * ClickBench's 43 queries over generated rows. The answers are compared with the results of plain
 * loops.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../../golden/server.js';
import { exec, importCsv } from '../../torture/client.js';
import { COLUMNS, csvHeader, csvLine, hitRows } from './columns.js';
import { type Cell, expectedAnswers, hitOf } from './expected.js';
import { queriesFor, type Query } from './queries.js';

const ROWS = 6_000;
const SEED = 1;
/** This query has LIMIT without ORDER BY, so any ten groups are correct. */
const UNORDERED = 'q18';

/** Formats a cell as a string; fractional numbers are rounded to nine digits. */
function shown(cell: Cell): string {
  if (typeof cell === 'number' && !Number.isSafeInteger(cell)) {
    return cell.toPrecision(9);
  }
  return String(cell);
}

/** Returns the rows of an answer; integers beyond 2^53 are read as strings. */
async function rowsOf(server: TestServer, sql: string): Promise<string[][]> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(sql)}`);
  const text = (await response.text()).replaceAll(/(?<=[[,])-?\d{16,}(?=[,\]])/g, '"$&"');
  const { dataset, error } = JSON.parse(text) as { dataset?: Cell[][]; error?: string };
  if (dataset === undefined) {
    throw new Error(`${sql}: ${error ?? text}`);
  }
  return dataset.map((row) => row.map(shown));
}

function page(rows: readonly string[][], { text }: Query): string[][] {
  const [, first, last] = /LIMIT (\d+)(?:, (\d+))?$/.exec(text) ?? [];
  return last === undefined
    ? rows.slice(0, first === undefined ? rows.length : Number(first))
    : rows.slice(Number(first), Number(last));
}

/** Returns the rows that are missing from `others`, counting duplicates. */
function unknownRows(rows: readonly string[][], others: readonly string[][]): string[] {
  const left = new Map<string, number>();
  for (const name of others.map((row) => row.join('\0'))) {
    left.set(name, (left.get(name) ?? 0) + 1);
  }
  return rows
    .map((row) => row.join('\0'))
    .filter((name) => {
      const times = left.get(name) ?? 0;
      left.set(name, times - 1);
      return times === 0;
    });
}

test('the 43 ClickBench queries return the expected rows', async (t) => {
  const server = await startTestServer();
  t.teardown(() => server.stop());
  const columns = COLUMNS.map(([name, type]) => `${name} ${type}`).join(', ');
  await exec(server, `CREATE TABLE hits (${columns}) TIMESTAMP(EventTime) PARTITION BY DAY`);
  const hits = [...hitRows(ROWS, SEED)];
  const csv = csvHeader() + hits.map(csvLine).join('');
  await importCsv(server, 'hits', csv, { timestamp: 'EventTime', forceHeader: 'true' });
  const queries = queriesFor(ROWS);
  const answers = expectedAnswers(hits.map(hitOf), ROWS / 1_000);
  t.is(queries.length, 43);
  t.is(answers.length, 43);
  for (const [index, query] of queries.entries()) {
    const complete = (answers[index] ?? []).map((row) => row.map(shown));
    const expected = page(complete, query);
    const rows = await rowsOf(server, query.text);
    t.true(rows.length > 0, query.id);
    if (query.order.length === 0 && query.id !== UNORDERED) {
      t.deepEqual(rows, expected, query.id);
      continue;
    }
    const keys = (of: string[][]) => of.map((row) => query.order.map((column) => row[column]));
    t.deepEqual(keys(rows), keys(expected), query.id);
    t.deepEqual(unknownRows(rows, complete), [], query.id);
  }
});
