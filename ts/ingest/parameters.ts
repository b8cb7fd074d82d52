/** The parameters of an import: read from the query, checked before anything happens. */
import { ImportError } from './import-error.js';
import type { DecimalMark } from './number-forms.js';

/** What a sender says about a text, as `/imp` takes it; the meaning is checked by the import. */
export interface ImportParameters {
  /** Table name; `null` takes the data part's file name. */
  readonly name: string | null;
  /** `null` detects it. */
  readonly delimiter: string | null;
  readonly format: 'json' | 'tabular';
  /** Whether the first line is a header; `null` looks at it. */
  readonly header: boolean | null;
  readonly atomicity: 'abort' | 'abortLine' | 'skipRow' | 'skipCol';
  readonly overwrite: boolean;
  readonly create: boolean;
  readonly skipExtraValues: boolean;
  /** Designated timestamp of a table to be created. */
  readonly timestamp: string | null;
  readonly partitionBy: string | null;
  readonly o3MaxLag: string | null;
  readonly maxUncommittedRows: string | null;
  /** How the text's bytes are characters; `null`: as its byte order mark says, else UTF-8. */
  readonly encoding: string | null;
  /** The decimal mark of numbers; `null` finds it out. */
  readonly decimal: DecimalMark | null;
  /** Types, as the `schema` part sets them. */
  readonly schema: string | null;
  /** Whether an answer in JSON names the first lines that could not be read. */
  readonly badLines: boolean;
  /** A new table into which no row of a text with rows goes is an error. */
  readonly requireRows: boolean;
  /** A text that begins as JSON does is JSON. */
  readonly json: boolean;
  /** Types that turn out to be too narrow become wider, instead of spoiling values. */
  readonly widens: boolean;
  /** What is wrong with the values as they were written. */
  readonly problem: string | null;
}

const SWITCHES = ['forceHeader', 'overwrite', 'create', 'skipLev', 'badLines', 'requireRows'];

/** Reads the parameters of a request; names are case-sensitive, the last of repeated ones wins. */
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
    // Who says what becomes of values that do not fit has said it.
    widens: last('atomicity') === null,
    problem: wrongSwitch(last) ?? wrongDecimal(filled('decimal')),
  };
}

function wrongDecimal(mark: string | null): string | null {
  const isWrong = mark !== null && mark !== ',' && mark !== '.';
  return isWrong ? `invalid decimal: ${mark}, expected , or .` : null;
}

function wrongSwitch(value: (name: string) => string | null): string | null {
  const isWrong = (name: string): boolean =>
    !['', 'true', 'false', '1', '0'].includes(value(name)?.toLowerCase() ?? '');
  const wrong = SWITCHES.find(isWrong);
  return wrong === undefined
    ? null
    : `invalid ${wrong}: ${value(wrong) ?? ''}, expected true or false`;
}

/** One ASCII character that has no meaning of its own in CSV; anything else is ignored. */
function isDelimiter(text: string): boolean {
  return text.length === 1 && text < '\u0080' && !['"', '\n', '\r'].includes(text);
}

/** Unknown words mean `skipCol`, as observed. */
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

/** Parameters whose text had to be understood first. */
export interface CheckedParameters {
  readonly timestamp: string | null;
  /** NONE, HOUR, DAY, WEEK, MONTH, YEAR. */
  readonly partitionBy: string;
  /** The same, `null` when it was not given. */
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

/** Checks what can be wrong about parameters by themselves. */
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

/** Whole microseconds, or a whole number with a unit: `10s`. */
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
