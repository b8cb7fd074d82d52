/** Parses and checks the WITH options. */
import { DatabaseError, parquetOptions, type ParquetOptions } from '../session/index.js';
import type { Name, OptionValue } from '../sql/index.js';
import { isEncoding } from '../ingest/index.js';
import { isPartitionUnit, type PartitionUnit } from './partitions.js';

export interface ImportSettings {
  /** Whether the first line is a header; `null` to detect this from the first lines. */
  readonly header: boolean | null;
  readonly delimiter: string;
  /** Text file encoding; `null` to detect it from the first bytes. */
  readonly encoding: string | null;
  /** File format; `null` to detect it from the first bytes. */
  readonly fileFormat: 'csv' | 'parquet' | null;
  readonly timestamp: string | null;
  /** Pattern for parsing the designated timestamp; `null` for ISO. */
  readonly pattern: string | null;
  readonly partitionBy: PartitionUnit | 'NONE' | null;
  readonly onError: 'abortLine' | 'skipRow' | 'skipCol';
  readonly onErrorIsGiven: boolean;
  /** The option, if any, that requires a designated timestamp. */
  readonly needsTimestamp: Name | null;
}

export interface ExportSettings {
  readonly format: 'csv' | 'parquet';
  readonly header: boolean;
  readonly delimiter: string;
  readonly parquet: ParquetOptions;
  /** Partition unit for the files; `null` if not specified. */
  readonly partitionBy: PartitionUnit | 'NONE' | null;
  /** The option's name in the statement, for the error if partitions are not supported. */
  readonly partitionName: Name | null;
  /** Whether to replace existing files; `null` if not specified. */
  readonly overwrite: boolean | null;
  /** Message about an option that has no effect. */
  readonly notice: string | null;
}

/** Options, keyed by upper-case name; if an option is repeated, the last one wins. */
class Options {
  readonly #options: ReadonlyMap<string, OptionValue>;

  constructor(options: readonly OptionValue[]) {
    this.#options = new Map(options.map((option) => [option.name.text.toUpperCase(), option]));
  }

  name(name: string): Name | null {
    return this.#options.get(name)?.name ?? null;
  }

  value(name: string): Name | null {
    return this.#options.get(name)?.value ?? null;
  }

  text(name: string): string {
    return this.value(name)?.text ?? '';
  }

  /** Returns a boolean option; `null` if not specified. */
  boolean(name: string): boolean | null {
    const value = this.value(name);
    switch (value?.text.toLowerCase()) {
      case undefined:
        return null;
      case 'true':
        return true;
      case 'false':
        return false;
      default:
        throw wrong("'true' or 'false' expected", value);
    }
  }

  delimiter(): string {
    const value = this.value('DELIMITER');
    if (value === null) {
      return ',';
    }
    if (value.text.length !== 1) {
      throw wrong('delimiter is empty or contains more than 1 character', value);
    }
    if (value.text > '\u007f' || ['"', '\n', '\r'].includes(value.text)) {
      throw wrong('delimiter must be an ASCII character other than quotes and line ends', value);
    }
    return value.text;
  }

  /** Returns the encoding; `null` if not specified. */
  encoding(): string | null {
    const value = this.value('ENCODING');
    if (value !== null && !isEncoding(value.text)) {
      throw wrong('unknown encoding; try utf-8, utf-16le or windows-1252', value);
    }
    return value?.text ?? null;
  }

  partition(name: string, message: (text: string) => string): PartitionUnit | 'NONE' | null {
    const value = this.value(name);
    const unit = value?.text.toUpperCase();
    if (unit === undefined || unit === 'NONE') {
      return unit ?? null;
    }
    if (!isPartitionUnit(unit)) {
      throw wrong(message(value?.text ?? ''), value);
    }
    return unit;
  }
}

const ON_ERROR: ReadonlyMap<string, ImportSettings['onError']> = new Map([
  ['ABORT', 'abortLine'],
  ['SKIP_ROW', 'skipRow'],
  ['SKIP_COLUMN', 'skipCol'],
]);

