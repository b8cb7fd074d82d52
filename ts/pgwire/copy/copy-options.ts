/** Options of COPY over a connection: their defaults, and what does not go together. */
import type { CopyStreamOptions } from '../../session/index.js';
import { ProtocolError } from '../protocol/protocol-error.js';

export interface CopyOptions {
  readonly format: 'text' | 'csv' | 'binary';
  readonly delimiter: string;
  /** The text of a null. */
  readonly nullText: string;
  /** `match`: the names must be those of the columns. */
  readonly header: boolean | 'match';
  readonly quote: string;
  readonly escape: string;
  /** Columns, or all for `*`. */
  readonly forceQuote: readonly string[];
  readonly forceNotNull: readonly string[];
  readonly forceNull: readonly string[];
}

const ALL = '*';

/** A name as SQL. */
export function quotedName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function formatOf({ format = 'text' }: CopyStreamOptions): CopyOptions['format'] {
  if (format === 'text' || format === 'csv' || format === 'binary') {
    return format;
  }
  const message = `COPY format "${format}" not recognized: expected text, csv or binary`;
  throw new ProtocolError('22023', message);
}

/** Options with the defaults of their format, or why they do not go together. */
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
  };
  const refuse = (condition: boolean, sqlState: string, message: string): void => {
    if (condition) {
      throw new ProtocolError(sqlState, message);
    }
  };
  refuse(draft.where === true, '0A000', 'COPY … FROM STDIN takes no WHERE');
  const encoding = draft.encoding ?? 'utf8';
  const isUtf8 = /^utf-?8$/i.test(encoding);
  refuse(!isUtf8, '0A000', `encoding "${encoding}": only UTF8 is supported`);
  const onlyCsv = ['quote', 'escape', 'forceQuote', 'forceNotNull', 'forceNull'] as const;
  for (const name of onlyCsv) {
    refuse(draft[name] !== undefined && !isCsv, '0A000', `COPY ${name} is for the CSV format only`);
  }
  const isBinary = format === 'binary';
  const ofText = draft.delimiter ?? draft.nullText;
  refuse(
    isBinary && ofText !== undefined,
    '42601',
    'DELIMITER and NULL have no place in BINARY mode',
  );
  refuse(isBinary && options.header !== false, '0A000', 'HEADER has no place in BINARY mode');
  for (const name of ['delimiter', 'quote', 'escape'] as const) {
    const isByte = /^[\0-\x7f]$/.test(options[name]) && !/[\r\n]/.test(options[name]);
    refuse(!isByte, '22023', `COPY ${name} must be a single one-byte character`);
  }
  refuse(/[\r\n]/.test(options.nullText), '22023', 'COPY null cannot hold a line end');
  const isLetter = !isCsv && /[\\.a-z0-9]/.test(options.delimiter);
  refuse(isLetter, '22023', `COPY delimiter cannot be "${options.delimiter}"`);
  refuse(isCsv && options.delimiter === quote, '22023', 'COPY delimiter and quote must differ');
  const isMixed = !isBinary && options.nullText.includes(options.delimiter);
  refuse(isMixed, '22023', 'COPY delimiter must not appear in the NULL specification');
  return options;
}

/** Whether a list of columns names one of them. */
export function names(list: readonly string[], column: string): boolean {
  return list.some((name) => name === ALL || name.toLowerCase() === column.toLowerCase());
}
