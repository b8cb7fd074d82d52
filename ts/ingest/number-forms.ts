/** Numbers as people write them: a decimal comma, digits in groups of three. */

/** A number's type, and the decimal mark that its texts have (absent: a point, no groups). */
interface NumberForm {
  readonly type: 'INT' | 'LONG' | 'DOUBLE';
  readonly pattern: DecimalMark;
}

export type DecimalMark = ',' | '.';

const INT_MAX = 2_147_483_647n;
const LONG_MAX = 9_223_372_036_854_775_807n;
/** Of a LONG. */
const MOST_DIGITS = 19;
const SPACES = "' \u2019\u00a0\u202f";

/** No zeros in front: `030 1234` is no number. */
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

/** How numbers are written that are no plain ones; `null` when they are none. */
export function numberForm(
  texts: readonly string[],
  given: DecimalMark | null,
): NumberForm | 'ambiguous' | null {
  const marks = MARKS.filter((mark) => (given ?? mark) === mark && fits(texts, mark));
  const [mark] = marks;
  const hasMark = texts.some((text) => /[.,]/.test(text));
  // Digits that only blanks divide are numbers of customers and telephones rather than quantities.
  if (mark === undefined || !hasMark) {
    return null;
  }
  return marks.length > 1 ? 'ambiguous' : { type: typeOf(texts, mark), pattern: mark };
}

function typeOf(texts: readonly string[], mark: DecimalMark): NumberForm['type'] {
  if (texts.some((text) => text.includes(mark) || /e/i.test(text))) {
    return 'DOUBLE';
  }
  const digits = texts.map((text) => text.replaceAll(/\D/g, ''));
  if (digits.some(({ length }) => length > MOST_DIGITS)) {
    return 'DOUBLE';
  }
  const largest = digits.map(BigInt);
  if (largest.every((number) => number <= INT_MAX)) {
    return 'INT';
  }
  return largest.every((number) => number <= LONG_MAX) ? 'LONG' : 'DOUBLE';
}

/** A plus sign before this many digits begins a telephone number. */
const CODE = /^(?:-?0\d+|\+0\d+|\+\d{7,})$/;

/** Whether a text of digits is a code, whose zeros and sign are part of it: 01234, +4930123456. */
export function isCode(text: string): boolean {
  return CODE.test(text);
}
