/** A statement's options for the text files that it reads. */
import type { CsvTextSpec, TextFormatRequest } from '../engine/types.js';
import { ImportError } from './import-error.js';
import type { DecimalMark } from './number-forms.js';
import { type ImportSchema, parseSchemaPart } from './schema-part.js';

export interface TextOptions {
  readonly isJson: boolean;
  /** File delimiter; `null` to detect it. */
  readonly delimiter: string | null;
  /** Whether the first line is a header; `null` to detect it from the first lines. */
  readonly header: boolean | null;
  readonly encoding: string | null;
  readonly decimal: DecimalMark | null;
  readonly schema: ImportSchema;
  readonly atomicity: CsvTextSpec['atomicity'];
  /** Key that identifies these options. */
  readonly key: string;
}

/** Parses a request's options. Throws an `ImportError` if one is invalid. */
export function readTextOptions({ format, options }: TextFormatRequest): TextOptions {
  const { delimiter, header, encoding, decimal, schema, ignore_errors: ignores } = options;
  const size = options['sample_size'];
  if (size !== undefined && size !== '-1') {
    throw new ImportError(`invalid sample_size '${size}': expected -1 for the whole file`);
  }
  return {
    isJson: format === 'json',
    delimiter: delimiter === undefined ? null : readDelimiter(delimiter),
    header: header === undefined ? null : readSwitch('header', header),
    encoding: encoding ?? null,
    decimal: decimal === undefined ? null : readMark(decimal),
    schema: parseSchemaPart(schema ?? '', true),
    atomicity:
      ignores !== undefined && readSwitch('ignore_errors', ignores) ? 'skipCol' : 'abortLine',
    key: JSON.stringify([format, Object.entries(options).sort()]),
  };
}

function readDelimiter(text: string): string {
  const mark = text === '\\t' ? '\t' : text;
  if (mark.length !== 1 || mark >= '\u0080' || ['"', '\n', '\r'].includes(mark)) {
    throw new ImportError(`invalid delimiter '${text}': expected one ASCII character`);
  }
  return mark;
}

function readSwitch(name: string, text: string): boolean {
  const word = text.toLowerCase();
  if (word !== 'true' && word !== 'false') {
    throw new ImportError(`invalid ${name} '${text}': expected true or false`);
  }
  return word === 'true';
}

function readMark(text: string): DecimalMark {
  if (text !== ',' && text !== '.') {
    throw new ImportError(`invalid decimal '${text}': expected , or .`);
  }
  return text;
}
