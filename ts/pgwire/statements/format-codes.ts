/** Format codes in Bind: 0 is text, 1 is binary. */
import { ProtocolError } from '../protocol/protocol-error.js';

const NONE: readonly number[] = [];

/**
 * Expands format codes. Without codes, all values are text; a single code applies to all values;
 * otherwise each value has its own code.
 */
export function formatCodes(
  codes: readonly number[],
  count: number,
  what: string,
): readonly number[] {
  if (count === 0 && codes.length === 0) {
    return NONE;
  }
  if (codes.some((code) => code !== 0 && code !== 1)) {
    throw new ProtocolError('22023', 'unsupported format code');
  }
  if (codes.length === 0) {
    return new Array<number>(count).fill(0);
  }
  if (codes.length === 1) {
    return new Array<number>(count).fill(codes[0] ?? 0);
  }
  if (codes.length === count) {
    return [...codes];
  }
  const message = `bind message has ${codes.length} ${what} formats but ${count} ${what}s`;
  throw new ProtocolError('08P01', message);
}
