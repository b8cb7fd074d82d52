/** What a person decides about a file before it is imported, and what that means for `/imp`. */
import type { Proposal, ProposedColumn } from '../api/upload.js';

export interface ColumnChoice {
  /** As in the file, or `f0` where it has no header. */
  readonly source: string;
  readonly name: string;
  readonly type: string;
  readonly pattern: string;
}

export interface Choices {
  readonly table: string;
  readonly overwrite: boolean;
  /** Whose a new table is; empty: the importing user. */
  readonly owner: string;
  /** Name of the time column; empty for none. */
  readonly timestamp: string;
  readonly partitionBy: string;
  /** What becomes of values that do not fit. */
  readonly atomicity: Atomicity;
  readonly columns: readonly ColumnChoice[];
}

/** `widen`: the type becomes one that the value has. */
export type Atomicity = 'widen' | 'skipCol' | 'skipRow' | 'abort';

/** A table that is there already. */
export interface Existing {
  readonly timestamp: string | undefined;
  readonly partitionBy: string | undefined;
  readonly rows: number | undefined;
  readonly columns: ReadonlyMap<string, string>;
}

export const TYPES = [
  'BOOLEAN',
  'BYTE',
  'SHORT',
  'INT',
  'LONG',
  'FLOAT',
  'DOUBLE',
  'CHAR',
  'SYMBOL',
  'VARCHAR',
  'STRING',
  'DATE',
  'TIMESTAMP',
  'TIMESTAMP_NS',
  'UUID',
  'IPv4',
  'LONG256',
] as const;

const USUAL_PARTITIONS = 'DAY';
export const PARTITION_UNITS = ['NONE', 'HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR'] as const;

const TIME_TYPES: ReadonlySet<string> = new Set(['DATE', 'TIMESTAMP', 'TIMESTAMP_NS']);

export function takesPattern(type: string): boolean {
  return TIME_TYPES.has(type);
}

/** The choices a proposal begins with: the first time column orders the table, by day. */
export function firstChoices(proposal: Proposal): Choices {
  const columns = proposal.columns.map((column) => ({
    source: column.header ?? column.name,
    name: column.name,
    type: column.type,
    pattern: column.pattern ?? '',
  }));
  const time = proposal.columns.find((column) => canBegin(proposal, column))?.name ?? '';
  return {
    table: proposal.table,
    overwrite: false,
    owner: '',
    timestamp: time,
    partitionBy: time === '' ? 'NONE' : USUAL_PARTITIONS,
    atomicity: proposal.isTyped ? 'skipCol' : 'widen',
    columns,
  };
}

/** Another time column: rows that had none are in partitions from now on, without one in none. */
export function orderedBy(
  { timestamp: before, partitionBy }: Choices,
  timestamp: string,
): Pick<Choices, 'timestamp' | 'partitionBy'> {
  if (timestamp === '') {
    return { timestamp, partitionBy: 'NONE' };
  }
  return { timestamp, partitionBy: before === '' ? USUAL_PARTITIONS : partitionBy };
}

/** A typed file's own timestamps come first; its dates are dates. */
function canBegin(proposal: Proposal, column: ProposedColumn): boolean {
  return proposal.isTyped ? column.type.startsWith('TIMESTAMP') : canOrder(column);
}

/** Whether a column as proposed may be the time column. */
function canOrder(column: ProposedColumn): boolean {
  return TIME_TYPES.has(column.type) || column.couldBeTimestamp;
}

/** Names of the columns that may order the table, as they are chosen now. */
export function timeColumns(proposal: Proposal, choices: Choices): string[] {
  return choices.columns
    .filter((choice, index) => {
      const proposed = proposal.columns[index];
      const isAsProposed = choice.type === proposed?.type && canBegin(proposal, proposed);
      return choice.type.startsWith('TIMESTAMP') || isAsProposed;
    })
    .map(({ name }) => name);
}

/** A column's change of type; a time type gets the pattern that its first value has. */
export function retyped(choice: ColumnChoice, type: string, value: string): ColumnChoice {
  const pattern = takesPattern(type) ? choice.pattern || patternOf(value) : '';
  return { ...choice, type, pattern };
}

const DATE_FORMS: readonly (readonly [RegExp, string])[] = [
  [/^\d{4}-\d\d-\d\d/, 'yyyy-MM-dd'],
  [/^\d{4}\/\d\d\/\d\d/, 'yyyy/MM/dd'],
  [/^\d\d\/\d\d\/\d{4}/, 'dd/MM/yyyy'],
  [/^\d\d\.\d\d\.\d{4}/, 'dd.MM.yyyy'],
  [/^\d{8}/, 'yyyyMMdd'],
];
const FRACTIONS: Readonly<Record<number, string>> = { 3: 'SSS', 6: 'SSSUUU', 9: 'SSSUUUNNN' };

