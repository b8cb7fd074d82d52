/**
 * `docs/errors.md`: the meaning of each error code for a client, and how the client should react.
 */
import type { ErrorCode } from '../../ts/engine/types.js';
import { errorMeaning } from '../../ts/session/status.js';

interface Explained {
  readonly meaning: string;
  readonly remedy: string;
  /** A statement that fails with this code, and the error message. */
  readonly example?: { readonly sql: string; readonly message: string };
}

/** The map must cover all codes: a new code without an explanation does not compile. */
export const EXPLAINED: Readonly<Record<ErrorCode, Explained>> = {
  Syntax: {
    meaning: 'The statement is not valid SQL in this dialect.',
    remedy: 'Correct the statement at the reported position.',
    example: {
      sql: 'SELECT 1 FORM t',
      message:
        "found [tok='t', len=1] ',', 'from' or 'over' expected: did you mean 'from' for 'FORM'?",
    },
  },
  StatementTooComplex: {
    meaning: 'The statement is nested too deeply, is too long or has too many terms.',
    remedy: 'Split the statement, or put long lists of values into a table and join it.',
  },
  TableNotFound: {
    meaning: 'No table or view has this name, or the user may not see it.',
    remedy: 'Check the name with `SHOW TABLES` and the permissions with `SHOW PERMISSIONS`.',
    example: { sql: 'SELECT * FROM nowhere', message: 'table does not exist [table=nowhere]' },
  },
  TableExists: {
    meaning: 'A table or view with this name exists.',
    remedy: 'Choose a different name, or use `IF NOT EXISTS`.',
    example: { sql: 'CREATE TABLE t (v INT)', message: 'table already exists' },
  },
  ColumnNotFound: {
    meaning: 'No column in scope has this name.',
    remedy: 'Check the name with `SHOW COLUMNS FROM`.',
    example: { sql: 'SELECT w FROM t', message: 'Invalid column: w' },
  },
  DuplicateColumn: {
    meaning: 'Two columns of a table have the same name.',
    remedy: 'Rename one of them with `AS`.',
    example: { sql: 'CREATE TABLE d (v INT, v INT)', message: 'Duplicate column [name=v]' },
  },
  AmbiguousColumn: {
    meaning: 'Several tables in scope have a column with this name.',
    remedy: 'Qualify the column with the name or alias of its table.',
    example: {
      sql: 'SELECT v FROM t CROSS JOIN t u',
      message: 'Ambiguous column [name=v]',
    },
  },
  FunctionNotFound: {
    meaning: 'No function has this name, or none accepts these argument types.',
    remedy: 'Compare the call with the list of functions.',
    example: { sql: "SELECT nothing('x')", message: 'unknown function name: nothing(CHAR)' },
  },
  TypeMismatch: {
    meaning: 'An operator or clause does not accept a value of this type.',
    remedy: 'Cast the value, for example with `::DOUBLE`.',
    example: { sql: 'SELECT v FROM t WHERE v', message: 'boolean expression expected' },
  },
  InvalidValue: {
    meaning: 'A value cannot be converted to the required type, or is out of range.',
    remedy: 'Correct the value. The message names it.',
    example: { sql: "SELECT * FROM t WHERE ts IN 'soon'", message: 'Invalid date: soon' },
  },
  InvalidCell: {
    meaning: 'A value of an inserted row cannot be converted to the type of its column.',
    remedy: 'Correct the row, or change the type of the column.',
    example: {
      sql: "INSERT INTO t VALUES ('x', '2026-01-01')",
      message: 'inconvertible value: x [CHAR -> INT]',
    },
  },
  NullValue: {
    meaning: 'A row has no value for a column that is NOT NULL.',
    remedy: 'Add a value, or give the column a DEFAULT.',
    example: {
      sql: 'INSERT INTO n VALUES (null)',
      message: "column 'a' is NOT NULL: expected a value",
    },
  },
  InvalidEncoding: {
    meaning: 'The bytes are not valid UTF-8, or a string contains a zero byte.',
    remedy: 'Send UTF-8. CSV imports accept other encodings with the parameter `encoding`.',
  },
  InvalidBinary: {
    meaning: 'A binary parameter is not in the format of its declared type.',
    remedy: 'Send the parameter as text, or correct its binary encoding.',
  },
  InvalidCopyData: {
    meaning: 'COPY data is not in the declared format.',
    remedy: 'Check the format, delimiter and header options of the COPY statement.',
  },
  InvalidName: {
    meaning: 'The name contains characters that are not allowed, or is too long.',
    remedy: 'Choose a name without path separators or control characters.',
    example: { sql: "CREATE TABLE 'a/b' (v INT)", message: "'/' is not allowed" },
  },
  InvalidState: {
    meaning: 'The session or the object is not in the state that the statement requires.',
    remedy: 'The message names the missing step.',
  },
  NotSupported: {
    meaning: 'The dialect knows this syntax, but Tidemark does not execute it.',
    remedy: 'See the SQL coverage for alternatives.',
  },
  Replan: {
    meaning: 'Tables changed repeatedly while the statement was being prepared.',
    remedy: 'Retry the statement.',
  },
  Cancelled: {
    meaning: 'The client, an administrator or `CANCEL QUERY` stopped the statement.',
    remedy: 'Run the statement again if its result is still needed.',
  },
  Timeout: {
    meaning: 'The statement ran longer than its timeout.',
    remedy: 'Narrow the time range, or raise `query.timeout` or the timeout of the request.',
  },
  ResourceLimit: {
    meaning: 'A size or count limit was reached. The message names the limit.',
    remedy: 'Reduce the input, or raise the limit if the message names a configuration key.',
  },
  Busy: {
    meaning: 'Too many queries are running or waiting.',
    remedy:
      'Retry later. `query.concurrency` and `query.queue.limit` set how many can run and wait.',
  },
  OutOfMemory: {
    meaning: 'The statement needs more memory than its limit allows or than is available.',
    remedy:
      'Read fewer rows or columns, or raise `query.memory.limit`, `query.memory.pool` or ' +
      '`memory.limit`.',
  },
  DiskFull: {
    meaning: 'The disk is full, or its free space is below `disk.watermark`.',
    remedy: 'To free space, drop partitions or tables, or enlarge the disk. Writes then resume.',
  },
  Io: {
    meaning: 'The operating system failed to read or write a file.',
    remedy: 'Check the disk and the permissions of the root directory; the log has the details.',
  },
  Damaged: {
    meaning: 'Stored bytes do not match their checksum.',
    remedy: 'Run `tidemark check` and restore the named partition from a backup.',
  },
  RootLocked: {
    meaning: 'Another process is using the root directory.',
    remedy: 'Stop that process, or choose a different root.',
  },
  Closed: {
    meaning: 'The server is shutting down.',
    remedy: 'Reconnect after the restart.',
  },
  ReadOnly: {
    meaning: 'The server, the session or the user does not accept writes.',
    remedy: 'Connect as a user with write permission. After a failed fsync, restart the server.',
  },
  HistoryGone: {
    meaning: 'A change feed asked for changes that are no longer retained.',
    remedy: 'Restart the feed from the current state, or raise `changes.retention`.',
  },
  AccessDenied: {
    meaning: 'The user lacks a permission. The message names it.',
    remedy: 'Ask an administrator to `GRANT` the permission.',
  },
  Internal: {
    meaning: 'A defect in Tidemark. The message contains an id, and the log has the details.',
    remedy: 'Report the statement and the log lines with this id.',
  },
};

const HEAD = `# Errors

For client authors and operators: the meaning of each error and what to do about it.

Generated by \`npm run generate\` from \`test/documentation/errors.ts\`; do not edit.

Over HTTP, an error is a JSON object with the members \`query\`, \`error\` and \`position\`, the
offset in the statement. Over the PostgreSQL wire protocol, it is an ErrorResponse with a SQLSTATE.
Several codes share a SQLSTATE. The suite runs every example and compares its message.

`;

export function errorsDocument(): string {
  const sections = Object.entries(EXPLAINED).map(([code, { meaning, remedy, example }]) => {
    const { httpStatus, sqlState } = errorMeaning(code as ErrorCode);
    const shown =
      example === undefined ? '' : `\n\n\`\`\`text\n${example.sql}\n→ ${example.message}\n\`\`\``;
    const title = `## ${code}\n\nHTTP ${httpStatus}, SQLSTATE ${sqlState}.`;
    return `${title} ${meaning}\n\n${remedy}${shown}\n`;
  });
  return HEAD + sections.join('\n');
}
