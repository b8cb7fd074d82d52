/** Runs the records of one file against a Tidemark server and judges each result. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { type Dialect, rewritten, whySkipped } from './dialects.js';
import { type QueryRecord, Reader, type StatementRecord, type TestRecord } from './records.js';
import { classOf, DEPENDS, FAILED_BLOCK, Tally, Unsettled } from './tally.js';
import { mismatch, type WireCell } from './values.js';
import type { FreshServer, Outcome } from './wire.js';

/** Statements whose failure leaves the state of all tables unchanged. */
const READS =
  /^\s*(?:SELECT|WITH|VALUES|FROM|EXPLAIN|SHOW|DESCRIBE|\(|CREATE\s+(?:UNIQUE\s+)?INDEX)/i;
/** Matches a CTE that changes rows. */
const WRITES_BESIDES = /^\s*WITH\b.*\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|MERGE\s+INTO)\b/is;
/** Maximum depth of nested includes. */
const MAX_INCLUDES = 8;

interface LabelledAnswer {
  readonly rows: readonly (readonly WireCell[])[];
}

export class FileRun {
  readonly tally = new Tally();
  readonly #server: FreshServer;
  readonly #dialect: Dialect;
  /** Base folder for `include` paths, in addition to the file's own folder. */
  readonly #folder: string;
  readonly #unsettled = new Unsettled();
  readonly #labels = new Map<string, LabelledAnswer>();

  constructor(server: FreshServer, dialect: Dialect, folder: string) {
    this.#server = server;
    this.#dialect = dialect;
    this.#folder = folder;
  }

  async run(file: string): Promise<Tally> {
    await this.#server.empty();
    await this.#runFile(file, 0);
    return this.tally;
  }

  /** Returns whether to continue with the including file. */
  async #runFile(file: string, depth: number): Promise<boolean> {
    const text = readFileSync(file, 'utf8');
    for (const record of new Reader(file, text, this.#dialect).records()) {
      if (!(await this.#record(record, file, depth))) {
        return false;
      }
    }
    return true;
  }

  async #record(record: TestRecord, file: string, depth: number): Promise<boolean> {
    switch (record.kind) {
      case 'skip':
        this.tally.note('skipped', record.at, '', record.reason);
        return !record.endsFile;
      case 'include': {
        const path = [dirname(file), this.#folder, join(this.#folder, '../..')]
          .map((folder) => join(folder, record.path))
          .find(existsSync);
        if (path === undefined || depth === MAX_INCLUDES) {
          this.tally.note('skipped', record.at, record.path, 'a file to include is missing');
          return true;
        }
        return await this.#runFile(path, depth + 1);
      }
      case 'statement':
      case 'query':
        await this.#query(record);
        return true;
    }
  }

  async #query(record: StatementRecord | QueryRecord): Promise<void> {
    const reason = whySkipped(record.sql, this.#dialect);
    if (reason !== undefined) {
      this.#unsettle(record.sql);
      this.tally.note('skipped', record.at, record.sql, reason);
      return;
    }
    const sql = rewritten(record.sql, this.#dialect);
    const outcome = await this.#server.connections.run(sql, record.connection);
    if (outcome.kind === 'error' && outcome.isInternal) {
      this.tally.note('internal', record.at, sql, `${outcome.code} ${outcome.message}`);
      this.#unsettle(sql);
      await this.#server.revive();
      return;
    }
    if (record.kind === 'statement') {
      this.#judgeStatement(record, sql, outcome);
    } else {
      this.#judgeQuery(record, sql, outcome);
    }
  }

  #unsettle(sql: string): void {
    if (!READS.test(sql) || WRITES_BESIDES.test(sql)) {
      this.#unsettled.add(sql);
    }
  }

  #judgeStatement(record: StatementRecord, sql: string, outcome: Outcome): void {
    const { at, expects, count } = record;
    if (outcome.kind === 'error') {
      if (expects === 'ok') {
        this.#refused(record, sql, outcome);
      } else {
        this.tally.note('equal', at, sql);
      }
      return;
    }
    if (expects === 'error') {
      const depends = this.#unsettled.touches(sql);
      this.#unsettle(sql);
      this.tally.note(depends ? 'skipped' : 'accepted', at, sql, depends ? DEPENDS : '');
      return;
    }
    this.#unsettled.settle(sql);
    const isOther = count !== undefined && outcome.count !== undefined && count !== outcome.count;
    const why = `${String(outcome.count)} rows affected, expected ${String(count)}`;
    if (isOther && this.#unsettled.touches(sql)) {
      this.tally.note('skipped', at, sql, DEPENDS);
    } else {
      this.tally.note(isOther ? 'wrong' : 'equal', at, sql, why);
    }
  }

  #judgeQuery(record: QueryRecord, sql: string, outcome: Outcome): void {
    if (outcome.kind === 'error') {
      this.#refused(record, sql, outcome);
      return;
    }
    const { at, types, sort, expected: lines, label } = record;
    // A query that has a label but no rows is compared only with other results that have the same
    // label.
    const isByLabel = label !== undefined && lines.length === 0;
    const expectation = { types, sort, lines, layout: this.#dialect.layout };
    // For a statement that changes rows, the result is the row count from the protocol's command
    // tag.
    const isChange = outcome.width === 0 && outcome.count !== undefined;
    const rows = isChange ? [[String(outcome.count)]] : outcome.rows;
    const why =
      this.#labelMismatch(label, rows) ??
      (isByLabel ? undefined : mismatch(rows, isChange ? 1 : outcome.width, expectation));
    if (why === undefined) {
      this.tally.note('equal', at, sql);
    } else if (this.#unsettled.touches(sql)) {
      this.tally.note('skipped', at, sql, DEPENDS);
    } else {
      this.tally.note('wrong', at, sql, why);
    }
  }

  /** Results with the same label must contain the same values, in any order. */
  #labelMismatch(
    label: string | undefined,
    rows: readonly (readonly WireCell[])[],
  ): string | undefined {
    if (label === undefined) {
      return undefined;
    }
    const known = this.#labels.get(label);
    this.#labels.set(label, known ?? { rows });
    const values = (answer: readonly (readonly WireCell[])[]): string =>
      answer.flat().map(String).sort().join('\n');
    return known === undefined || values(known.rows) === values(rows)
      ? undefined
      : `different answer than the earlier query with the label ${label}`;
  }

  #refused(
    { at }: StatementRecord | QueryRecord,
    sql: string,
    failure: Extract<Outcome, { kind: 'error' }>,
  ): void {
    const depends = failure.code === FAILED_BLOCK || this.#unsettled.touches(sql);
    this.#unsettle(sql);
    const why = depends ? DEPENDS : `${classOf(failure)} ⟨${failure.message}⟩`;
    this.tally.note(depends ? 'skipped' : 'refused', at, sql, why);
  }
}
