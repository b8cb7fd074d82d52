/** Table and column names from input and requests. */
import { ImportError } from './import-error.js';
import { MAX_NAME_BYTES } from './limits.js';

const ILLEGAL_IN_COLUMN = /[\s?.,:"\\/'()+\-*~%\u0000-\u001f\u007f\ufeff]+(.?)/gu;

const ILLEGAL_IN_TABLE = /[?,'"\\/:()+*%~\u0000-\u001f\u007f\ufeff]/gu;

/**
 * Derives a column name from a header cell. Illegal characters are removed, and the letter that
 * follows each becomes upper case (`a b` → `aB`). A leading digit is prefixed with `_`, and an
 * empty name becomes `f<index>`.
 */
function cleanColumnName(text: string, index: number): string {
  const name = text.replaceAll(ILLEGAL_IN_COLUMN, (_, next: string) => next.toUpperCase());
  if (name === '') {
    return `f${index}`;
  }
  return /^\d/.test(name) ? `_${name}` : name;
}

/**
 * Returns the names of all columns. Equal names, or names that differ only in case, are an error.
 */
export function columnNames(header: readonly string[]): string[] {
  const used = new Set<string>();
  return header.map((text, index) => {
    const name = cleanColumnName(text, index);
    const key = name.toLowerCase();
    if (used.has(key)) {
      throw new ImportError(`duplicate column name found [no=${index},name=${name}]`);
    }
    used.add(key);
    return name;
  });
}

/** Returns a valid name unchanged, and any other name without its invalid characters. */
export function cleanTableName(text: string): string {
  const name = text
    .replaceAll(ILLEGAL_IN_TABLE, '')
    .replaceAll(/\.{2,}/g, '')
    .replaceAll(/^[.\s]+|[.\s]+$/g, '');
  if (name === '' || Buffer.byteLength(name) > MAX_NAME_BYTES) {
    throw new ImportError(`invalid table name [table=${text}]`);
  }
  return name;
}
