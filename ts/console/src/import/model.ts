/** The user's choices for the import of a file, and the `/imp` request that follows from them. */
import type { Proposal, ProposedColumn, SchemaEntry, Trial } from '../api/upload.js';
import { grouped } from '../model/format.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface ColumnChoice {
  /** The column's name in the file, or `f0` and so on for a file without a header. */
  readonly source: string;
  readonly name: string;
  readonly type: string;
  readonly pattern: string;
  /** Strings that become null if they are not values of the type. */
  readonly nullTexts?: readonly string[] | undefined;
}

export interface Choices {
  readonly table: string;
  readonly overwrite: boolean;
  /** Owner of a new table; empty for the importing user. */
  readonly owner: string;
  /** Name of the time column; empty for none. */
  readonly timestamp: string;
  readonly partitionBy: string;
  /** Handling of values that do not fit the type. */
  readonly atomicity: Atomicity;
  readonly columns: readonly ColumnChoice[];
}

/** `widen` changes the column's type to a type that fits the value. */
export type Atomicity = 'widen' | 'skipCol' | 'skipRow' | 'abort';

/** The existing table that rows are added to. */
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

/** Initial choices for a proposal: the first time column orders the table, partitioned by day. */
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
 * Changes the time column. The first choice of a time column sets the default partitions; removing
 * the time column removes them.
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

/** In a file with declared types, only timestamps qualify by default; date columns remain dates. */
function canBegin(proposal: Proposal, column: ProposedColumn): boolean {
  return proposal.isTyped ? column.type.startsWith('TIMESTAMP') : canOrder(column);
}

/** Whether a proposed column may be the time column. */
function canOrder(column: ProposedColumn): boolean {
  return TIME_TYPES.has(column.type) || column.couldBeTimestamp;
}

/** Names of the columns that may order the table, with their current types. */
export function timeColumns(proposal: Proposal, choices: Choices): string[] {
  return choices.columns
    .filter((choice, index) => {
      const proposed = proposal.columns[index];
      const isAsProposed = choice.type === proposed?.type && canBegin(proposal, proposed);
      return choice.type.startsWith('TIMESTAMP') || isAsProposed;
    })
    .map(({ name }) => name);
}

/** Changes the type of a column. A time type gets the pattern that can read the most values. */
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

/** Display text of a pattern. For numbers since 1970, it spells out the unit. */
export function patternText(pattern: string): string {
  return UNITS[pattern] ?? pattern;
}

/** Result of a trial as text: `300 of 300 read`. */
export function trialText({ read, of }: Trial): string {
  return fill(texts.importForm.valuesRead, {
    read: grouped(String(read)),
    all: grouped(String(of)),
  });
}

/** Whether rows are added to an existing table, whose columns determine the types. */
export function isAppended(choices: Choices, existing: Existing | undefined): boolean {
  return existing !== undefined && !choices.overwrite;
}

/** Resulting type of a column; `undefined` if the table has no such column. */
export function targetType(
  column: ColumnChoice,
  choices: Choices,
  existing: Existing | undefined,
): string | undefined {
  return isAppended(choices, existing)
    ? existing?.columns.get(column.name.trim().toLowerCase())
    : column.type;
}

/** Why the import cannot start yet; `undefined` if it can. */
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

/** Parameters of `/imp`. */
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

/** Types and patterns that the user has set. The server infers all others, as it proposed. */
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

/** Entry of a column in the `schema` part. */
export function entryOf({ name, type, pattern, nullTexts }: ColumnChoice): SchemaEntry {
  return {
    name,
    type,
    ...(pattern === '' ? {} : { pattern }),
    ...(nullTexts === undefined ? {} : { nullTexts }),
  };
}

/** Header line with the chosen names, in the file's delimiter. */
export function headerLine(proposal: Proposal, choices: Choices): string {
  const names = choices.columns.map(({ name }) => `"${name.replaceAll('"', '""')}"`);
  return `${names.join(proposal.delimiter)}\n`;
}
