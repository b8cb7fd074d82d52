/**
 * Internal errors that test clients received from any server of a run: HTTP 500, SQLSTATE XX000, a
 * crashed server. Each is a defect, whatever the request was.
 */

const found: string[] = [];

/** Maximum number of errors to quote. */
const MAX_QUOTED = 5;

export function noteInternalError(statement: string, message: string): void {
  found.push(`${message}\n  ${statement.slice(0, 2000)}`);
}

/**
 * Returns `undefined` if there were no internal errors, otherwise their number and the first few.
 */
export function internalErrorReport(): string | undefined {
  return found.length === 0
    ? undefined
    : `${found.length} internal errors\n${found.slice(0, MAX_QUOTED).join('\n')}`;
}
