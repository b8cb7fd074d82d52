/** What the server tells of its tables: settings, sizes, partitions, what is being written. */
import { numberOf, reader, textOf, type Answer } from '../api/cells.js';
import { kindOf, type TableKind } from '../schema/model.js';

export interface TableFacts {
  readonly name: string;
  readonly kind: TableKind;
  readonly rows: number | undefined;
  readonly bytes: number | undefined;
  readonly partitions: number | undefined;
  readonly partitionBy: string | undefined;
  readonly timestamp: string | undefined;
  /** ISO, UTC. */
  readonly oldest: string | undefined;
  readonly newest: string | undefined;
  readonly isSuspended: boolean;
  readonly isWal: boolean;
  readonly isDeduplicated: boolean;
  /** How long rows live, as in `TTL 2 HOUR`. */
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
  /** Distinct values of a symbol. */
  readonly symbols: number | undefined;
}

/** Rows of `tables()` with sizes from those of `table_storage()`. */
export function tableFacts(tables: Answer, storage: Answer): TableFacts[] {
  const sizes = storageByTable(storage);
  const name = reader(tables, 'table_name');
  const rows = reader(tables, 'table_row_count');
  const partitionBy = reader(tables, 'partitionBy');
  const timestamp = reader(tables, 'designatedTimestamp');
  const oldest = reader(tables, 'table_min_timestamp');
  const newest = reader(tables, 'table_max_timestamp');
  const suspended = reader(tables, 'table_suspended');
  const wal = reader(tables, 'walEnabled');
  const dedup = reader(tables, 'dedup');
  const ttlValue = reader(tables, 'ttlValue');
  const ttlUnit = reader(tables, 'ttlUnit');
  const transaction = reader(tables, 'table_txn');
  const type = reader(tables, 'table_type');
  return tables.rows
    .map((row) => ({
      name: String(name(row)),
      kind: kindOf(type(row)),
      rows: numberOf(rows(row)),
      bytes: sizes.get(String(name(row)))?.bytes,
      partitions: sizes.get(String(name(row)))?.partitions,
      partitionBy: textOf(partitionBy(row)),
      timestamp: textOf(timestamp(row)),
      oldest: textOf(oldest(row)),
      newest: textOf(newest(row)),
      isSuspended: suspended(row) === true,
      isWal: wal(row) === true,
      isDeduplicated: dedup(row) === true,
      ttl:
        Number(ttlValue(row)) > 0 ? `${String(ttlValue(row))} ${String(ttlUnit(row))}` : undefined,
      lastTransaction: numberOf(transaction(row)),
    }))
    .sort((left, right) => left.name.localeCompare(right.name));
}

function storageByTable(answer: Answer): Map<string, { bytes: number; partitions: number }> {
  const name = reader(answer, 'tableName');
  const bytes = reader(answer, 'diskSize');
  const count = reader(answer, 'partitionCount');
  return new Map(
    answer.rows.map((row) => [
      String(name(row)),
      { bytes: Number(bytes(row)), partitions: Number(count(row)) },
    ]),
  );
}

/** Rows of `table_partitions('t')`, the newest first. */
export function partitionsOf(answer: Answer): Partition[] {
  const name = reader(answer, 'name');
  const rows = reader(answer, 'numRows');
  const bytes = reader(answer, 'diskSize');
  const oldest = reader(answer, 'minTimestamp');
  const newest = reader(answer, 'maxTimestamp');
  const parquet = reader(answer, 'isParquet');
  const detached = reader(answer, 'detached');
  return answer.rows
    .map((row) => ({
      name: String(name(row)),
      rows: Number(rows(row)),
      bytes: Number(bytes(row)),
      oldest: textOf(oldest(row)),
      newest: textOf(newest(row)),
      isParquet: parquet(row) === true,
      isDetached: detached(row) === true,
    }))
    .reverse();
}

/** Rows of `SHOW COLUMNS`. */
export function columnFacts(answer: Answer): ColumnFacts[] {
  const name = reader(answer, 'column');
  const type = reader(answer, 'type');
  const designated = reader(answer, 'designated');
  const key = reader(answer, 'upsertKey');
  const indexed = reader(answer, 'indexed');
  const symbols = reader(answer, 'symbolTableSize');
  return answer.rows.map((row) => ({
    name: String(name(row)),
    type: String(type(row)),
    isDesignated: designated(row) === true,
    isKey: key(row) === true,
    isIndexed: indexed(row) === true,
    symbols: type(row) === 'SYMBOL' ? numberOf(symbols(row)) : undefined,
  }));
}

/** 1536 becomes `1.5 KiB`. */
export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const scaled = bytes / 1024 ** step;
  const places = step === 0 || scaled >= 100 ? 0 : 1;
  return `${scaled.toFixed(places)} ${units[step] ?? ''}`;
}

/** An instant to the second, without the letters of ISO. */
export function instantText(iso: string | undefined): string {
  return iso === undefined ? '–' : iso.slice(0, 19).replace('T', ' ');
}

/** In which order tables are listed. */
export interface TableSort {
  readonly by: 'name' | 'state' | 'rows' | 'rate' | 'bytes' | 'newest';
  readonly isDown: boolean;
}

/** Those whose names have a text, in order; of the same, by name. What is not known goes last. */
export function sorted(
  tables: readonly TableFacts[],
  wanted: string,
  { by, isDown }: TableSort,
  rateOf: (name: string) => number | undefined,
): TableFacts[] {
  const words = wanted.trim().toLowerCase();
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
  return tables.filter(({ name }) => name.toLowerCase().includes(words)).sort(order);
}
