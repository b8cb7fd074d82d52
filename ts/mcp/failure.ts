/** Error messages for agents: the error, its position in the statement, and what to do. */
import { asDatabaseError, type DatabaseError } from '../session/index.js';

/** Characters of the offending line shown on each side of the error. */
const EXCERPT_UNITS = 60;

/** An error of the agent that does not concern a statement. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
}

type Hints = Partial<Record<DatabaseError['code'], string>>;

const HINTS: Hints = {
  Syntax: 'search_docs explains the syntax of this dialect; a call takes one statement',
  TableNotFound: 'list_tables tells which tables and views there are',
  ColumnNotFound: 'describe_table tells the columns of a table',
  FunctionNotFound: 'search_docs finds functions',
  NotSupported: 'search_docs tells what is supported instead',
  TypeMismatch: 'describe_table tells the types of columns; cast(x AS type) converts',
  Timeout: 'read a shorter interval of time or fewer columns, or ask for more timeout_seconds',
  ResourceLimit: 'read a shorter interval of time, fewer columns or fewer groups',
  OutOfMemory: 'read a shorter interval of time, fewer columns or fewer groups',
  Busy: 'the server has too much to do now: try again in some seconds',
  ReadOnly:
    'statements that write need the tool execute, which is there when the configuration of ' +
    'this client asks for writing and the server allows it',
  AccessDenied: 'the user of this connection lacks this right; an administrator can grant it',
};

/** The error message; positions refer to `statement`. */
export function failureText(error: unknown, statement = ''): string {
  if (error instanceof ToolError) {
    return error.message;
  }
  const { code, message, start, hint, detail } = asDatabaseError(error);
  const lines = [
    `${code}: ${message}`,
    ...(start === undefined || statement === '' ? [] : placeOf(statement, start)),
    // For an internal error, the detail is its id, which is already in the message.
    ...(detail === undefined || code === 'Internal' ? [] : [`detail: ${detail}`]),
    ...[hint ?? HINTS[code]].flatMap((text) => (text === undefined ? [] : [`hint: ${text}`])),
  ];
  return lines.join('\n');
}

/** The position, and a marker under it. */
function placeOf(statement: string, position: number): string[] {
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
