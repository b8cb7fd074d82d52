/**
 * Internal errors that the tests' clients received, from every server of a run: HTTP 500,
 * SQLSTATE XX000, a server that ended. Each one is a defect, whatever was asked.
 */

const found: string[] = [];

/** Most that are quoted. */
const MAX_QUOTED = 5;

export function noteInternalError(statement: string, message: string): void {
  found.push(`${message}\n  ${statement.slice(0, 2000)}`);
}

/** `undefined` where there were none, else their number and the first of them. */
export function internalErrorReport(): string | undefined {
  return found.length === 0
    ? undefined
    : `${found.length} internal errors\n${found.slice(0, MAX_QUOTED).join('\n')}`;
}
