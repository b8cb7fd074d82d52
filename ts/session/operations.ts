/**
 * Functions that act on the server instead of its data: `SELECT reload_config()`. Told by the
 * words of the statement; inside other queries they are what the engine says they are.
 */

export type OperationName = 'reload_config' | 'reload_tls';

/** What the server does for each; resolves to what the function returns. */
export type Operations = Readonly<Record<OperationName, () => Promise<boolean>>>;

const CALL = /^\s*select\s+(reload_config|reload_tls)\s*\(\s*\)\s*;?\s*$/i;

/** The operation that a statement calls, `null` for every other statement. */
export function operationName(text: string): OperationName | null {
  const name = CALL.exec(text)?.[1]?.toLowerCase();
  return name === 'reload_config' || name === 'reload_tls' ? name : null;
}

/** The query that answers as the function would. */
export function operationAnswer(name: OperationName, result: boolean): string {
  return `SELECT ${result} AS ${name}`;
}
