/** An import's parameters, which are read from the query string and checked in advance. */
import { ImportError } from './import-error.js';
import type { DecimalMark } from './number-forms.js';

/** Parameters as the sender specified them, for `/imp`. The import checks their meaning. */
export interface ImportParameters {
  /** Table name; `null` to use the data part's file name. */
  readonly name: string | null;
  /** Input delimiter; `null` to detect it. */
  readonly delimiter: string | null;
  readonly format: 'json' | 'tabular';
  /** Whether the first line is a header; `null` to detect it. */
  readonly header: boolean | null;
  readonly atomicity: 'abort' | 'abortLine' | 'skipRow' | 'skipCol';
  readonly overwrite: boolean;
  readonly create: boolean;
  readonly skipExtraValues: boolean;
  /** Designated timestamp of a new table. */
  readonly timestamp: string | null;
  readonly partitionBy: string | null;
  readonly o3MaxLag: string | null;
  readonly maxUncommittedRows: string | null;
  /** The character encoding; `null` to use the byte order mark or, without one, UTF-8. */
  readonly encoding: string | null;
  /** Decimal mark in numbers; `null` to detect it. */
  readonly decimal: DecimalMark | null;
  /** Types from the `schema` part. */
  readonly schema: string | null;
  /** Whether the JSON response lists the first bad lines. */
  readonly badLines: boolean;
  /** Whether to refuse to create a table if none of the input's rows can be read. */
  readonly requireRows: boolean;
  /** Whether to treat input that starts like JSON as JSON. */
  readonly json: boolean;
  /** Whether to widen types that are too narrow, instead of rejecting values. */
  readonly widens: boolean;
  /** The error message for the first invalid parameter, if any. */
  readonly problem: string | null;
}

const SWITCHES = ['forceHeader', 'overwrite', 'create', 'skipLev', 'badLines', 'requireRows'];

/**
 * Reads the parameters of a request. Names are case-sensitive; the last value of a repeated name
 * wins.
 */
export function readImportParameters(query: URLSearchParams): ImportParameters {
  const last = (name: string): string | null => query.getAll(name).at(-1) ?? null;
  const filled = (name: string): string | null => {
    const text = last(name);
    return text === '' ? null : text;
  };
  const isTrue = (name: string): boolean => last(name)?.toLowerCase() === 'true';
  const delimiter = last('delimiter');
  return {
    name: last('name'),
    delimiter: delimiter !== null && isDelimiter(delimiter) ? delimiter : null,
    format: last('fmt')?.toLowerCase() === 'json' ? 'json' : 'tabular',
    header: isTrue('forceHeader') ? true : null,
    atomicity: readAtomicity(last('atomicity')),
    overwrite: isTrue('overwrite'),
    create: last('create')?.toLowerCase() !== 'false',
    skipExtraValues: isTrue('skipLev'),
    timestamp: filled('timestamp'),
    partitionBy: filled('partitionBy'),
    o3MaxLag: filled('o3MaxLag'),
    maxUncommittedRows: filled('maxUncommittedRows'),
    encoding: filled('encoding'),
    decimal: last('decimal') === ',' ? ',' : last('decimal') === '.' ? '.' : null,
    schema: filled('schema'),
    badLines: isTrue('badLines'),
    requireRows: isTrue('requireRows'),
    json: delimiter === null,
    // `atomicity` specifies how to treat values that do not match the types, so types are widened
    // only if it is absent.
    widens: last('atomicity') === null,
    problem: wrongSwitch(last) ?? wrongDecimal(filled('decimal')),
  };
}

function wrongDecimal(mark: string | null): string | null {
  const isWrong = mark !== null && mark !== ',' && mark !== '.';
  return isWrong ? `invalid decimal '${mark}': expected , or .` : null;
}

function wrongSwitch(value: (name: string) => string | null): string | null {
  const isWrong = (name: string): boolean =>
    !['', 'true', 'false', '1', '0'].includes(value(name)?.toLowerCase() ?? '');
  const wrong = SWITCHES.find(isWrong);
  return wrong === undefined
    ? null
    : `invalid ${wrong} '${value(wrong) ?? ''}': expected true or false`;
}

/**
 * Returns whether the string is a single ASCII character that has no special meaning in CSV. `/imp`
 * ignores any other delimiter.
 */
export function isDelimiter(text: string): boolean {
  return text.length === 1 && text < '\u0080' && !['"', '\n', '\r'].includes(text);
}

/** Parses the atomicity. An unknown value means `skipCol`, as in QuestDB. */
function readAtomicity(text: string | null): ImportParameters['atomicity'] {
  switch (text?.toLowerCase()) {
    case 'abort':
      return 'abort';
    case 'skiprow':
      return 'skipRow';
    default:
      return 'skipCol';
  }
}

/** Parsed and checked parameters. */
export interface CheckedParameters {
  readonly timestamp: string | null;
  /** NONE, HOUR, DAY, WEEK, MONTH or YEAR. */
  readonly partitionBy: string;
  /** The partition unit that was specified, if any. */
  readonly givenPartitionBy: string | null;
  readonly o3MaxLagMicros: number | null;
  readonly maxUncommittedRows: number | null;
  readonly decimal: DecimalMark | null;
  readonly widens: boolean;
}

const PARTITION_UNITS: ReadonlySet<string> = new Set([
  'NONE',
  'HOUR',
  'DAY',
  'WEEK',
  'MONTH',
  'YEAR',
]);

/** Checks the parameters. Throws for values that are invalid regardless of the input. */
export function checkParameters(parameters: ImportParameters): CheckedParameters {
  const { timestamp, problem, decimal, widens } = parameters;
  if (problem !== null) {
    throw new ImportError(problem);
  }
  const given = parameters.partitionBy?.toUpperCase() ?? null;
  if (given !== null && !PARTITION_UNITS.has(given)) {
    throw new ImportError('invalid partitionBy');
  }
  const partitionBy = given ?? 'NONE';
  if (partitionBy !== 'NONE' && timestamp === null) {
    throw new ImportError('when specifying partitionBy you must also specify timestamp');
  }
  return {
    timestamp,
    partitionBy,
    givenPartitionBy: given,
    o3MaxLagMicros: readLag(parameters.o3MaxLag),
    maxUncommittedRows: readRowCount(parameters.maxUncommittedRows),
    decimal,
    widens,
  };
}

const MICROS_PER_UNIT: Readonly<Record<string, number>> = {
  us: 1,
  ms: 1_000,
  s: 1_000_000,
  m: 60_000_000,
  h: 3_600_000_000,
  d: 86_400_000_000,
};

/** Parses an integer in microseconds, or a number with a unit: `10s`. */
function readLag(text: string | null): number | null {
  if (text === null) {
    return null;
  }
  const parts = /^(\d{1,15})(us|ms|s|m|h|d)?$/.exec(text.trim());
  const micros = Number(parts?.[1]) * (MICROS_PER_UNIT[parts?.[2] ?? 'us'] ?? Number.NaN);
  if (Number.isSafeInteger(micros)) {
    return micros;
  }
  throw new ImportError('invalid o3MaxLag value, must be a long');
}

const INT_MAX = 2_147_483_647;

function readRowCount(text: string | null): number | null {
  if (text === null) {
    return null;
  }
  const count = /^\d{1,10}$/.test(text.trim()) ? Number(text) : Number.NaN;
  if (count <= INT_MAX) {
    return count;
  }
  throw new ImportError('invalid maxUncommittedRows, must be an int');
}
