/**
 * Limits the expansion of compressed data, both in whole bodies and in compressed files inside
 * them.
 */

/** Decompressed bytes that are accepted before the ratio is checked. */
const FREE_BYTES = 64 * 1024 * 1024;
const MAX_RATIO = 200;

/** Returns whether data expands more than legitimate data would. */
export function inflatesTooFar(inflated: number, packed: number): boolean {
  return inflated > FREE_BYTES && inflated > packed * MAX_RATIO;
}
