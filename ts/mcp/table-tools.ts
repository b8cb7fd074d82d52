/**
 * Tools that describe tables and views. The catalog hides tables and views that the user may not
 * see.
 */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';

import { DatabaseError } from '../session/index.js';
import { answerOf, DATA_IS_DATA } from './query-tools.js';
import { run, type Rows } from './rows.js';
import type { Setting } from './setting.js';
import { addTool, type Answer } from './tool.js';

const DEFAULT_TABLES = 100;
const DEFAULT_SAMPLE = 10;
const MAX_SAMPLE = 1_000;
const MAX_COLUMNS = 5_000;
const CATALOG_BYTES = 16 * 1024 * 1024;

const KINDS: Readonly<Record<string, string>> = {
  T: 'table',
  V: 'view',
  M: 'materialized view',
  L: 'live view',
};

const TABLE = z.string().min(1).max(1_000).describe('Name of a table or view, without quotes.');

/** The SHOW CREATE keyword for each kind. */
const DDL_WORDS: Readonly<Record<string, string>> = {
  table: 'TABLE',
  view: 'VIEW',
  'materialized view': 'MATERIALIZED VIEW',
  'live view': 'LIVE VIEW',
};

/** Lists tables and views by name. Sizes are null if the user may not read the rows. */
const LISTED =
  'SELECT * FROM (SELECT table_name, table_type, designatedTimestamp, partitionBy, dedup, ' +
  'table_row_count, table_min_timestamp, table_max_timestamp FROM tables() ' +
  "UNION ALL SELECT view_name, 'V', null, null, null, null, null, null FROM views())";

const TABLE_OUTPUT = {
  name: z.string(),
  kind: z.string().describe('table, view, materialized view or live view'),
  designated_timestamp: z.string().nullable().describe('Column that orders the rows.'),
  partition_by: z.string().nullable(),
  deduplicated: z.boolean().nullable(),
  rows: z.number().nullable().describe('null if unknown, or if the user may not see it'),
  first_timestamp: z.string().nullable(),
  last_timestamp: z.string().nullable(),
};

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function addTableTools(server: McpServer, setting: Setting): void {
  addList(server, setting);
  addDescribe(server, setting);
  addSample(server, setting);
}

function addList(server: McpServer, setting: Setting): void {
  const { limits } = setting;
  const tool = {
    title: 'List tables',
    description:
      'Lists the tables and views that the user of this connection can see, by name, with their ' +
      'designated timestamp, partitioning, number of rows, and first and last timestamp.',
    input: {
      name_contains: z
        .string()
        .max(1_000)
        .optional()
        .describe('Only names that contain this string, case-insensitive.'),
      limit: z
        .number()
        .int()
        .min(0)
        .max(limits.rows)
        .default(Math.min(DEFAULT_TABLES, limits.rows))
        .describe('Maximum number of tables to return.'),
      offset: z.number().int().min(0).default(0).describe('Tables to skip at the beginning.'),
    },
    output: {
      tables: z.array(z.object(TABLE_OUTPUT)),
      total: z.number().int().optional().describe('Total number of tables and views.'),
      next_offset: z.number().int().optional().describe('Offset of the next tables.'),
    },
  };
  addTool(server, 'list_tables', tool, async (input, signal) => {
    const question = {
      sql:
        `${LISTED} WHERE $1 = '' OR strpos(lower(table_name), lower($1)) > 0 ` +
        'ORDER BY table_name',
      parameters: [input.name_contains ?? ''],
      skip: input.offset,
      take: input.limit,
      counts: true,
    };
    const waiting = { limits, timeoutMs: limits.timeoutMs, signal };
    const result = await run(setting.open('read'), question, waiting);
    const next = input.offset + result.rows.length;
    return {
      tables: result.rows.map(tableOf),
      ...(result.total === null ? {} : { total: result.total }),
      ...(result.hasMore && result.rows.length > 0 ? { next_offset: next } : {}),
    };
  });
}

function tableOf(row: readonly unknown[]): Answer {
  const [name, kind, timestamp, partitions, dedup, rows, first, last] = row;
  return {
    name,
    kind: KINDS[String(kind)] ?? 'table',
    designated_timestamp: timestamp ?? null,
    partition_by: partitions ?? null,
    deduplicated: dedup ?? null,
    rows: typeof rows === 'number' ? rows : null,
    first_timestamp: first ?? null,
    last_timestamp: last ?? null,
  };
}

function addDescribe(server: McpServer, setting: Setting): void {
  const tool = {
    title: 'Describe a table',
    description:
      'Returns the columns of a table or view with their types, its designated timestamp, its ' +
      'number of rows and, if the user can see all of it, the statement that creates it.',
    input: {
      table: TABLE,
      offset: z.number().int().min(0).default(0).describe('Columns to skip at the beginning.'),
    },
    output: {
      ...TABLE_OUTPUT,
      columns: z.array(
        z.object({
          name: z.string(),
          type: z.string(),
          designated: z.boolean().describe('Whether the column is the designated timestamp.'),
          indexed: z.boolean(),
          key: z.boolean().describe('Whether the column is part of the deduplication key.'),
        }),
      ),
      next_offset: z.number().int().optional().describe('Offset of the next columns.'),
      ddl: z.string().optional().describe('The CREATE statement, unless it is too long.'),
    },
  };
  addTool(server, 'describe_table', tool, (input, signal) =>
    describeTable(setting, input.table, signal, input.offset),
  );
}

