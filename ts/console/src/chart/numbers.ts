/** Converts values to numbers that can be drawn. */
import type { Value } from '../api/answer.js';

/**
 * Converts a value to a finite number, or to null. `LONG` and `DECIMAL` values arrive as strings,
 * so that the grid can show them exactly.
 */
export function numberOf(value: Value): number | null {
  if (value === null || typeof value === 'boolean' || Array.isArray(value)) {
    return null;
  }
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}