export function importSettings(list: readonly OptionValue[]): ImportSettings {
  const options = new Options(list);
  const onError = options.value('ON ERROR');
  const mode = onError === null ? 'skipRow' : ON_ERROR.get(onError.text.toUpperCase());
  if (mode === undefined) {
    throw wrong("'ABORT', 'SKIP_ROW' or 'SKIP_COLUMN' expected", onError);
  }
  const { fileFormat, pattern } = readFormat(options.text('FORMAT'));
  const partitionBy = options.partition(
    'PARTITION BY',
    () => "'NONE', 'HOUR', 'DAY', 'WEEK', 'MONTH' or 'YEAR' expected",
  );
  const timestamp = options.text('TIMESTAMP');
  const isPartitioned = partitionBy !== null && partitionBy !== 'NONE';
  const withTimestamp = isPartitioned ? 'PARTITION BY' : 'FORMAT';
  return {
    header: options.boolean('HEADER'),
    delimiter: options.delimiter(),
    encoding: options.encoding(),
    fileFormat,
    timestamp: timestamp === '' ? null : timestamp,
    pattern,
    partitionBy,
    onError: mode,
    onErrorIsGiven: onError !== null,
    needsTimestamp: isPartitioned || pattern !== null ? options.name(withTimestamp) : null,
  };
}

/** Parses FORMAT: either the timestamp pattern, or CSV or PARQUET for the file format. */
function readFormat(text: string): Pick<ImportSettings, 'fileFormat' | 'pattern'> {
  switch (text.toLowerCase()) {
    case '':
      return { fileFormat: null, pattern: null };
    case 'csv':
      return { fileFormat: 'csv', pattern: null };
    case 'parquet':
      return { fileFormat: 'parquet', pattern: null };
    default:
      return { fileFormat: 'csv', pattern: text };
  }
}

const OF_PARQUET = [
  'COMPRESSION_CODEC',
  'COMPRESSION_LEVEL',
  'ROW_GROUP_SIZE',
  'DATA_PAGE_SIZE',
  'STATISTICS_ENABLED',
  'PARQUET_VERSION',
  'RAW_ARRAY_ENCODING',
  'BLOOM_FILTER_COLUMNS',
  'BLOOM_FILTER_FPP',
];
const OF_CSV = ['HEADER', 'DELIMITER'];
const WITHOUT_EFFECT = ['BLOOM_FILTER_COLUMNS', 'BLOOM_FILTER_FPP'];

/**
 * Parses the options of an export. `path` provides the position for errors that are not caused by
 * an option.
 */
export function exportSettings(list: readonly OptionValue[], path: Name): ExportSettings {
  const options = new Options(list);
  const format = exportFormat(options.value('FORMAT'), path);
  for (const name of format === 'csv' ? OF_PARQUET : OF_CSV) {
    const option = options.name(name);
    if (option !== null) {
      throw wrong(`${name} is not supported for ${format.toUpperCase()} files`, option);
    }
  }
  for (const name of ['STATISTICS_ENABLED', 'RAW_ARRAY_ENCODING']) {
    options.boolean(name);
  }
  const ignored = WITHOUT_EFFECT.filter((name) => options.name(name) !== null);
  return {
    format,
    header: options.boolean('HEADER') ?? true,
    delimiter: options.delimiter(),
    parquet: readParquet(options),
    partitionBy: options.partition(
      'PARTITION_BY',
      (text) => `invalid partition by option: ${text}`,
    ),
    partitionName: options.name('PARTITION_BY'),
    overwrite: options.boolean('OVERWRITE'),
    notice: ignored.length === 0 ? null : `options without effect: ${ignored.join(', ')}`,
  };
}

function exportFormat(value: Name | null, path: Name): ExportSettings['format'] {
  const format = value?.text.toLowerCase();
  if (format === undefined) {
    throw wrong("export format must be specified, supported formats: 'csv', 'parquet'", path);
  }
  if (format !== 'csv' && format !== 'parquet') {
    throw wrong("unsupported format, only 'csv' and 'parquet' are supported", value);
  }
  return format;
}

function readParquet(options: Options): ParquetOptions {
  let last: Name | null = null;
  const read = (name: string): string => {
    last = options.value(name.toUpperCase()) ?? last;
    return options.text(name.toUpperCase());
  };
  const parquet = parquetOptions(read);
  if (typeof parquet === 'string') {
    throw wrong(parquet, last);
  }
  return parquet;
}

function wrong(message: string, name: Name | null): DatabaseError {
  return new DatabaseError({ code: 'InvalidValue', message, ...name?.span });
}
