/** Parses the server's information about its tables: settings, sizes, partitions and ingestion. */
import { numberOf, recordsOf, textOf, type Answer } from '../api/cells.js';
import { kindOf, type TableKind } from '../model/schema.js';

export interface TableFacts {
  readonly name: string;
  readonly kind: TableKind;
  readonly rows: number | undefined;
  readonly bytes: number | undefined;
  readonly partitions: number | undefined;
  readonly partitionBy: string | undefined;
  readonly timestamp: string | undefined;
  /** Timestamp of the oldest row in ISO format, UTC. */
  readonly oldest: string | undefined;
  readonly newest: string | undefined;
  readonly isSuspended: boolean;
  readonly isWal: boolean;
  readonly isDeduplicated: boolean;
  /** Retention period, such as `2 HOUR`. */
  readonly ttl: string | undefined;
  readonly lastTransaction: number | undefined;
}

export interface Partition {
  readonly name: string;
  readonly rows: number;
  readonly bytes: number;
  readonly oldest: string | undefined;
  readonly newest: string | undefined;
  readonly isParquet: boolean;
  readonly isDetached: boolean;
}

export interface ColumnFacts {
  readonly name: string;
  readonly type: string;
  readonly isDesignated: boolean;
  readonly isKey: boolean;
  readonly isIndexed: boolean;
  /** Number of distinct values of a symbol column. */
  readonly symbols: number | undefined;
}

/** Combines the rows of `tables()` with the sizes from `table_storage()`. */
export function tableFacts(tables: Answer, storage: Answer): TableFacts[] {
  const sizes = storageByTable(storage);
  return recordsOf(tables)
    .map((cell) => ({
      name: String(cell('table_name')),
      kind: kindOf(cell('table_type')),
      rows: numberOf(cell('table_row_count')),
      bytes: sizes.get(String(cell('table_name')))?.bytes,
      partitions: sizes.get(String(cell('table_name')))?.partitions,
      partitionBy: textOf(cell('partitionBy')),
      timestamp: textOf(cell('designatedTimestamp')),
      oldest: textOf(cell('table_min_timestamp')),
      newest: textOf(cell('table_max_timestamp')),
      isSuspended: cell('table_suspended') === true,
      isWal: cell('walEnabled') === true,
      isDeduplicated: cell('dedup') === true,
      ttl:
        Number(cell('ttlValue')) > 0
          ? `${String(cell('ttlValue'))} ${String(cell('ttlUnit'))}`
          : undefined,
      lastTransaction: numberOf(cell('table_txn')),
    }))
    .sort((left, right) => left.name.localeCompare(right.name));
}

function storageByTable(answer: Answer): Map<string, { bytes: number; partitions: number }> {
  return new Map(
    recordsOf(answer).map((cell) => [
      String(cell('tableName')),
      { bytes: Number(cell('diskSize')), partitions: Number(cell('partitionCount')) },
    ]),
  );
}

/** Parses the rows of `table_partitions('t')`, newest first. */
export function partitionsOf(answer: Answer): Partition[] {
  return recordsOf(answer)
    .map((cell) => ({
      name: String(cell('name')),
      rows: Number(cell('numRows')),
      bytes: Number(cell('diskSize')),
      oldest: textOf(cell('minTimestamp')),
      newest: textOf(cell('maxTimestamp')),
      isParquet: cell('isParquet') === true,
      isDetached: cell('detached') === true,
    }))
    .reverse();
}

/** Parses the rows of `SHOW COLUMNS`. */
export function columnFacts(answer: Answer): ColumnFacts[] {
  return recordsOf(answer).map((cell) => ({
    name: String(cell('column')),
    type: String(cell('type')),
    isDesignated: cell('designated') === true,
    isKey: cell('upsertKey') === true,
    isIndexed: cell('indexed') === true,
    symbols: cell('type') === 'SYMBOL' ? numberOf(cell('symbolTableSize')) : undefined,
  }));
}

/** Sort order of the table list. */
export interface TableSort {
  readonly by: 'name' | 'state' | 'rows' | 'rate' | 'bytes' | 'newest';
  readonly isDown: boolean;
}

/**
 * Returns the tables whose names contain `search`, sorted. Equal values are sorted by name, and
 * unknown values come last.
 */
export function sorted(
  tables: readonly TableFacts[],
  search: string,
  { by, isDown }: TableSort,
  rateOf: (name: string) => number | undefined,
): TableFacts[] {
  const needle = search.trim().toLowerCase();
  const valueOf = (table: TableFacts): number | string | undefined => {
    switch (by) {
      case 'rate':
        return rateOf(table.name);
      case 'state':
        return table.isSuspended ? 0 : 1;
      default:
        return table[by];
    }
  };
  const order = (left: TableFacts, right: TableFacts): number => {
    const [one, other] = [valueOf(left), valueOf(right)];
    if (one === other || (one === undefined && other === undefined)) {
      return left.name.localeCompare(right.name);
    }
    if (one === undefined || other === undefined) {
      return one === undefined ? 1 : -1;
    }
    const isLess =
      typeof one === 'number' && typeof other === 'number'
        ? one < other
        : String(one).localeCompare(String(other)) < 0;
    return isLess === isDown ? 1 : -1;
  };
  return tables.filter(({ name }) => name.toLowerCase().includes(needle)).sort(order);
}
