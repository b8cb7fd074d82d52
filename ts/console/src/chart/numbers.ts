/** Converts values to numbers that can be drawn. */
import type { Value } from '../api/answer.js';

/** A finite number or null: `LONG` and `DECIMAL` arrive as strings so that the grid is exact. */
export function numberOf(value: Value): number | null {
  if (value === null || typeof value === 'boolean' || Array.isArray(value)) {
    return null;
  }
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}
