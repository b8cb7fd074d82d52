/** The user's settings for an import, and the `/imp` request that they produce. */
import type { Proposal, ProposedColumn, SchemaEntry, Trial } from '../api/upload.js';
import { grouped } from '../model/format.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface ColumnChoice {
  /** Name of the column in the file. Without a header, columns are named `f0`, `f1`, and so on. */
  readonly source: string;
  readonly name: string;
  readonly type: string;
  readonly pattern: string;
  /** Strings that the import replaces with null if they are not valid values of the type. */
  readonly nullTexts?: readonly string[] | undefined;
}

export interface Choices {
  readonly table: string;
  readonly overwrite: boolean;
  /** Owner of a new table, or empty if the importing user owns it. */
  readonly owner: string;
  /** Name of the time column, or empty if the table has none. */
  readonly timestamp: string;
  readonly partitionBy: string;
  /** How to handle values that do not fit the column's type. */
  readonly atomicity: Atomicity;
  readonly columns: readonly ColumnChoice[];
}

/**
 * How to handle values that do not fit the column's type. `widen` changes the type to one that
 * fits.
 */
export type Atomicity = 'widen' | 'skipCol' | 'skipRow' | 'abort';

/** An existing table to which the import can append rows. */
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

export function acceptsPattern(type: string): boolean {
  return TIME_TYPES.has(type);
}

/**
 * Returns the initial settings for a proposal. The first time column orders the table, which is
 * partitioned by day.
 */
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

/**
 * Changes the time column. If the table had no time column before, it gets the default partitions.
 * If it has none afterwards, it gets no partitions.
 */
export function orderedBy(
  { timestamp: before, partitionBy }: Choices,
  timestamp: string,
): Pick<Choices, 'timestamp' | 'partitionBy'> {
  if (timestamp === '') {
    return { timestamp, partitionBy: 'NONE' };
  }
  return { timestamp, partitionBy: before === '' ? USUAL_PARTITIONS : partitionBy };
}

/**
 * True if a column may be the default time column. If the file declares its types, only timestamp
 * columns qualify, and date columns remain dates.
 */
function canBegin(proposal: Proposal, column: ProposedColumn): boolean {
  return proposal.isTyped ? column.type.startsWith('TIMESTAMP') : canOrder(column);
}

/** True if a proposed column can be the time column. */
function canOrder(column: ProposedColumn): boolean {
  return TIME_TYPES.has(column.type) || column.couldBeTimestamp;
}

/** Returns the names of the columns that can be the time column, given their current types. */
export function timeColumns(proposal: Proposal, choices: Choices): string[] {
  return choices.columns
    .filter((choice, index) => {
      const proposed = proposal.columns[index];
      const isAsProposed = choice.type === proposed?.type && canBegin(proposal, proposed);
      return choice.type.startsWith('TIMESTAMP') || isAsProposed;
    })
    .map(({ name }) => name);
}

/**
 * Changes the type of a column. For a time type, the current pattern is kept, or else the pattern
 * that can read the most values is chosen.
 */
export function retyped(
  choice: ColumnChoice,
  type: string,
  proposed: ProposedColumn | undefined,
): ColumnChoice {
  const forms = (proposed?.forms ?? []).toSorted((one, other) => other.read - one.read);
  const patterns = [choice.pattern, proposed?.pattern, forms[0]?.pattern];
  const pattern = acceptsPattern(type) ? (patterns.find(Boolean) ?? '') : '';
  return { ...choice, type, pattern, nullTexts: undefined };
}

const UNITS: Readonly<Record<string, string>> = {
  epoch_s: texts.importForm.secondsSince1970,
  epoch_ms: texts.importForm.millisecondsSince1970,
  epoch_us: texts.importForm.microsecondsSince1970,
  epoch_ns: texts.importForm.nanosecondsSince1970,
};

/** Returns the display text of a pattern. For numbers since 1970, the text names the unit. */
export function patternText(pattern: string): string {
  return UNITS[pattern] ?? pattern;
}

/** Formats the result of a trial: `300 of 300 read`. */
export function trialText({ read, of }: Trial): string {
  return fill(texts.importForm.valuesRead, {
    read: grouped(String(read)),
    all: grouped(String(of)),
  });
}

