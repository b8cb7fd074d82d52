/** Detects the delimiter: the character that occurs equally often in every line. */
import { DELIMITER_CANDIDATES, countDelimiter } from './csv-lines.js';
import { ImportError } from './import-error.js';

/** Maximum standard deviation of the number of delimiters per line. */
const DELIMITER_MAX_STD_DEV = 0.1222;
/** Standard deviation of line lengths below which lines are considered equally long. */
const LINE_LENGTH_MAX_STD_DEV = 0.8;

function standardDeviation(values: readonly number[]): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return Math.sqrt(squares / values.length);
}

/**
 * Characters that are common in times and names. They are accepted as delimiters only if the first
 * line contains them.
 */
const INNER_CANDIDATES: ReadonlySet<string> = new Set([':', ' ']);

/**
 * Detects the delimiter. If no candidate occurs, the input has one column, and any delimiter is
 * suitable. `linesMax` is the sample's maximum number of lines, for the error message.
 */
export function detectDelimiter(lines: readonly string[], linesMax: number): string {
  let best: string | null = null;
  let bestDeviation = Number.POSITIVE_INFINITY;
  for (const candidate of DELIMITER_CANDIDATES) {
    const counts = lines.map((line) => countDelimiter(line, candidate));
    const isInner = INNER_CANDIDATES.has(candidate) && counts[0] === 0;
    if (isInner || counts.every((count) => count === 0)) {
      continue;
    }
    const deviation = standardDeviation(counts);
    if (deviation < bestDeviation) {
      best = candidate;
      bestDeviation = deviation;
    }
  }
  if (best === null) {
    return DELIMITER_CANDIDATES[0];
  }
  if (bestDeviation <= DELIMITER_MAX_STD_DEV) {
    return best;
  }
  const lengthDeviation = standardDeviation(lines.map((line) => Buffer.byteLength(line)));
  throw new ImportError(
    `min deviation is too high [delimiterStdDev=${bestDeviation}, ` +
      `delimiterMaxStdDev=${DELIMITER_MAX_STD_DEV}, lineLengthStdDev=${lengthDeviation}, ` +
      `lineLengthMaxStdDev=${LINE_LENGTH_MAX_STD_DEV}, lineCountLimit=${linesMax}, ` +
      `lineCount=${lines.length}]${raggedLine(lines, best)}`,
  );
}

/** Describes a line with a different field count than most lines. */
function raggedLine(lines: readonly string[], delimiter: string): string {
  const counts = lines.map((line) => countDelimiter(line, delimiter) + 1);
  const frequencies = new Map<number, number>();
  for (const count of counts) {
    frequencies.set(count, (frequencies.get(count) ?? 0) + 1);
  }
  const [mostFrequent] = [...frequencies].sort(([, a], [, b]) => b - a);
  const usual = mostFrequent?.[0] ?? 0;
  const at = counts.findIndex((count) => count !== usual);
  const name = delimiter === '\t' ? 'a tab' : `'${delimiter}'`;
  return (
    `: line ${at + 1} has ${counts[at] ?? 0} fields, most lines have ${usual} ` +
    `(divided by ${name}); correct it, or name the delimiter (delimiter=)`
  );
}
