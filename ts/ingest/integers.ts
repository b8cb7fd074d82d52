/**
 * Integer types, from narrowest to widest; for integers beyond LONG, DECIMAL preserves all digits.
 */

export const INT_MAX = 2_147_483_647n;
export const LONG_MAX = 9_223_372_036_854_775_807n;
export const MAX_DECIMAL_DIGITS = 76;

export const INTEGER_TYPES = [
  { type: 'INT', max: INT_MAX },
  { type: 'LONG', max: LONG_MAX },
  { type: 'DECIMAL(38,0)', max: 10n ** 38n - 1n },
  { type: 'DECIMAL(76,0)', max: 10n ** BigInt(MAX_DECIMAL_DIGITS) - 1n },
] as const;

/** Returns the narrowest type for integers with these digits; `null` if none is wide enough. */
export function integerType(digits: readonly string[]): string | null {
  if (digits.some(({ length }) => length > MAX_DECIMAL_DIGITS)) {
    return null;
  }
  const values = digits.map(BigInt);
  return INTEGER_TYPES.find(({ max }) => values.every((value) => value <= max))?.type ?? null;
}