/** The pattern of a written time: `2026-01-01 10:30:00.123` is `yyyy-MM-dd HH:mm:ss.SSS`. */
export function patternOf(value: string): string {
  const form = DATE_FORMS.find(([shape]) => shape.test(value));
  if (!form) {
    return '';
  }
  const date = form[0].exec(value)?.[0] ?? '';
  const time = /^([T ]?)(\d\d:\d\d)?(:\d\d)?(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?$/.exec(
    value.slice(date.length),
  );
  if (!time) {
    return form[1];
  }
  const [, gap = '', minutes, seconds, fraction, zone] = time;
  const digits = Math.ceil((fraction?.length ?? 0) / 3) * 3;
  return [
    form[1],
    minutes === undefined ? '' : `${gap}HH:mm`,
    seconds === undefined ? '' : ':ss',
    digits === 0 ? '' : `.${FRACTIONS[digits] ?? ''}`,
    zone === undefined ? '' : 'Z',
  ].join('');
}

/**
 * The patterns that all of some texts have: one, two where day and month could be either, or none.
 */
export function timePatterns(values: readonly string[]): string[] {
  const texts = values.filter((value) => value !== '');
  const [pattern = '', ...others] = new Set(texts.map(patternOf));
  // Digits alone are rather numbers.
  if (pattern === '' || others.length > 0 || texts.some((text) => /^\d+$/.test(text))) {
    return [];
  }
  if (!pattern.startsWith('dd/MM/')) {
    return [pattern];
  }
  const american = pattern.replace('dd/MM/', 'MM/dd/');
  const isBelow13 = (at: number) => (text: string) => Number(text.slice(at, at + 2)) <= 12;
  return [
    ...(texts.every(isBelow13(3)) ? [pattern] : []),
    ...(texts.every(isBelow13(0)) ? [american] : []),
  ];
}

/** Whether rows are added to a table that is there, whose columns decide the types. */
export function isAppended(choices: Choices, existing: Existing | undefined): boolean {
  return existing !== undefined && !choices.overwrite;
}

/** The type a column will have; nothing when the table has no such column. */
export function targetType(
  column: ColumnChoice,
  choices: Choices,
  existing: Existing | undefined,
): string | undefined {
  return isAppended(choices, existing)
    ? existing?.columns.get(column.name.trim().toLowerCase())
    : column.type;
}

/** Why an import cannot begin yet; nothing when it can. */
export function problemOf(
  proposal: Proposal,
  choices: Choices,
  existing: Existing | undefined,
): string | undefined {
  if (choices.table.trim() === '') {
    return 'The table needs a name.';
  }
  const names = choices.columns.map(({ name }) => name.trim().toLowerCase());
  if (names.includes('')) {
    return 'A column has no name.';
  }
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    return `Two columns have the name ${twice}.`;
  }
  if (isAppended(choices, existing)) {
    const isKnown = choices.columns.some((column) => targetType(column, choices, existing));
    return isKnown ? undefined : 'The table has none of these columns.';
  }
  if (choices.partitionBy !== 'NONE' && choices.timestamp === '') {
    return 'Partitions need a time column.';
  }
  if (proposal.isTyped) {
    return undefined;
  }
  const unread = schemaOf(proposal, choices, existing).find(
    ({ type, pattern }) => type.startsWith('TIMESTAMP') && pattern === undefined,
  );
  return (
    unread &&
    `How are the times in ${unread.name} written? Give a pattern, such as ` + 'yyyy-MM-dd HH:mm:ss.'
  );
}

/** Parameters of `/imp`. */
export function parametersOf(
  proposal: Proposal,
  choices: Choices,
  existing: Existing | undefined,
): Record<string, string> {
  const isMade = !isAppended(choices, existing);
  const ordered = choices.timestamp !== '' && isMade;
  const owner = choices.owner.trim();
  return {
    name: choices.table.trim(),
    // JSON, which goes as it is, has none.
    ...(proposal.asIs && proposal.delimiter === ',' ? {} : { delimiter: proposal.delimiter }),
    forceHeader: String(proposal.asIs !== true || proposal.header),
    ...(choices.atomicity === 'widen' ? {} : { atomicity: choices.atomicity }),
    overwrite: String(choices.overwrite && existing !== undefined),
    ...(ordered ? { timestamp: choices.timestamp, partitionBy: choices.partitionBy } : {}),
    ...(isMade && owner !== '' ? { owner } : {}),
  };
}

/** Types and patterns the person set: the server finds the others as it proposed them. */
export function schemaOf(
  proposal: Proposal,
  choices: Choices,
  existing: Existing | undefined,
): { name: string; type: string; pattern?: string }[] {
  return choices.columns.flatMap((column, index) => {
    const { name, pattern } = column;
    const proposed = proposal.columns[index];
    const type = targetType(column, choices, existing) ?? column.type;
    const samePattern = pattern === (proposed?.pattern ?? '');
    const isFound = type === proposed?.type || isAppended(choices, existing);
    return isFound && samePattern ? [] : [{ name, type, ...(pattern === '' ? {} : { pattern }) }];
  });
}

/** The header line with the chosen names, in the file's own delimiter. */
export function headerLine(proposal: Proposal, choices: Choices): string {
  const names = choices.columns.map(({ name }) => `"${name.replaceAll('"', '""')}"`);
  return `${names.join(proposal.delimiter)}\n`;
}
