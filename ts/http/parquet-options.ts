/** The Parquet parameters of `/exp`; what is wrong with them comes back as the client's text. */
import type { ParquetOptions } from '../session/index.js';
import type { Parameters } from './parameters.js';

interface LevelRange {
  /** As the message writes it. */
  readonly label: string;
  readonly least: number;
  readonly most: number;
}

/** Codecs and the levels they know; `null` has none. */
const CODECS: ReadonlyMap<string, LevelRange | null> = new Map([
  ['UNCOMPRESSED', null],
  ['SNAPPY', null],
  ['GZIP', { label: 'GZIP', least: 0, most: 9 }],
  ['BROTLI', { label: 'Brotli', least: 0, most: 11 }],
  ['ZSTD', { label: 'ZSTD', least: 1, most: 22 }],
  ['LZ4', null],
  ['LZ4_RAW', null],
]);
const PARTITIONS = new Set(['HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR']);

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** Empty values mean the default. */
export function parquetOptions(parameters: Parameters): ParquetOptions | string {
  try {
    checkPartitions(parameters.get('partition_by') ?? '');
    const options: Mutable<ParquetOptions> = { ...codecAndLevel(parameters) };
    const rows = wholeNumber(parameters, 'row_group_size', 'invalid row group size');
    const page = wholeNumber(parameters, 'data_page_size', 'invalid data page size');
    const version = wholeNumber(parameters, 'parquet_version', 'invalid parquet version');
    const statistics = parameters.get('statistics_enabled') ?? '';
    if (rows !== null && rows > 0) {
      options.rowGroupSize = rows;
    }
    if (page !== null && page > 0) {
      options.dataPageSize = page;
    }
    if (version !== null) {
      options.parquetVersion = checkVersion(version);
    }
    if (statistics !== '') {
      options.statisticsEnabled = statistics.toLowerCase() === 'true';
    }
    return options;
  } catch (error) {
    if (error instanceof Refusal) {
      return error.message;
    }
    throw error;
  }
}

/** A parameter that cannot be taken. */
class Refusal extends Error {}

function codecAndLevel(parameters: Parameters): ParquetOptions {
  const asked = parameters.get('compression_codec') ?? '';
  const codec = asked === '' ? 'ZSTD' : asked.toUpperCase();
  const range = CODECS.get(codec);
  if (range === undefined) {
    const known = [...CODECS.keys()].join(', ').toLowerCase();
    throw new Refusal(`invalid compression codec[${asked}], expected one of: ${known}`);
  }
  const level = wholeNumber(parameters, 'compression_level', 'invalid compression level');
  if (level === null || range === null) {
    return { compressionCodec: codec };
  }
  if (level < range.least || level > range.most) {
    const { label, least, most } = range;
    throw new Refusal(`${label} compression level must be between ${least} and ${most}`);
  }
  return { compressionCodec: codec, compressionLevel: level };
}

function checkVersion(version: number): number {
  if (version !== 1 && version !== 2) {
    throw new Refusal(`invalid parquet version: ${version}, supported versions: 1, 2`);
  }
  return version;
}

function checkPartitions(asked: string): void {
  const unit = asked.toUpperCase();
  if (PARTITIONS.has(unit)) {
    throw new Refusal(`partition_by is not supported yet: ${asked}, use NONE`);
  }
  if (unit !== '' && unit !== 'NONE') {
    const known = ['NONE', ...PARTITIONS].join(', ');
    throw new Refusal(`invalid partition_by: ${asked}, expected one of: ${known}`);
  }
}

function wholeNumber(parameters: Parameters, name: string, message: string): number | null {
  const text = parameters.get(name) ?? '';
  if (text === '') {
    return null;
  }
  if (!/^[+-]?\d{1,10}$/.test(text)) {
    throw new Refusal(`${message}:${text}`);
  }
  return Number(text);
}
