/** Imports Parquet files. The file is uploaded, and SQL statements copy its rows to a table. */
import { query } from '../api/client.js';
import type { ImportReport, Proposal } from '../api/upload.js';
import { copyText } from '../model/format.js';
import { literal, quoted } from '../sql/names.js';
import { isAppended, targetType, type Choices, type Existing } from './model.js';

const SHOWN_VALUES = 3;

/** Creates the proposal for a Parquet file, from its declared types and its exact row count. */
export async function proposeParquet(
  path: string,
  fileName: string,
  signal: AbortSignal,
): Promise<Proposal> {
  const [{ head, rows }, count] = await Promise.all([
    query(`SELECT * FROM ${source(path)} LIMIT ${SHOWN_VALUES}`, { signal }),
    query(`SELECT count() FROM ${source(path)}`, { signal }),
  ]);
  return {
    table: fileName.replace(/\.[^.]*$/, '').replace(/[^\p{L}\p{N}_.-]+/gu, '_'),
    delimiter: '',
    header: true,
    headerBytes: 0,
    isTyped: true,
    rows: Number(count.rows[0]?.[0] ?? 0),
    columns: head.columns.map(({ name, type }, index) => ({
      name,
      type,
      couldBeTimestamp: false,
      values: rows.map((row) => copyText(row[index] ?? null)).filter((text) => text !== ''),
    })),
  };
}

/**
 * Runs the statements that import the file. If the request is aborted, the server cancels the
 * statement, and `ended` waits for that. Once a new table is complete, it replaces the old table
 * even if the user aborts.
 */
export async function importParquet(
  path: string,
  proposal: Proposal,
  choices: Choices,
  existing: Existing | undefined,
  signal: AbortSignal,
  ended: () => Promise<unknown>,
): Promise<ImportReport> {
  const { table } = choices;
  for (const statement of parquetStatements(path, proposal, choices, existing)) {
    if (!statement.includes(source(path))) {
      await query(statement);
      continue;
    }
    try {
      await query(statement, { signal });
    } catch (cause) {
      await ended();
      await query(`DROP TABLE IF EXISTS ${aside(table)}`).catch(() => undefined);
      throw cause;
    }
  }
  return { location: table, rowsImported: proposal.rows, rowsRejected: 0, columns: [] };
}

/**
 * Returns the statements that import the file. A table to be replaced is kept until the new table
 * is complete. Then the old table is dropped and the new table is renamed.
 */
export function parquetStatements(
  path: string,
  proposal: Proposal,
  choices: Choices,
  existing: Existing | undefined,
): string[] {
  const table = quoted(choices.table);
  if (isAppended(choices, existing)) {
    const mapped = choices.columns.filter((column) => targetType(column, choices, existing));
    const names = mapped.map(({ name }) => quoted(name)).join(', ');
    const values = mapped.map((column) => quoted(column.source)).join(', ');
    return [`INSERT INTO ${table} (${names}) SELECT ${values} FROM ${source(path)}`];
  }
  const values = choices.columns.map(({ source: from, name, type }, index) => {
    const cast = type === proposal.columns[index]?.type ? '' : `::${type}`;
    return `${quoted(from)}${cast} AS ${quoted(name)}`;
  });
  const rows = `SELECT ${values.join(', ')} FROM ${source(path)}`;
  const order =
    choices.timestamp === ''
      ? ''
      : ` TIMESTAMP(${quoted(choices.timestamp)}) PARTITION BY ${choices.partitionBy}`;
  const owner = choices.owner.trim() === '' ? '' : ` OWNED BY ${quoted(choices.owner.trim())}`;
  if (existing === undefined) {
    return [`CREATE TABLE ${table} AS (${rows})${order}${owner}`];
  }
  const staging = aside(choices.table);
  return [
    `DROP TABLE IF EXISTS ${staging}`,
    `CREATE TABLE ${staging} AS (${rows})${order}${owner}`,
    `DROP TABLE ${table}`,
    `RENAME TABLE ${staging} TO ${table}`,
  ];
}

/** Returns the temporary name of the new table, which it has until the old table is dropped. */
function aside(table: string): string {
  return quoted(`${table}_importing`);
}

function source(path: string): string {
  return `read_parquet(${literal(path)})`;
}
