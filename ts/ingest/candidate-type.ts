/** Finds text columns whose values match another type with few exceptions. */
import { type ColumnType, type Detector, DETECTORS } from './column-types.js';
import { isNumberWith } from './number-forms.js';

/** A type that most values in a column match. */
export interface CandidateType extends ColumnType {
  /** Number of values that do not have this type. */
  readonly misfits: number;
  /** The first value that does not match, and its row number, counted from 1. */
  readonly first: string;
  readonly row: number;
}

/**
 * A type is a candidate only if the fraction of values that do not match it is below this limit.
 */
const MAX_MISFIT_FRACTION = 0.1;
const MIN_CANDIDATE_VALUES = 10;

/** Common notations for a missing value. */
const NULL_TEXT =
  /^(?:n\/?a|#n\/a|null|none|nil|nan|missing|unknown|undefined|tbd|\?+|-+|\.+|\*+|\(null\)|\\N)$/i;

const DECIMAL_COMMA: Detector = { type: 'DOUBLE', pattern: ',', fits: isNumberWith(',') };

/** Returns the type with the fewest mismatches among `cells`; `null` if every type has too many. */
export function candidateType(cells: readonly string[]): CandidateType | null {
  const texts = cells.filter((cell) => cell !== '');
  const values = texts.filter((text) => !NULL_TEXT.test(text));
  let best: CandidateType | null = null;
  for (const { type, pattern, fits } of [...DETECTORS, DECIMAL_COMMA]) {
    const misfits = values.filter((text) => !fits(text)).length;
    const isCandidate =
      misfits === 0
        ? values.length > 0
        : texts.length >= MIN_CANDIDATE_VALUES && misfits < texts.length * MAX_MISFIT_FRACTION;
    if (type !== 'CHAR' && isCandidate && (best === null || misfits < best.misfits)) {
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
    (detector) => detector.type === type && detector.pattern === pattern && detector.fits(text),
  );
}
