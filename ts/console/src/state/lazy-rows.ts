/**
 * Loads the rows of a large result on demand. Rows are read in windows if the query always returns
 * the same rows in the same order while its tables do not change. After a change, all loaded rows
 * are replaced, so that old and new rows are never mixed.
 */
import { recordsOf } from '../api/cells.js';
import { execute, query } from '../api/client.js';
import type { AnswerHead, Row } from '../api/answer.js';
import { rowsText } from '../model/format.js';
import { Result } from '../model/result.js';
import { Windows } from '../model/windows.js';
import { versionOf } from '../model/schema.js';
import { literal } from '../sql/names.js';
import { announce } from '../page/notices.js';
import { readsOf, variesBy, type FunctionFacts } from '../sql/repeatable.js';
import { messageOf } from '../model/message.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** Known table versions, by table name in lower case. */
export type Versions = ReadonlyMap<string, string>;

/** Number of rows to read in one query if the loaded rows are out of date. */
const REREAD_ROWS = 20_000;

/** Replaces a result with a newer one. Returns true if the old result was still displayed. */
type Replace = (next: Result) => boolean;

/** Makes the remaining rows of a result loadable on demand, or records why they are not. */
export async function loadLazily(result: Result, known: Versions, replace: Replace): Promise<void> {
  try {
    const tables = await tablesOf(result.statement);
    if (typeof tables === 'string') {
      result.lazyRows.set(tables);
      return;
    }
    const now = await versionsOf(tables);
    const isKnown = tables.every((name) => known.has(name) && known.get(name) === now.get(name));
    await count(result);
    const source = { tables, replace, versions: isKnown ? textOf(now) : undefined };
    result.lazyRows.set(windowsOf(result, source));
  } catch (cause) {
    result.lazyRows.set(messageOf(cause));
  }
}

interface LazySource {
  readonly tables: readonly string[];
  readonly replace: Replace;
  /**
   * Versions of the tables when the rows were read; `undefined` if they are not known for certain.
   */
  readonly versions: string | undefined;
}

function windowsOf(result: Result, source: LazySource, notice?: string): Windows {
  const { statement, rows, skipped } = result;
  return new Windows(
    result.total ?? 0,
    result.columns.length,
    {
      isLoaded: (at) => at >= skipped && at < skipped + rows.length,
      read: async (from, count, signal) => {
        if (source.versions !== undefined) {
          const found: Row[] = [];
          await execute(statement, {
            skip: from,
            maxRows: count,
            counted: false,
            signal,
            onRows: (more) => found.push(...more),
          });
          if (textOf(await versionsOf(source.tables)) === source.versions) {
            result.measure(found);
            return found;
          }
        }
        await reread(result, source, from, signal);
        return undefined;
      },
    },
    notice,
  );
}

/** Reads the current rows around a position in a single query, and displays them. */
async function reread(
  before: Result,
  source: LazySource,
  from: number,
  signal: AbortSignal,
): Promise<void> {
  const { statement } = before;
  const versions = textOf(await versionsOf(source.tables));
  let head: AnswerHead | undefined;
  let rows: Row[] = [];
  let total = before.total ?? 0;
  let skip = 0;
  // The result may have become shorter, so that no rows are left at the position.
  for (let tries = 0; tries < 2 && rows.length === 0; tries += 1) {
    skip = Math.max(0, Math.min(from, total) - REREAD_ROWS / 2);
    rows = [];
    const tail = await execute(statement, {
      skip,
      maxRows: REREAD_ROWS,
      signal,
      onHead: (found) => (head = found),
      onRows: (more) => rows.push(...more),
    });
    total = tail.isCut ? total : (tail.count ?? total);
  }
  if (!head) {
    return;
  }
  const next = new Result(head, statement, skip, true);
  next.append(rows);
  next.total = total;
  const isCertain = textOf(await versionsOf(source.tables)) === versions;
  const at = new Date().toLocaleTimeString([], { hour12: false });
  const names = source.tables.join(', ');
  const notice = fill(texts.rowOrder.mayHaveChanged, { tables: names, at });
  const now = { ...source, versions: isCertain ? versions : undefined };
  next.lazyRows.set(windowsOf(next, now, notice));
  if (source.replace(next)) {
    announce(`${notice} ${rowsText(total)}.`);
  }
}

/** Returns the tables that a statement reads, or why its rows cannot be loaded on demand. */
async function tablesOf(statement: string): Promise<readonly string[] | string> {
  const reads = readsOf(statement);
  if (typeof reads === 'string') {
    return reads;
  }
  const functions = await factsOf([...reads.functions, ...reads.overRows]);
  return variesBy(reads, functions) ?? reads.tables;
}

async function factsOf(names: readonly string[]): Promise<readonly FunctionFacts[]> {
  if (names.length === 0) {
    return [];
  }
  const list = names.map(literal).join(', ');
  const { rows } = await query(
    `SELECT DISTINCT name, type, varies FROM functions() WHERE name IN (${list})`,
  );
  return rows.map(([name, type, varies]) => ({
    name: String(name),
    type: String(type),
    varies: varies === true,
  }));
}

/** Returns the version of each table. Throws if the server reports no version for a table. */
async function versionsOf(tables: readonly string[]): Promise<Versions> {
  if (tables.length === 0) {
    return new Map();
  }
  const answer = await query(
    `SELECT lower(table_name) table_name, id table_id, table_txn FROM tables() ` +
      `WHERE lower(table_name) IN (${tables.map(literal).join(', ')})`,
  );
  const found = new Map<string, string>();
  for (const cell of recordsOf(answer)) {
    const text = versionOf(cell);
    if (text !== undefined) {
      found.set(String(cell('table_name')), text);
    }
  }
  const missing = tables.find((name) => !found.has(name));
  if (missing !== undefined) {
    throw new Error(fill(texts.rowOrder.changesUnknown, { tables: missing }));
  }
  return found;
}

function textOf(versions: Versions): string {
  return [...versions]
    .map(([name, version]) => `${name} ${version}`)
    .sort()
    .join('\n');
}

/** Counts the rows of a result that was too large to be read completely. */
async function count(result: Result): Promise<void> {
  if (result.isCut) {
    const { count: total } = await execute(result.statement, {
      skip: result.skipped + result.rows.length,
      maxRows: 1,
    });
    result.total = total ?? result.rows.length;
  }
}
