/** How far compressed bytes may grow: what holds for a body holds for a file within one. */

/** Inflated bytes that are taken without asking for the ratio. */
const FREE_BYTES = 64 * 1024 * 1024;
const MAX_RATIO = 200;

/** Whether so many bytes are more than an honest sender packs into so few. */
export function inflatesTooFar(inflated: number, packed: number): boolean {
  return inflated > FREE_BYTES && inflated > packed * MAX_RATIO;
}
