/** Options for COPY over a connection: their defaults and invalid combinations. */
import type { CopyStreamOptions } from '../../session/index.js';
import { ProtocolError } from '../protocol/protocol-error.js';

export interface CopyOptions {
  readonly format: 'text' | 'csv' | 'binary';
  readonly delimiter: string;
  /** The string that represents null. */
  readonly nullText: string;
  /** Whether the data starts with a header; with `match`, its names must match the columns. */
  readonly header: boolean | 'match';
  readonly quote: string;
  readonly escape: string;
  /** Column names; `*` means all columns. */
  readonly forceQuote: readonly string[];
  readonly forceNotNull: readonly string[];
  readonly forceNull: readonly string[];
  /** Encoding of the client's text, as a `TextDecoder` label. */
  readonly encoding: string;
}

const ALL = '*';

/** Encodings whose PostgreSQL name differs from the web encoding label. */
const ENCODINGS: Readonly<Record<string, string>> = {
  utf8: 'utf-8',
  unicode: 'utf-8',
  sqlascii: 'utf-8',
  latin1: 'windows-1252',
  latin2: 'iso-8859-2',
  latin3: 'iso-8859-3',
  latin4: 'iso-8859-4',
  latin5: 'windows-1254',
  latin6: 'iso-8859-10',
  latin7: 'iso-8859-13',
  latin8: 'iso-8859-14',
  latin9: 'iso-8859-15',
  latin10: 'iso-8859-16',
  win: 'windows-1251',
  koi8: 'koi8-r',
  koi8r: 'koi8-r',
  koi8u: 'koi8-u',
  shiftjis: 'shift_jis',
  sjis: 'shift_jis',
  eucjp: 'euc-jp',
  euckr: 'euc-kr',
  euccn: 'gbk',
  uhc: 'euc-kr',
};

/** The web encoding label for an encoding in COPY. */
function encodingOf(name: string): string {
  const plain = name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  const known = ENCODINGS[plain] ?? plain.replace(/^win(?=\d)/, 'windows-');
  for (const label of [known, name]) {
    try {
      return new TextDecoder(label).encoding;
    } catch {
      // Tries the other label.
    }
  }
  throw new ProtocolError('22023', `argument to option "encoding" must be a valid encoding name`);
}

function formatOf({ format = 'text' }: CopyStreamOptions): CopyOptions['format'] {
  if (format === 'text' || format === 'csv' || format === 'binary') {
    return format;
  }
  const message = `COPY format "${format}" not recognized: expected text, csv or binary`;
  throw new ProtocolError('22023', message);
}

/** Returns the options, with the defaults of their format; throws for an invalid combination. */
export function copyOptions(draft: CopyStreamOptions): CopyOptions {
  const format = formatOf(draft);
  const isCsv = format === 'csv';
  const quote = draft.quote ?? '"';
  const options: CopyOptions = {
    format,
    delimiter: draft.delimiter ?? (isCsv ? ',' : '\t'),
    nullText: draft.nullText ?? (isCsv ? '' : '\\N'),
    header: draft.header ?? false,
    quote,
    escape: draft.escape ?? quote,
    forceQuote: draft.forceQuote ?? [],
    forceNotNull: draft.forceNotNull ?? [],
    forceNull: draft.forceNull ?? [],
    encoding: encodingOf(draft.encoding ?? 'utf8'),
  };
  const refuse = (condition: boolean, sqlState: string, message: string): void => {
    if (condition) {
      throw new ProtocolError(sqlState, message);
    }
  };
  refuse(draft.where === true, '0A000', 'COPY … FROM STDIN does not support WHERE');
  const onlyCsv = ['quote', 'escape', 'forceQuote', 'forceNotNull', 'forceNull'] as const;
  for (const name of onlyCsv) {
    refuse(draft[name] !== undefined && !isCsv, '0A000', `COPY ${name} requires the CSV format`);
  }
  const isBinary = format === 'binary';
  const ofText = draft.delimiter ?? draft.nullText;
  refuse(
    isBinary && ofText !== undefined,
    '42601',
    'cannot specify DELIMITER or NULL in BINARY mode',
  );
  refuse(isBinary && options.header !== false, '0A000', 'cannot specify HEADER in BINARY mode');
  for (const name of ['delimiter', 'quote', 'escape'] as const) {
    const isByte = /^[\0-\x7f]$/.test(options[name]) && !/[\r\n]/.test(options[name]);
    refuse(!isByte, '22023', `COPY ${name} must be a single one-byte character`);
  }
  refuse(/[\r\n]/.test(options.nullText), '22023', 'COPY null cannot contain a line end');
  const isLetter = !isCsv && /[\\.a-z0-9]/.test(options.delimiter);
  refuse(isLetter, '22023', `COPY delimiter cannot be "${options.delimiter}"`);
  refuse(isCsv && options.delimiter === quote, '22023', 'COPY delimiter and quote must differ');
  const isMixed = !isBinary && options.nullText.includes(options.delimiter);
  refuse(isMixed, '22023', 'COPY delimiter must not appear in the NULL specification');
  return options;
}

/** Whether a column list contains a column. */
export function names(list: readonly string[], column: string): boolean {
  return list.some((name) => name === ALL || name.toLowerCase() === column.toLowerCase());
}
