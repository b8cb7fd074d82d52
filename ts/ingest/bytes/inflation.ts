/** Limits the expansion of compressed data, both for a body and for a compressed file inside it. */

/** Decompressed bytes to accept before the ratio is checked. */
const FREE_BYTES = 64 * 1024 * 1024;
const MAX_RATIO = 200;

/** Whether this expansion exceeds that of legitimate data. */
export function inflatesTooFar(inflated: number, packed: number): boolean {
  return inflated > FREE_BYTES && inflated > packed * MAX_RATIO;
}
