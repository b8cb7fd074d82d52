/** Parquet file options for `/exp` and COPY; errors are messages for the client. */
import type { ParquetOptions } from '../engine/types.js';

/** Returns an option by its lower-case name; empty for the default. */
type ReadOption = (name: string) => string;

interface LevelRange {
  /** Name in the error message. */
  readonly label: string;
  readonly minimum: number;
  readonly maximum: number;
}

/** Codecs and their compression levels; `null` for none. */
const CODECS: ReadonlyMap<string, LevelRange | null> = new Map([
  ['UNCOMPRESSED', null],
  ['SNAPPY', null],
  ['GZIP', { label: 'GZIP', minimum: 0, maximum: 9 }],
  ['BROTLI', { label: 'Brotli', minimum: 0, maximum: 11 }],
  ['ZSTD', { label: 'ZSTD', minimum: 1, maximum: 22 }],
  ['LZ4', null],
  ['LZ4_RAW', null],
]);

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** Returns the options, or an error message. */
export function parquetOptions(read: ReadOption): ParquetOptions | string {
  try {
    const options: Mutable<ParquetOptions> = { ...codecAndLevel(read) };
    const rows = integerOption(read, 'row_group_size', 'invalid row group size');
    const page = integerOption(read, 'data_page_size', 'invalid data page size', INTEGER_EXPECTED);
    const supported = ', supported versions: 1, 2';
    const version = integerOption(read, 'parquet_version', 'invalid parquet version', supported);
    const statistics = boolean(read, 'statistics_enabled');
    const rawArrays = rawArrayEncoding(read);
    if (rows !== null && rows > 0) {
      options.rowGroupSize = rows;
    }
    if (page !== null && page > 0) {
      options.dataPageSize = page;
    }
    if (version !== null) {
      options.parquetVersion = checkVersion(version);
    }
    if (statistics !== null) {
      options.statisticsEnabled = statistics;
    }
    if (rawArrays !== null) {
      options.rawArrayEncoding = rawArrays;
    }
    return options;
  } catch (error) {
    if (error instanceof Refusal) {
      return error.message;
    }
    throw error;
  }
}

/** Reports an invalid parameter. */
class Refusal extends Error {}

function codecAndLevel(read: ReadOption): ParquetOptions {
  const asked = read('compression_codec');
  const codec = asked === '' ? 'ZSTD' : asked.toUpperCase();
  const range = CODECS.get(codec);
  if (range === undefined) {
    const known = [...CODECS.keys()].join(', ').toLowerCase();
    throw new Refusal(`invalid compression codec[${asked}], expected one of: ${known}`);
  }
  const level = integerOption(
    read,
    'compression_level',
    'invalid compression level',
    INTEGER_EXPECTED,
  );
  if (level === null || range === null) {
    return { compressionCodec: codec };
  }
  if (level < range.minimum || level > range.maximum) {
    const { label, minimum, maximum } = range;
    throw new Refusal(`${label} compression level must be between ${minimum} and ${maximum}`);
  }
  return { compressionCodec: codec, compressionLevel: level };
}

function checkVersion(version: number): number {
  if (version !== 1 && version !== 2) {
    throw new Refusal(`invalid parquet version: ${version}, supported versions: 1, 2`);
  }
  return version;
}

function rawArrayEncoding(read: ReadOption): boolean | null {
  const text = read('raw_array_encoding');
  if (!['', 'true', 'false'].includes(text.toLowerCase())) {
    throw new Refusal(`invalid raw_array_encoding '${text}': expected true or false`);
  }
  return text === '' ? null : text.toLowerCase() === 'true';
}

/** `true` in upper or lower case is true; any other value is false, as in QuestDB. */
function boolean(read: ReadOption, name: string): boolean | null {
  const text = read(name);
  return text === '' ? null : text.toLowerCase() === 'true';
}

const INTEGER_EXPECTED = ', expected a whole number of at most 10 digits';

function integerOption(
  read: ReadOption,
  name: string,
  message: string,
  expected = '',
): number | null {
  const text = read(name);
  if (text === '') {
    return null;
  }
  if (!/^[+-]?\d{1,10}$/.test(text)) {
    throw new Refusal(`${message}:${text}${expected}`);
  }
  return Number(text);
}
