/**
 * Limits the expansion of compressed data, both for whole bodies and for compressed files inside
 * them.
 */

/** Decompressed bytes that are accepted before the ratio is checked. */
const FREE_BYTES = 64 * 1024 * 1024;
const MAX_RATIO = 200;

/** Whether data expands more than legitimate data does. */
export function inflatesTooFar(inflated: number, packed: number): boolean {
  return inflated > FREE_BYTES && inflated > packed * MAX_RATIO;
}
