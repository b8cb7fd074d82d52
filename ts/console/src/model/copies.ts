/** Formats rows as text for pasting into other programs. Values are never truncated. */
import type { Column, Row, Value } from '../api/answer.js';
import { copyRows, copyText } from './format.js';
import { isNumeric } from './types.js';
import { texts } from '../texts.js';

export type CopyForm = 'tabs' | 'csv' | 'markdown' | 'json';

export const COPY_FORMS: Readonly<Record<CopyForm, string>> = {
  tabs: texts.gridTools.tabSeparated,
  csv: 'CSV',
  markdown: texts.gridTools.markdownTable,
  json: 'JSON',
};

export function rowsAs(form: CopyForm, columns: readonly Column[], rows: readonly Row[]): string {
  switch (form) {
    case 'tabs':
      return copyRows(columns, rows);
    case 'csv':
      return csv(columns, rows);
    case 'markdown':
      return markdown(columns, rows);
    case 'json':
      return json(columns, rows);
  }
}

/**
 * Formats rows as CSV according to RFC 4180. Null becomes an empty field, and an empty string
 * becomes `""`.
 */
function csv(columns: readonly Column[], rows: readonly Row[]): string {
  const field = (text: string): string =>
    /^$|[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const line = (row: Row): string =>
    row.map((value) => (value === null ? '' : field(copyText(value)))).join(',');
  return [columns.map(({ name }) => field(name)).join(','), ...rows.map(line), ''].join('\r\n');
}

function markdown(columns: readonly Column[], rows: readonly Row[]): string {
  const cell = (text: string): string =>
    text
      .replaceAll('\\', '\\\\')
      .replaceAll('|', '\\|')
      .replace(/[\r\n]+/g, '<br>');
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [
    line(columns.map(({ name }) => cell(name))),
    line(columns.map(({ type }) => (isNumeric(type) ? '---:' : '---'))),
    ...rows.map((row) => line(row.map((value) => cell(value === null ? 'null' : copyText(value))))),
    '',
  ].join('\n');
}

const EXACT_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/;

/**
 * Formats rows as JSON, with one object per row. Integers and decimals keep every digit that the
 * server sent.
 */
function json(columns: readonly Column[], rows: readonly Row[]): string {
  const member = (value: Value, { type }: Column): string =>
    isNumeric(type) && typeof value === 'string' && EXACT_NUMBER.test(value)
      ? value
      : JSON.stringify(value);
  const object = (row: Row): string =>
    columns
      .map(
        (column, index) => `${JSON.stringify(column.name)}: ${member(row[index] ?? null, column)}`,
      )
      .join(', ');
  return `[\n${rows.map((row) => `  {${object(row)}}`).join(',\n')}\n]\n`;
}
