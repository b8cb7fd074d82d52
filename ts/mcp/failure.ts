/**
 * Error messages for agents: the error, its position in the statement, and a hint for correcting
 * it.
 */
import { asDatabaseError, type DatabaseError } from '../session/index.js';

/** Maximum number of UTF-16 code units to show on each side of the error position. */
const EXCERPT_UNITS = 60;

/** An agent's error that does not concern a statement. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
}

type Hints = Partial<Record<DatabaseError['code'], string>>;

const HINTS: Hints = {
  Syntax: 'find the syntax of this dialect with search_docs; send one statement per call',
  TableNotFound: 'list the tables and views with list_tables',
  ColumnNotFound: 'list the columns of the table with describe_table',
  FunctionNotFound: 'find functions with search_docs',
  NotSupported: 'find supported alternatives with search_docs',
  TypeMismatch: 'check the column types with describe_table; convert a value with cast(x AS type)',
  Timeout: 'read a shorter time range or fewer columns, or increase timeout_seconds',
  ResourceLimit: 'read a shorter time range, fewer columns or fewer groups',
  OutOfMemory: 'read a shorter time range, fewer columns or fewer groups',
  Busy: 'the server is overloaded: try again in a few seconds',
  ReadOnly:
    'statements that write require the execute tool, which is available if the configuration of ' +
    'this client requests write access and the server allows it',
  AccessDenied: 'the user of this connection lacks this permission; an administrator can grant it',
};

/** Returns the error message; positions refer to `statement`. */
export function failureText(error: unknown, statement = ''): string {
  if (error instanceof ToolError) {
    return error.message;
  }
  const { code, message, start, hint, detail } = asDatabaseError(error);
  const lines = [
    `${code}: ${message}`,
    ...(start === undefined || statement === '' ? [] : excerptOf(statement, start)),
    // The only detail of an internal error is its ID, which the message already contains.
    ...(detail === undefined || code === 'Internal' ? [] : [`detail: ${detail}`]),
    ...[hint ?? HINTS[code]].flatMap((text) => (text === undefined ? [] : [`hint: ${text}`])),
  ];
  return lines.join('\n');
}

/** Returns the line at the position, with a marker under it. */
function excerptOf(statement: string, position: number): string[] {
  const at = Math.min(Math.max(position, 0), statement.length);
  const before = statement.slice(0, at);
  const lineStart = before.lastIndexOf('\n') + 1;
  const line = before.split('\n').length;
  const column = at - lineStart + 1;
  const lineEnd = statement.indexOf('\n', at);
  const from = Math.max(lineStart, at - EXCERPT_UNITS);
  const to = Math.min(lineEnd < 0 ? statement.length : lineEnd, at + EXCERPT_UNITS);
  const excerpt = statement.slice(from, to).replaceAll(/[\t\r]/g, ' ');
  return [
    `position: ${at} (line ${line}, column ${column})`,
    `  ${excerpt}`,
    `  ${' '.repeat(at - from)}^`,
  ];
}
