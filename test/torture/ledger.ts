/**
 * Writes that were sent and acknowledged. Each row carries its client, batch and index, and a
 * checksum of these; a batch is one transaction. After any restart, acknowledged batches must exist
 * completely and exactly once; other batches must exist completely or not at all.
 */
import { crc32 } from 'node:zlib';

import { type Random } from './harness.js';

/** Columns of every table, in value order. */
export const COLUMNS = 'ts, client, batch, idx, rows, crc, gen, sym, note';

export function tableDefinition(table: string, partitionBy: string): string {
  return (
    `CREATE TABLE ${table} (ts TIMESTAMP, client INT, batch LONG, idx INT, rows INT, ` +
    `crc LONG, gen INT, sym SYMBOL, note VARCHAR) TIMESTAMP(ts) PARTITION BY ${partitionBy}`
  );
}

/** A row as strings; `null` stands for an empty field. */
type RowTexts = readonly (string | null)[];

/** The rows of one transaction. */
export class Batch {
  readonly table: string;
  readonly client: number;
  readonly number: number;
  readonly rows: readonly RowTexts[];
  readonly crcSum: bigint;
  acknowledged = false;
  /**
   * Possible values of `gen`: the value of the last acknowledged update, and the values of later
   * updates.
   */
  generations: number[] = [0];

  constructor(table: string, client: number, number: number, random: Random, maximum: number) {
    this.table = table;
    this.client = client;
    this.number = number;
    const count = random.between(1, maximum);
    let sum = 0n;
    this.rows = Array.from({ length: count }, (_, index) => {
      const note = random.next() < 0.2 ? null : `${'n'.repeat(random.between(0, 30))}${index}`;
      const symbol = random.next() < 0.1 ? null : `symbol ${random.between(0, 20 + number / 10)}`;
      const crc = crc32(`${client}/${number}/${index}/${note ?? ''}/${symbol ?? ''}`);
      sum += BigInt(crc);
      const values = [client, number, index, count, crc, 0].map(String);
      return [timestamp(number, random), ...values, symbol, note];
    });
    this.crcSum = sum;
  }

  /** Returns the `VALUES` clause of an INSERT. */
  values(): string {
    const literal = (text: string | null): string => (text === null ? 'null' : `'${text}'`);
    const row = ([ts, ...rest]: RowTexts): string => {
      const [numbers, texts] = [rest.slice(0, 6), rest.slice(6)];
      return `(${[literal(ts ?? null), ...numbers, ...texts.map(literal)].join(', ')})`;
    };
    return this.rows.map(row).join(', ');
  }

  csv(): string {
    const lines = this.rows.map((row) => row.map((text) => text ?? '').join(','));
    return `${COLUMNS.replaceAll(' ', '')}\n${lines.join('\n')}\n`;
  }
}

/** Returns timestamps that mostly ascend; a third of the rows are up to two days late. */
function timestamp(batch: number, random: Random): string {
  const late = random.next() < 0.33 ? random.between(0, 172_800_000) : 0;
  const ms = Date.UTC(2024, 0, 5) + batch * 60_000 + random.between(0, 59_999) - late;
  return new Date(ms).toISOString().replace('Z', '000Z');
}

/** All batches of a run. */
export class Ledger {
  readonly #batches = new Map<string, Batch>();

  add(batch: Batch): void {
    this.#batches.set(key(batch.table, batch.client, batch.number), batch);
  }

  /** Removes the batches of a re-created table. */
  clear(table: string): void {
    for (const [name, batch] of this.#batches) {
      if (batch.table === table) {
        this.#batches.delete(name);
      }
    }
  }

  /** Returns one of a client's acknowledged batches at random, for an update. */
  some(table: string, client: number, random: Random): Batch | undefined {
    const mine = [...this.#batches.values()].filter(
      (batch) => batch.acknowledged && batch.table === table && batch.client === client,
    );
    return mine.length === 0 ? undefined : random.pick(mine);
  }

  get size(): number {
    return this.#batches.size;
  }

  /**
   * Compares a table with the acknowledged batches; `found` is the result of `summaryQuery`.
   * In-flight batches that exist count as acknowledged from now on; missing in-flight batches count
   * as never sent.
   */
  settle(table: string, found: readonly (readonly unknown[])[]): string | undefined {
    const seen = new Set<string>();
    for (const row of found) {
      const name = key(table, Number(row[0]), Number(row[1]));
      const batch = this.#batches.get(name);
      const problem =
        batch === undefined ? 'it was never sent' : (differs(batch, row) ?? repeated(seen, name));
      if (batch === undefined || problem !== undefined) {
        return `batch ${name}: ${problem ?? ''}: ${JSON.stringify(row)}`;
      }
      seen.add(name);
      batch.acknowledged = true;
      batch.generations = [Number(row[6])];
    }
    const problem = this.#missing(table, seen);
    for (const [name, batch] of this.#batches) {
      if (batch.table === table && !seen.has(name) && !batch.acknowledged) {
        this.#batches.delete(name);
      }
    }
    return problem;
  }

  /** Like `settle`, but only for acknowledged batches: in-flight batches stay undecided. */
  lost(table: string, found: readonly (readonly unknown[])[]): string | undefined {
    const seen = new Set<string>();
    for (const row of found) {
      const name = key(table, Number(row[0]), Number(row[1]));
      const batch = this.#batches.get(name);
      const problem = batch?.acknowledged === true ? differs(batch, row) : undefined;
      if (problem !== undefined) {
        return `batch ${name}: ${problem}: ${JSON.stringify(row)}`;
      }
      seen.add(name);
    }
    return this.#missing(table, seen);
  }

  #missing(table: string, seen: ReadonlySet<string>): string | undefined {
    for (const [name, batch] of this.#batches) {
      if (batch.table === table && batch.acknowledged && !seen.has(name)) {
        return `batch ${name} was acknowledged and is missing`;
      }
    }
    return undefined;
  }
}

export function summaryQuery(table: string): string {
  return (
    'select client, batch, count() c, min(idx) lo, max(idx) hi, sum(crc) s, min(gen) g, ' +
    `max(gen) h from ${table} group by client, batch`
  );
}

function differs(batch: Batch, row: readonly unknown[]): string | undefined {
  const [, , count, low, high, sum, minimum, greatest] = row.map(Number);
  const rows = batch.rows.length;
  if (count !== rows || low !== 0 || high !== rows - 1) {
    return `${rows} rows were sent`;
  }
  if (sum !== Number(batch.crcSum)) {
    return `the checksums add up to ${batch.crcSum}`;
  }
  if (minimum !== greatest || !batch.generations.includes(minimum ?? -1)) {
    return `generations ${batch.generations.join(', ')} are possible`;
  }
  return undefined;
}

function repeated(seen: ReadonlySet<string>, name: string): string | undefined {
  return seen.has(name) ? 'it exists twice' : undefined;
}

function key(table: string, client: number, batch: number): string {
  return `${table}/${client}/${batch}`;
}
