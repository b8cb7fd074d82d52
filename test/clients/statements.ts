/** Statements that tools send, recorded in `recorded`, and a server's responses to them. */
import { readdirSync, readFileSync } from 'node:fs';

import type pg from 'pg';

import { SOURCES } from './tools.js';

const FOLDER = new URL('recorded/', SOURCES);
export const ANSWERS_FILE = new URL('answers.json', FOLDER);
/** Creates the table and view that the other statements query. */
export const SCHEMA = 'schema';

interface RecordedStatement {
  readonly name: string;
  /** Whether the rows are the same on every server. */
  readonly hasRows: boolean;
  readonly text: string;
}

/** A response: column names and type families, and also the rows if they must match. */
export interface Answer {
  readonly columns: readonly string[];
  readonly rows?: readonly string[];
}

/** Names of the tools with recorded statements. */
export function recordedTools(): string[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.sql'));
  return files.map((name) => name.slice(0, -4)).filter((name) => name !== SCHEMA);
}

/**
 * Parses `-- check: name`, optionally followed by `(rows)`, and the statement up to the next
 * marker.
 */
export function recordedStatements(tool: string): RecordedStatement[] {
  const text = readFileSync(new URL(`${tool}.sql`, FOLDER), 'utf8');
  return text
    .split(/^-- check: /m)
    .slice(1)
    .map((part) => {
      const end = part.indexOf('\n');
      const title = part.slice(0, end);
      const hasRows = title.endsWith(' (rows)');
      return { name: title.replace(/ \(rows\)$/, ''), hasRows, text: part.slice(end + 1).trim() };
    });
}

/** Type families that are equivalent for clients: object ids are integers, names are strings. */
const FAMILIES: readonly (readonly [string, readonly number[]])[] = [
  ['boolean', [16]],
  // In PostgreSQL the sum of `int8` values is `numeric`.
  ['number', [20, 21, 23, 26, 28, 700, 701, 1700]],
  ['time', [1082, 1114, 1184]],
];

function familyOf(oid: number): string {
  const found = FAMILIES.find(([, oids]) => oids.includes(oid));
  // In Tidemark, catalog arrays and object names are strings.
  return found === undefined ? 'text' : found[0];
}

/** Returns a server's response, or its error. */
export async function answerTo(
  client: pg.Client,
  { hasRows, text }: RecordedStatement,
): Promise<Answer | string> {
  try {
    const { fields, rows } = await client.query<unknown[]>({ text, rowMode: 'array' });
    const columns = fields.map(({ name, dataTypeID }) => `${name} ${familyOf(dataTypeID)}`);
    return hasRows ? { columns, rows: rows.map((row) => row.map(shown).join('|')) } : { columns };
  } catch (error) {
    const { code, message } = error as pg.DatabaseError;
    return `${code} ${message}`;
  }
}

/**
 * Whether a response matches PostgreSQL's. Names are compared case-insensitively, as clients do. An
 * expression without an alias has a different default name in Tidemark.
 */
export function isSame(answer: Answer | string, expected: Answer): boolean {
  if (typeof answer === 'string' || answer.columns.length !== expected.columns.length) {
    return false;
  }
  const ours = namesOf(answer.columns);
  const theirs = namesOf(expected.columns);
  const isAlike = ours.every((column, index) => {
    const other = theirs[index] ?? '';
    const isOwn = /[(:]/.test(column) || column.startsWith('column ');
    return isOwn ? typeOf(column) === typeOf(other) : theirs.includes(column);
  });
  return isAlike && JSON.stringify(answer.rows) === JSON.stringify(expected.rows);
}

/** Tidemark appends a number to a repeated name. */
function namesOf(columns: readonly string[]): string[] {
  return columns.map((column) => column.toLowerCase().replace(/(?<=^[a-z]+)1(?= )/, ''));
}

function typeOf(column: string): string {
  return column.slice(column.lastIndexOf(' ') + 1);
}

function shown(cell: unknown): string {
  if (cell instanceof Date) {
    return cell.toISOString();
  }
  const text = String(cell);
  // Ignores trailing digits of NUMERIC values.
  return /^-?\d+\.\d+$/.test(text) ? String(Number(text)) : text;
}

/** psql commands that query the catalog, whose headings are compared. */
export const PSQL_COMMANDS: readonly string[] = [
  ...['\\l', '\\l+', '\\d', '\\d+', '\\dt', '\\dt+', '\\dv', '\\dv+', '\\di', '\\di+', '\\dm'],
  ...['\\ds', '\\dE', '\\dS', '\\dtS', '\\dvS', '\\d rec_readings', '\\d+ rec_readings'],
  ...['\\d rec_hourly', '\\d+ rec_hourly', '\\da', '\\daS', '\\dA', '\\dA+', '\\dAc', '\\dAf'],
  ...['\\dAo', '\\dAp', '\\db', '\\db+', '\\dc', '\\dcS', '\\dC', '\\dC+', '\\dd', '\\ddS'],
  ...['\\dD', '\\dDS', '\\ddp', '\\des', '\\des+', '\\det', '\\deu', '\\dew', '\\df', '\\dfS'],
  ...['\\df+', '\\dfa', '\\dfn', '\\dft', '\\dfw', '\\dF', '\\dF+', '\\dFd', '\\dFp', '\\dFt'],
  ...['\\dg', '\\dg+', '\\dl', '\\lo_list', '\\dL', '\\dLS', '\\dn', '\\dn+', '\\dnS', '\\do'],
  ...['\\doS', '\\dO', '\\dOS', '\\dp', '\\z', '\\dP', '\\drds', '\\dRp', '\\dRp+', '\\dRs'],
  ...['\\dT', '\\dTS', '\\dT+', '\\du', '\\du+', '\\dx', '\\dx+', '\\dX', '\\dy', '\\dy+'],
  ...['\\sv rec_hourly', '\\conninfo', '\\encoding'],
];