/** True if rows are appended to an existing table. Its columns then determine the types. */
export function isAppended(choices: Choices, existing: Existing | undefined): boolean {
  return existing !== undefined && !choices.overwrite;
}

/**
 * Returns the type of a column in the target table, or `undefined` if the table has no such column.
 */
export function targetType(
  column: ColumnChoice,
  choices: Choices,
  existing: Existing | undefined,
): string | undefined {
  return isAppended(choices, existing)
    ? existing?.columns.get(column.name.trim().toLowerCase())
    : column.type;
}

/** Returns the reason that the import cannot start yet, or `undefined` if it can. */
export function problemOf(
  proposal: Proposal,
  choices: Choices,
  existing: Existing | undefined,
): string | undefined {
  if (choices.table.trim() === '') {
    return texts.importForm.enterTableName;
  }
  const names = choices.columns.map(({ name }) => name.trim().toLowerCase());
  if (names.includes('')) {
    return texts.importForm.namelessColumn;
  }
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    return fill(texts.importForm.twoColumnsNamed, { name: twice });
  }
  if (isAppended(choices, existing)) {
    const isKnown = choices.columns.some((column) => targetType(column, choices, existing));
    return isKnown ? undefined : texts.importForm.noCommonColumn;
  }
  if (choices.partitionBy !== 'NONE' && choices.timestamp === '') {
    return texts.importForm.partitionsNeedTimeColumn;
  }
  if (proposal.isTyped) {
    return undefined;
  }
  const unread = schemaOf(proposal, choices, existing).find(
    ({ type, pattern }) => type.startsWith('TIMESTAMP') && pattern === undefined,
  );
  return unread && fill(texts.importForm.enterPattern, { name: unread.name });
}

/** Returns the query parameters for `/imp`. */
export function parametersOf(
  proposal: Proposal,
  choices: Choices,
  existing: Existing | undefined,
): Record<string, string> {
  const isNewTable = !isAppended(choices, existing);
  const ordered = choices.timestamp !== '' && isNewTable;
  const owner = choices.owner.trim();
  return {
    name: choices.table.trim(),
    // JSON is sent unchanged and has no delimiter.
    ...(proposal.asIs && proposal.delimiter === ',' ? {} : { delimiter: proposal.delimiter }),
    forceHeader: String(proposal.asIs !== true || proposal.header),
    ...(choices.atomicity === 'widen' ? {} : { atomicity: choices.atomicity }),
    overwrite: String(choices.overwrite && existing !== undefined),
    ...(ordered ? { timestamp: choices.timestamp, partitionBy: choices.partitionBy } : {}),
    ...(isNewTable && owner !== '' ? { owner } : {}),
  };
}

/**
 * Returns the types and patterns that the request must set. The server detects the others, as it
 * proposed.
 */
export function schemaOf(
  proposal: Proposal,
  choices: Choices,
  existing: Existing | undefined,
): SchemaEntry[] {
  return choices.columns.flatMap((column, index) => {
    const { name, pattern, nullTexts } = column;
    const proposed = proposal.columns[index];
    const type = targetType(column, choices, existing) ?? column.type;
    const samePattern = pattern === (proposed?.pattern ?? '');
    const isProposed = type === proposed?.type && proposed.isSet !== true;
    const isFound = (isProposed || isAppended(choices, existing)) && nullTexts === undefined;
    return isFound && samePattern ? [] : [entryOf({ ...column, name, type })];
  });
}

/** Returns the entry of a column for the `schema` field of the request. */
export function entryOf({ name, type, pattern, nullTexts }: ColumnChoice): SchemaEntry {
  return {
    name,
    type,
    ...(pattern === '' ? {} : { pattern }),
    ...(nullTexts === undefined ? {} : { nullTexts }),
  };
}

/** Returns a header line with the chosen names, separated by the file's delimiter. */
export function headerLine(proposal: Proposal, choices: Choices): string {
  const names = choices.columns.map(({ name }) => `"${name.replaceAll('"', '""')}"`);
  return `${names.join(proposal.delimiter)}\n`;
}
