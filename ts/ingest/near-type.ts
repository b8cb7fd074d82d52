/** Finds text columns whose values fit another type with few exceptions. */
import { type ColumnType, type Detector, DETECTORS } from './column-types.js';
import { isNumberWith } from './number-forms.js';

/** A type that most values of a column fit. */
export interface NearType extends ColumnType {
  /** Number of values that do not fit. */
  readonly misfits: number;
  /** The first value that does not fit, and its row, counted from 1. */
  readonly first: string;
  readonly row: number;
}

/** A type is near if less than this fraction of the values does not fit it. */
const NEAR_SHARE = 0.1;
const MIN_NEAR_TEXTS = 10;

/** Common notations for a missing value. */
const NULL_TEXT =
  /^(?:n\/?a|#n\/a|null|none|nil|nan|missing|unknown|undefined|tbd|\?+|-+|\.+|\*+|\(null\)|\\N)$/i;

const DECIMAL_COMMA: Detector = { type: 'DOUBLE', pattern: ',', fits: isNumberWith(',') };

/** The type with the fewest misfits among `cells`; `null` if every type has too many. */
export function nearType(cells: readonly string[]): NearType | null {
  const texts = cells.filter((cell) => cell !== '');
  const values = texts.filter((text) => !NULL_TEXT.test(text));
  let best: NearType | null = null;
  for (const { type, pattern, fits } of [...DETECTORS, DECIMAL_COMMA]) {
    const misfits = values.filter((text) => !fits(text)).length;
    const isNear =
      misfits === 0
        ? values.length > 0
        : texts.length >= MIN_NEAR_TEXTS && misfits < texts.length * NEAR_SHARE;
    if (type !== 'CHAR' && isNear && (best === null || misfits < best.misfits)) {
      const isMisfit = (cell: string): boolean => cell !== '' && !fits(cell);
      const nullTexts = [...new Set(texts.filter((text) => NULL_TEXT.test(text) && !fits(text)))];
      const row = cells.findIndex(isMisfit);
      best = {
        type,
        ...(pattern === undefined ? {} : { pattern }),
        ...(nullTexts.length === 0 ? {} : { nullTexts }),
        misfits,
        first: cells[row] ?? '',
        row: row + 1,
      };
    }
  }
  return best === null
    ? null
    : { ...best, misfits: texts.filter((text) => !isFit(text, best)).length };
}

function isFit(text: string, { type, pattern }: ColumnType): boolean {
  return [...DETECTORS, DECIMAL_COMMA].some(
    (one) => one.type === type && one.pattern === pattern && one.fits(text),
  );
}
