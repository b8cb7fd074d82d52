/** Local number formats: a decimal comma, and digits in groups of three. */

import { integerType } from './integers.js';

/**
 * A number type and the decimal mark of its values. Without a mark, the values use a point and no
 * digit groups.
 */
interface NumberForm {
  readonly type: string;
  readonly pattern: DecimalMark;
}

export type DecimalMark = ',' | '.';

const SPACES = "' \u2019\u00a0\u202f";

/** Returns a pattern for numbers. Leading zeros are not allowed: `030 1234` is not a number. */
function shapeOf(mark: DecimalMark): RegExp {
  const other = mark === ',' ? '.' : ',';
  const groups = `[1-9]\\d{0,2}(?:([${other}${SPACES}])\\d{3})(?:\\1\\d{3})*`;
  return new RegExp(`^[+-]?(?:${groups}|0|[1-9]\\d*)?(?:\\${mark}\\d*)?(?:[eE][+-]?\\d+)?$`);
}

const SHAPES: Readonly<Record<DecimalMark, RegExp>> = { ',': shapeOf(','), '.': shapeOf('.') };
const MARKS = [',', '.'] as const;

function fits(texts: readonly string[], mark: DecimalMark): boolean {
  return texts.every((text) => /\d/.test(text) && SHAPES[mark].test(text.trim()));
}

/**
 * Returns the number format of values that are not plain numbers; `null` if they are not numbers at
 * all.
 */
export function numberForm(
  texts: readonly string[],
  given: DecimalMark | null,
): NumberForm | 'ambiguous' | null {
  const marks = MARKS.filter((mark) => (given ?? mark) === mark && fits(texts, mark));
  const [mark] = marks;
  const hasMark = texts.some((text) => /[.,]/.test(text));
  // Digits grouped only by spaces are customer or telephone numbers rather than quantities.
  if (mark === undefined || !hasMark) {
    return null;
  }
  const type = typeOf(texts, mark);
  if (marks.length > 1) {
    return 'ambiguous';
  }
  return type === null ? null : { type, pattern: mark };
}

function typeOf(texts: readonly string[], mark: DecimalMark): string | null {
  if (texts.some((text) => text.includes(mark) || /e/i.test(text))) {
    return 'DOUBLE';
  }
  return integerType(texts.map((text) => text.replaceAll(/\D/g, '')));
}

/** Returns a test for numbers that either have this decimal mark or have no decimal mark. */
export function isNumberWith(mark: DecimalMark): (text: string) => boolean {
  return (text) => fits([text], mark);
}

/**
 * Codes with a leading zero or plus sign. A plus sign followed by at least seven digits starts a
 * telephone number.
 */
const CODE = /^(?:-?0\d+|\+0\d+|\+\d{7,})$/;

/** Returns whether digits are a code whose leading zeros or sign matter: 01234, +4930123456. */
export function isCode(text: string): boolean {
  return CODE.test(text);
}
