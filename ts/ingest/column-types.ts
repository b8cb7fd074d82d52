/**
 * Column types: detects them from strings, parses their names, and reports their sizes.
 *
 * A column gets the first type in `DETECTORS` that matches all its values. Empty cells match every
 * type.
 */
import { INT_MAX, INTEGER_TYPES, LONG_MAX, MAX_DECIMAL_DIGITS } from './integers.js';

/**
 * A column type. A time type may have a pattern (ISO if absent), and a number type a decimal mark.
 */
export interface ColumnType {
  readonly type: string;
  readonly pattern?: string;
  /** Strings that represent null, such as `n/a`, unless they are values of the type. */
  readonly nullTexts?: readonly string[];
}

export interface Detector extends ColumnType {
  readonly fits: (text: string) => boolean;
}

const DAY = '(?:0[1-9]|[12]\\d|3[01])';
const MONTH = '(?:0[1-9]|1[0-2])';
const TIME = '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d';
const ZONE = '(?:Z|[+-]\\d{2}(?::?\\d{2})?)';

function matches(pattern: string): (text: string) => boolean {
  const compiled = new RegExp(`^${pattern}$`);
  return (text) => compiled.test(text);
}

function isWithin(limit: bigint, suffix: string): (text: string) => boolean {
  const shape = new RegExp(`^[+-]?(\\d{1,${MAX_DECIMAL_DIGITS}})${suffix}$`);
  return (text) => {
    const digits = shape.exec(text)?.[1];
    return digits !== undefined && BigInt(digits) <= limit;
  };
}

/** Returns whether DOUBLE represents a number exactly; an integer beyond LONG would lose digits. */
export function isExact(text: string): boolean {
  const digits = /^[+-]?(\d{19,})$/.exec(text)?.[1];
  if (digits === undefined || BigInt(digits) <= LONG_MAX) {
    return true;
  }
  const value = Number(digits);
  return Number.isFinite(value) && BigInt(value) === BigInt(digits);
}

const isNumber = matches('\\s*[+-]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][+-]?\\d+)?[fFdD]?\\s*');
const isNotFinite = matches('[+-]?(?:NaN|Infinity)');
const isIpv4 = matches('(?:(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)(?:\\.(?!$)|$)){4}');

/** Types with their tests, ordered from the narrowest to the widest. */
export const DETECTORS: readonly Detector[] = [
  { type: 'INT', fits: isWithin(INT_MAX, '') },
  { type: 'LONG', fits: isWithin(LONG_MAX, 'L?') },
  ...INTEGER_TYPES.slice(2).map(({ type, max }) => ({ type, fits: isWithin(max, '') })),
  { type: 'DOUBLE', fits: (text) => (isNumber(text) && isExact(text)) || isNotFinite(text) },
  { type: 'BOOLEAN', fits: (text) => /^(?:true|false)$/i.test(text) },
  { type: 'DATE', fits: matches(`\\d{4}-${MONTH}-${DAY}`) },
  { type: 'DATE', fits: matches(`\\d{4}-${MONTH}-${DAY} ${TIME}`) },
  { type: 'DATE', fits: matches(`\\d{4}-${MONTH}-${DAY}T${TIME}\\.\\d{3}${ZONE}`) },
  { type: 'DATE', pattern: 'dd/MM/yyyy', fits: matches(`${DAY}/${MONTH}/\\d{4}`) },
  { type: 'DATE', pattern: 'MM/dd/yyyy', fits: matches(`${MONTH}/${DAY}/\\d{4}`) },
  { type: 'TIMESTAMP', fits: matches(`\\d{4}-${MONTH}-${DAY}T${TIME}\\.\\d{6}${ZONE}`) },
  { type: 'TIMESTAMP_NS', fits: matches(`\\d{4}-${MONTH}-${DAY}T${TIME}\\.\\d{9}${ZONE}`) },
  { type: 'UUID', fits: matches('[\\da-fA-F]{8}(?:-[\\da-fA-F]{4}){3}-[\\da-fA-F]{12}') },
  { type: 'IPv4', fits: isIpv4 },
  { type: 'LONG256', fits: matches('0[xX][\\da-fA-F]{1,64}') },
  // CHAR is a single ASCII character.
  { type: 'CHAR', fits: (text) => text.length === 1 && text < '\u0080' },
];

const VARCHAR: ColumnType = { type: 'VARCHAR' };

/** Returns the first type that matches all `cells`. */
export function detectColumnType(cells: readonly string[]): ColumnType {
  const texts = cells.filter((cell) => cell !== '');
  if (texts.length === 0) {
    return VARCHAR;
  }
  return findDetector(texts) ?? VARCHAR;
}

function findDetector(texts: readonly string[]): ColumnType | null {
  const match = DETECTORS.find((detector) => texts.every((text) => detector.fits(text)));
  if (match === undefined) {
    return null;
  }
  const { type, pattern } = match;
  return pattern === undefined ? { type } : { type, pattern };
}

/** Returns whether a value matches a detected type; every value matches VARCHAR. */
export function fitsType(text: string, { type, pattern }: ColumnType): boolean {
  if (text === '' || type === 'VARCHAR') {
    return true;
  }
  const detectors = DETECTORS.filter((d) => d.type === type && d.pattern === pattern);
  return detectors.some((detector) => detector.fits(text));
}

