/** What went wrong, as an agent can use it: what, where in the statement, what to do. */
import { asDatabaseError, type DatabaseError } from '../session/index.js';

/** Units of the line with the mistake that are shown on each side of it. */
const EXCERPT_UNITS = 60;

/** A mistake of the agent that is none of a statement. */
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

/** The text of a failure; `statement` is what its position counts in. */
export function failureText(error: unknown, statement = ''): string {
  if (error instanceof ToolError) {
    return error.message;
  }
  const { code, message, start, hint, detail } = asDatabaseError(error);
  const lines = [
    `${code}: ${message}`,
    ...(start === undefined || statement === '' ? [] : placeOf(statement, start)),
    // That of a defect is its number, which the message has.
    ...(detail === undefined || code === 'Internal' ? [] : [`detail: ${detail}`]),
    ...[hint ?? HINTS[code]].flatMap((text) => (text === undefined ? [] : [`hint: ${text}`])),
  ];
  return lines.join('\n');
}

/** Where it is, and a mark under it. */
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
