/**
 * Internal errors received by test clients, from every server of a run: HTTP 500, SQLSTATE XX000, a
 * crashed server. Each one is a defect, whatever the request.
 */

const found: string[] = [];

/** Maximum number quoted. */
const MAX_QUOTED = 5;

export function noteInternalError(statement: string, message: string): void {
  found.push(`${message}\n  ${statement.slice(0, 2000)}`);
}

/** `undefined` without internal errors, otherwise their number and the first ones. */
export function internalErrorReport(): string | undefined {
  return found.length === 0
    ? undefined
    : `${found.length} internal errors\n${found.slice(0, MAX_QUOTED).join('\n')}`;
}