/**
 * Returns the date patterns that match all `cells`, if there are several: 01/02/2026 may be in
 * January or in February.
 */
export function ambiguousPatterns(cells: readonly string[]): readonly string[] {
  const texts = cells.filter((cell) => cell !== '');
  const dated = DETECTORS.filter(({ pattern }) => pattern !== undefined);
  const fitting = dated.filter(({ fits }) => texts.every((text) => fits(text)));
  return texts.length > 0 && fitting.length > 1 ? fitting.map(({ pattern = '' }) => pattern) : [];
}

const isIsoTimestamp = matches(
  `\\d{4}-${MONTH}-${DAY}(?:[T ]\\d{2}(?::\\d{2}(?::\\d{2}(?:\\.\\d{1,9})?)?)?${ZONE}?)?`,
);

/**
 * Returns whether a TIMESTAMP column can parse strings whose ISO format differs from those that are
 * detected as TIMESTAMP.
 */
export function areIsoTimestamps(cells: readonly string[]): boolean {
  const texts = cells.filter((cell) => cell !== '');
  return texts.length > 0 && texts.every((text) => isIsoTimestamp(text));
}

const PLAIN_TYPES: readonly string[] = [
  'BOOLEAN',
  'BYTE',
  'SHORT',
  'CHAR',
  'INT',
  'LONG',
  'FLOAT',
  'DOUBLE',
  'DATE',
  'TIMESTAMP',
  'TIMESTAMP_NS',
  'SYMBOL',
  'STRING',
  'VARCHAR',
  'UUID',
  'LONG256',
  'IPv4',
  'BINARY',
];

/** Converts a type name to the engine's spelling; returns `null` if it is unknown. */
export function parseTypeName(name: string): string | null {
  const text = name.trim().toUpperCase().replaceAll(/\s+/g, '');
  const plain = PLAIN_TYPES.find((type) => type.toUpperCase() === text);
  if (plain !== undefined) {
    return plain;
  }
  if (/^DOUBLE(?:\[\]){1,32}$/.test(text)) {
    return text;
  }
  return parseGeohash(text) ?? parseDecimal(text);
}

function parseGeohash(text: string): string | null {
  const parts = /^GEOHASH\((\d{1,2})([CB])\)$/.exec(text);
  if (parts === null) {
    return null;
  }
  const count = Number(parts[1]);
  const bits = parts[2] === 'C' ? count * 5 : count;
  if (bits < 1 || bits > 60) {
    return null;
  }
  return bits % 5 === 0 ? `GEOHASH(${bits / 5}c)` : `GEOHASH(${bits}b)`;
}

function parseDecimal(text: string): string | null {
  const parts = /^(?:DECIMAL|NUMERIC)(?:\((\d{1,2})(?:,(\d{1,2}))?\))?$/.exec(text);
  if (parts === null) {
    return null;
  }
  const precision = parts[1] === undefined ? 18 : Number(parts[1]);
  const scale = Number(parts[2] ?? (parts[1] === undefined ? 3 : 0));
  if (precision < 1 || precision > 76 || scale > precision) {
    return null;
  }
  return `DECIMAL(${precision},${scale})`;
}

/** Type ID that appears in messages. */
const BINARY_ID = 18;

export function isNumberType(type: string): boolean {
  return /^(?:BYTE|SHORT|INT|LONG|FLOAT|DOUBLE|DECIMAL\(.*)$/.test(type);
}

/** Returns why strings cannot be converted to this type; `null` if they can. */
export function missingAdapter(type: string): string | null {
  if (type === 'BINARY') {
    return `no adapter for type [id=${BINARY_ID}, name=BINARY]`;
  }
  return null;
}

const SIZES: Readonly<Record<string, number>> = {
  BOOLEAN: 1,
  BYTE: 1,
  SHORT: 2,
  CHAR: 2,
  INT: 4,
  FLOAT: 4,
  SYMBOL: 4,
  IPv4: 4,
  LONG: 8,
  DOUBLE: 8,
  DATE: 8,
  TIMESTAMP: 8,
  TIMESTAMP_NS: 8,
  UUID: 16,
  LONG256: 32,
};

/** Returns the size of a value in bytes, as reported in the response; 0 for variable length. */
export function sizeOfType(type: string): number {
  const geohash = /^GEOHASH\((\d+)([cb])\)$/.exec(type);
  if (geohash !== null) {
    return geohashSize(Number(geohash[1]) * (geohash[2] === 'c' ? 5 : 1));
  }
  const decimal = /^DECIMAL\((\d+),/.exec(type);
  if (decimal !== null) {
    return decimalSize(Number(decimal[1]));
  }
  return SIZES[type] ?? 0;
}

function geohashSize(bits: number): number {
  if (bits < 8) {
    return 1;
  }
  if (bits < 16) {
    return 2;
  }
  return bits < 32 ? 4 : 8;
}

function decimalSize(precision: number): number {
  const widths: readonly (readonly [number, number])[] = [
    [2, 1],
    [4, 2],
    [9, 4],
    [18, 8],
    [38, 16],
  ];
  return widths.find(([digits]) => precision <= digits)?.[1] ?? 32;
}
