/** Values of settings, as clients write them. */
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

/** From the most talkative on; a client that asks for one of the first sees notices. */
const SHOWING: ReadonlySet<string> = new Set(
  'debug5 debug4 debug3 debug2 debug1 debug log info notice'.split(' '),
);
const SILENT: ReadonlySet<string> = new Set(['warning', 'error', 'fatal', 'panic']);

/** Whether a `client_min_messages` lets notices through. */
export function showsNotices(value: string): boolean {
  const level = value.trim().toLowerCase();
  if (!SHOWING.has(level) && !SILENT.has(level)) {
    const message = `invalid value for parameter "client_min_messages": "${value}"`;
    throw new ProtocolError('22023', message);
  }
  return SHOWING.has(level);
}
