/** The two response formats of an import: JSON, and the 115-column text table. */
import type { TableMetadata } from '../engine/types.js';
import { sizeOfType } from './column-types.js';

/** The result of an import. */
export interface ImportReport {
  readonly table: TableMetadata;
  readonly rowsImported: number;
  readonly rowsRejected: number;
  readonly header: boolean;
  readonly warnings: readonly string[];
  /** Number of failed conversions, by lower-case column name. */
  readonly errors: ReadonlyMap<string, number>;
  /** The first bad lines, such as `line 4, field 3: bad syntax`. */
  readonly badLines: readonly string[];
}

/**
 * Renders the report as JSON. It lists the table's columns rather than the input's. `withBadLines`
 * adds the first bad lines.
 */
export function renderJson(report: ImportReport, withBadLines: boolean): string {
  const { table } = report;
  return JSON.stringify({
    status: 'OK',
    location: table.name,
    rowsRejected: report.rowsRejected,
    rowsImported: report.rowsImported,
    header: report.header,
    partitionBy: table.partitionBy,
    ...(table.timestamp === null ? {} : { timestamp: table.timestamp }),
    ...(report.warnings.length === 0 ? {} : { warnings: report.warnings }),
    columns: table.columns.map(({ name, type }) => ({
      name,
      type,
      size: sizeOfType(type),
      errors: errorsOf(report, name),
    })),
    ...(withBadLines ? { badLines: report.badLines } : {}),
  });
}

function errorsOf(report: ImportReport, column: string): number {
  return report.errors.get(column.toLowerCase()) ?? 0;
}

const RULE = `+${'-'.repeat(113)}+`;

/** Column widths of the text table; all columns are right-aligned. */
const WIDTHS = { label: 15, value: 50, type: 25, errors: 12 } as const;

function pad(text: string | number, width: number): string {
  return String(text).padStart(width);
}

function headLine(label: string, value: string | number, cells: string): string {
  return `|${pad(label, WIDTHS.label)}  |${pad(value, WIDTHS.value)}  |${cells}`;
}

const EMPTY_CELLS = '                 |         |              |';

export function renderTabular(report: ImportReport): string {
  const { table } = report;
  const handled = report.rowsImported + report.rowsRejected;
  const columns = table.columns.map(
    ({ name, type }, index) =>
      `|${pad(index, WIDTHS.label)}  |${pad(name, WIDTHS.value)}  ` +
      `|${pad(type, WIDTHS.type)}  |${pad(errorsOf(report, name), WIDTHS.errors)}  |`,
  );
  const lines = [
    RULE,
    headLine('Location:', table.name, '        Pattern  | Locale  |      Errors  |'),
    headLine('Partition by', table.partitionBy, EMPTY_CELLS),
    headLine('Timestamp', table.timestamp ?? 'NONE', EMPTY_CELLS),
    RULE,
    headLine('Rows handled', handled, EMPTY_CELLS),
    headLine('Rows imported', report.rowsImported, EMPTY_CELLS),
    RULE,
    ...columns,
    RULE,
  ];
  const warnings = report.warnings.map((warning) => `Warning: ${warning}`);
  return `${[...lines, ...warnings].join('\r\n')}\r\n`;
}
