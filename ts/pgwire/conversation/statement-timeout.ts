/** `statement_timeout`, as clients write it. */
import { ProtocolError } from '../protocol/protocol-error.js';

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000 };

/** Milliseconds of a `statement_timeout`, with or without a unit. */
export function timeoutOf(value: string): number {
  const match = /^(\d{1,9})\s*(ms|s|min|h)?$/.exec(value.trim());
  if (match === null) {
    const message = `invalid value for parameter "statement_timeout": "${value}"`;
    throw new ProtocolError('22023', message);
  }
  return Number(match[1]) * (UNIT_MS[match[2] ?? 'ms'] ?? 1);
}