export async function describeTable(
  setting: Setting,
  table: string,
  signal: AbortSignal,
  offset = 0,
): Promise<Answer> {
  const name = quoted(table);
  const runQuery = queryRunner(setting, signal);
  const shown = await runQuery(`SHOW COLUMNS FROM ${name}`);
  const listed = await runQuery(`${LISTED} WHERE lower(table_name) = lower($1)`, [table]);
  const at = new Map(shown.columns.map((column, index) => [column.name, index]));
  const cell = (row: readonly unknown[], column: string): unknown => row[at.get(column) ?? -1];
  const columns = shown.rows.slice(offset).map((row) => ({
    name: cell(row, 'column'),
    type: cell(row, 'type'),
    designated: cell(row, 'designated') === true,
    indexed: cell(row, 'indexed') === true,
    key: cell(row, 'upsertKey') === true,
  }));
  const described = tableOf(listed.rows[0] ?? [table]);
  const ddl = await ddlOf(setting, described['kind'], name, signal);
  const { included, isCut } = withinBytes(columns, setting.limits.bytes / 2);
  return {
    ...described,
    columns: included,
    ...(isCut ? { next_offset: offset + included.length } : {}),
    ...(ddl === null || ddl.length > setting.limits.bytes / 2 ? {} : { ddl }),
  };
}

/** Returns the first items that fit within the limit, but at least one. */
function withinBytes<T>(items: readonly T[], bytes: number): { included: T[]; isCut: boolean } {
  const included: T[] = [];
  let freeBytes = bytes;
  for (const item of items) {
    freeBytes -= Buffer.byteLength(JSON.stringify(item)) + 1;
    if (freeBytes < 0 && included.length > 0) {
      return { included, isCut: true };
    }
    included.push(item);
  }
  return { included, isCut: false };
}

/** Returns names that begin with `start`, ignoring case. */
export async function namesOf(
  setting: Setting,
  start: string,
  limit: number,
  signal: AbortSignal,
): Promise<string[]> {
  const { limits } = setting;
  const question = {
    sql: `${LISTED} WHERE starts_with(lower(table_name), lower($1)) ORDER BY table_name`,
    parameters: [start],
    take: limit,
  };
  const waiting = { limits, timeoutMs: limits.timeoutMs, signal };
  const { rows } = await run(setting.open('read'), question, waiting);
  return rows.map(([name]) => String(name));
}

type RunQuery = (sql: string, parameters?: readonly string[]) => Promise<Rows>;

/**
 * Returns a function that runs internal catalog queries with a limit high enough for the complete
 * description of a table.
 */
function queryRunner(setting: Setting, signal: AbortSignal): RunQuery {
  const limits = { ...setting.limits, bytes: CATALOG_BYTES };
  const waiting = { limits, timeoutMs: limits.timeoutMs, signal };
  return (sql, parameters) =>
    run(setting.open('read'), { sql, parameters, take: MAX_COLUMNS }, waiting);
}

/** Returns the statement that creates a table; requires the right to read the whole table. */
async function ddlOf(
  setting: Setting,
  kind: unknown,
  name: string,
  signal: AbortSignal,
): Promise<string | null> {
  const words = DDL_WORDS[String(kind)] ?? 'TABLE';
  try {
    const { rows } = await queryRunner(setting, signal)(`SHOW CREATE ${words} ${name}`);
    return typeof rows[0]?.[0] === 'string' ? rows[0][0] : null;
  } catch (error) {
    if (error instanceof DatabaseError && error.code === 'AccessDenied') {
      return null;
    }
    throw error;
  }
}

function addSample(server: McpServer, setting: Setting): void {
  const { limits } = setting;
  const limit = Math.min(MAX_SAMPLE, limits.rows);
  const tool = {
    title: 'Sample a table',
    description:
      'Returns some rows of a table or view, by default the latest, with the columns that the ' +
      `user of this connection can read. ${DATA_IS_DATA}`,
    input: {
      table: TABLE,
      rows: z
        .number()
        .int()
        .min(0)
        .max(limit)
        .default(Math.min(DEFAULT_SAMPLE, limit))
        .describe(`Number of rows, at most ${limit}.`),
      from: z
        .enum(['end', 'start'])
        .default('end')
        .describe('end: the latest rows; start: the first rows.'),
    },
    output: {
      columns: z.array(z.object({ name: z.string(), type: z.string() })),
      rows: z.array(z.array(z.unknown())),
      notes: z.array(z.string()).optional(),
    },
  };
  addTool(server, 'sample_table', tool, async (input, signal) => {
    const name = quoted(input.table);
    const shown = await queryRunner(setting, signal)(`SHOW COLUMNS FROM ${name}`);
    const columns = shown.rows.map(([column]) => quoted(String(column))).join(', ');
    const range = input.from === 'end' ? -input.rows : input.rows;
    const question = {
      sql: `SELECT ${columns === '' ? '*' : columns} FROM ${name} LIMIT ${range}`,
      take: input.rows,
    };
    const waiting = { limits, timeoutMs: limits.timeoutMs, signal };
    const result = await run(setting.open('read'), question, waiting);
    const { columns: given, rows, notes } = answerOf(result, 0, limits);
    return { columns: given, rows, ...(notes === undefined ? {} : { notes }) };
  });
}
