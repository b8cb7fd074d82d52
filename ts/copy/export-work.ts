/**
 * COPY … TO: exports the rows of a table or query to one file, or to one file per partition. Files
 * are written and synced in a job directory and then renamed. A file under its final name is
 * therefore complete.
 */
import { type FileHandle, link, mkdir, open, readdir, rename, rm, unlink } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';

import { FreeSpace } from '../ingest/index.js';
import {
  type Access,
  allowing,
  asDatabaseError,
  DatabaseError,
  type Guard,
  type Principal,
  principalKey,
  type RowFormat,
  type StatementContext,
} from '../session/index.js';
import type { Tree } from '../sql/index.js';
import type { Work } from './jobs.js';
import type { CopyLog, ExportPhase } from './log.js';
import type { ExportSettings } from './options.js';
import { FLOOR_UNITS, type Partition, partitionAt, type PartitionUnit } from './partitions.js';
import { codeOf, makeBelow, reason, type Root, STAGE_PREFIX } from './paths.js';
import { type JobContext, quoteName, type Sql } from './sql.js';

interface ExportRequest {
  readonly user: string;
  /** The user whose rights and visibility apply; both are read when the job runs. */
  readonly principal: Principal;
  readonly accesses: readonly Access[];
  /** Lists of users and rights that the query reads. */
  readonly lists?: StatementContext['lists'];
  /** The statement's SQL text. */
  readonly text: string;
  readonly source: ExportSource;
  /** Path components below the export directory. */
  readonly path: readonly string[];
  readonly settings: ExportSettings;
  /** Partition unit for the files; `null` for a single file. */
  readonly partitionBy: PartitionUnit | null;
}

export interface ExportSource {
  /** The exported table; `null` for a query. */
  readonly table: string | null;
  /** The exported query; for a table, a query that returns all its rows. */
  readonly tree: Tree;
  readonly sql: string;
  /** Name of the designated timestamp column, if any. */
  readonly timestamp: string | null;
}

/** Dependencies that all exports share. */
export interface ExportServices {
  readonly sql: Sql;
  readonly log: CopyLog;
  readonly root: Root;
  /** Disk space that an export leaves free, in bytes; 0 means 5 % of the disk, at most 1 GiB. */
  readonly reservedDiskBytes: number;
  /** Absent without access control. */
  readonly guard?: Guard;
}

/**
 * Returns the name of the temporary table that stores a query's rows while partitions are written.
 */
function stagedTable(id: string): string {
  return `copy.${id}`;
}

export class ExportWork implements Work {
  readonly name: string;
  readonly target: string;
  readonly #services: ExportServices;
  readonly #request: ExportRequest;
  #phase: ExportPhase = 'wait_to_run';

  constructor(services: ExportServices, request: ExportRequest) {
    this.#services = services;
    this.#request = request;
    this.target = `to ${request.path.join(sep)}`;
    this.name = `COPY ${request.source.table ?? '(query)'} TO ${request.path.join(sep)}`;
  }

  async announce(id: string): Promise<void> {
    const row = { id, table: this.#tableName(id), phase: this.#phase } as const;
    await this.#services.log.exportStep({ ...row, status: 'started', message: 'queued' });
  }

  async failed(id: string, how: 'failed' | 'cancelled', message: string): Promise<void> {
    const row = { id, table: this.#tableName(id), phase: this.#phase };
    await this.#services.log.exportStep({ ...row, status: how, message });
  }

  async run(id: string, signal: AbortSignal): Promise<void> {
    const { root, log } = this.#services;
    const { path } = this.#request;
    const context = this.#context(id, signal);
    const table = this.#tableName(id);
    await log.exportStep({ id, table, phase: 'wait_to_run', status: 'finished' });
    const parent = await makeBelow(root, path.slice(0, -1)).catch(asIo);
    const stage = join(await makeBelow(root, []), STAGE_PREFIX + id);
    await mkdir(stage);
    try {
      const names = await this.#write(id, stage, context);
      const target = join(parent, path.at(-1) ?? '');
      const moved = await this.#step(id, 'move_files', () =>
        this.#move(stage, names, target, signal),
      );
      const files = names.length;
      await log.exportStep({ id, table, path: moved, files, phase: 'success', status: 'finished' });
    } finally {
      await rm(stage, { recursive: true, force: true });
    }
  }

  /** Returns the context in which `/exec` would currently run the statement. */
  #context(id: string, signal: AbortSignal): JobContext {
    const { guard } = this.#services;
    const { user, principal, accesses, lists, text } = this.#request;
    guard?.authorise(principal, accesses);
    const visibility = guard?.visibility(principal);
    return {
      user,
      identity: principalKey(principal),
      text: `${text} /* ${id} */`,
      ...(guard === undefined
        ? {}
        : {
            // The job owns the temporary table of a partitioned export, so access to this table is
            // not checked.
            authorise: (accesses): void => {
              const read = accesses.filter(({ permission }) => permission !== 'CREATE TABLE');
              guard.authorise(principal, read);
            },
          }),
      ...(guard === undefined || visibility === undefined
        ? {}
        : { visibility, allows: allowing(guard, principal) }),
      ...(lists === undefined ? {} : { lists }),
      signal,
    };
  }

  #tableName(id: string): string {
    return this.#request.source.table ?? stagedTable(id);
  }

  /** Runs one phase, and logs its start and its end. */
  async #step<T>(id: string, phase: ExportPhase, work: () => Promise<T>): Promise<T> {
    const { log } = this.#services;
    this.#phase = phase;
    const row = { id, table: this.#tableName(id), phase };
    await log.exportStep({ ...row, status: 'started' });
    const result = await work();
    await log.exportStep({ ...row, status: 'finished' });
    return result;
  }

  /** Writes the files and returns their names. */
  async #write(id: string, stage: string, context: JobContext): Promise<readonly string[]> {
    const { partitionBy, source } = this.#request;
    const { sql } = this.#services;
    if (partitionBy === null) {
      const name = `rows.${this.#request.settings.format}`;
      const { tree } = source;
      await this.#step(id, 'sending_data', () =>
        this.#writeFile(join(stage, name), tree, [], context),
      );
      return [name];
    }
    if (source.table !== null) {
      const { table } = source;
      return await this.#step(id, 'converting_partitions', () =>
        this.#writePartitions(stage, table, partitionBy, context),
      );
    }
    // The query runs only once. All files therefore come from the same execution and snapshot, even
    // if the query calls counters or random functions.
    const table = stagedTable(id);
    // Users have no rights on the temporary table.
    const { user, text = '', signal } = context;
    const own = { user, text, signal };
    try {
      const create =
        `CREATE TABLE ${quoteName(table)} AS (${source.sql}\n) ` +
        `TIMESTAMP(${quoteName(source.timestamp ?? '')}) PARTITION BY ${partitionBy}`;
      await this.#step(id, 'populating_temp_table', () => sql.run(create, [], context));
      return await this.#step(id, 'converting_partitions', () =>
        this.#writePartitions(stage, table, partitionBy, own),
      );
    } finally {
      await sql.run(`DROP TABLE IF EXISTS ${quoteName(table)}`);
    }
  }

  async #writePartitions(
    stage: string,
    table: string,
    unit: PartitionUnit,
    context: JobContext,
  ): Promise<readonly string[]> {
    const { sql } = this.#services;
    const { source, settings } = this.#request;
    const from = quoteName(table);
    const timestamp = quoteName(source.timestamp ?? '');
    const start = `timestamp_floor('${FLOOR_UNITS[unit]}', ${timestamp})`;
    const starts = await sql.rows(`SELECT DISTINCT ${start} p FROM ${from} ORDER BY p`, context);
    const rowsOf = ({ from: first, to }: Partition): [string, readonly string[]] => [
      `SELECT * FROM ${from} WHERE ${timestamp} >= $1 AND ${timestamp} < $2`,
      [first, to],
    ];
    const names: string[] = [];
    for (const [first] of starts) {
      const partition = partitionAt(unit, String(first));
      const name = `${partition.name}.${settings.format}`;
      await this.#writeFile(join(stage, name), ...rowsOf(partition), context);
      names.push(name);
    }
    return names;
  }

  async #writeFile(
    path: string,
    query: Tree | string,
    parameters: readonly string[],
    context: JobContext,
  ): Promise<void> {
    const { sql } = this.#services;
    const file = await open(path, 'wx').catch(asIo);
    try {
      const rows = this.#format();
      await sql.execute(query, parameters, rows, context, async ({ chunk, stream }) => {
        const freeSpace = new FreeSpace(
          path,
          this.#services.reservedDiskBytes,
          'the export directory',
        );
        await append(file, chunk?.bytes, freeSpace);
        for (let next = await stream?.next(); next != null; next = await stream?.next()) {
          context.signal.throwIfAborted();
          await append(file, next.bytes, freeSpace);
        }
      });
      await file.sync().catch(asIo);
    } finally {
      await file.close();
    }
  }

  /**
   * Returns whether existing files are overwritten. With access control, overwriting must be
   * requested, because the files may belong to another user.
   */
  #overwrites(): boolean {
    return this.#request.settings.overwrite ?? this.#services.guard === undefined;
  }

  #format(): RowFormat {
    const { format, header, delimiter, parquet } = this.#request.settings;
    return format === 'csv' ? { format, header, delimiter } : { format, options: parquet };
  }

  /** Renames the files to their final names and returns their path. */
  async #move(
    stage: string,
    names: readonly string[],
    target: string,
    signal: AbortSignal,
  ): Promise<string> {
    const { partitionBy, settings } = this.#request;
    signal.throwIfAborted();
    try {
      if (partitionBy !== null) {
        await moveAll(stage, names, target, this.#overwrites());
        return target + sep;
      }
      const suffix = `.${settings.format}`;
      const isNamed = basename(target).toLowerCase().endsWith(suffix);
      const path = isNamed ? target : target + suffix;
      await moveFile(join(stage, names[0] ?? ''), path, this.#overwrites());
      await syncDirectory(dirname(path));
      return path;
    } catch (error) {
      return asIo(error);
    }
  }
}

/** Throws if the name is in use, unless overwriting is allowed. */
async function moveFile(from: string, to: string, overwrites: boolean): Promise<void> {
  if (overwrites) {
    await rename(from, to);
    return;
  }
  await link(from, to).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') {
      throw error;
    }
    throw alreadyExists(basename(to));
  });
  await unlink(from);
}

function alreadyExists(name: string): DatabaseError {
  const message = `file '${name}' already exists: choose a different name, or add OVERWRITE true`;
  return new DatabaseError({ code: 'InvalidValue', message });
}

/**
 * Returns the IDs of jobs that a previous process left unfinished. They are derived from the jobs'
 * directories.
 */
export async function unfinishedExports(root: Root): Promise<readonly string[]> {
  const names = await readdir(root.directory).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') {
      return [];
    }
    throw error;
  });
  return names
    .filter((name) => name.startsWith(STAGE_PREFIX))
    .map((name) => name.slice(STAGE_PREFIX.length))
    .filter((id) => /^[\da-f]{16}$/.test(id));
}

/** Removes the files and the table of a job that a previous process left unfinished. */
export async function removeUnfinishedExport(
  { sql, root }: ExportServices,
  id: string,
): Promise<void> {
  await sql.run(`DROP TABLE IF EXISTS ${quoteName(stagedTable(id))}`);
  await rm(join(root.directory, STAGE_PREFIX + id), { recursive: true, force: true });
}

/** Moves all files: atomically if the directory is new, file by file if it exists. */
async function moveAll(
  stage: string,
  names: readonly string[],
  target: string,
  overwrites: boolean,
): Promise<void> {
  await syncDirectory(stage);
  try {
    await rename(stage, target);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes(codeOf(error))) {
      throw error;
    }
    const existing = new Set(overwrites ? [] : await readdir(target));
    const first = names.find((name) => existing.has(name));
    if (first !== undefined) {
      throw alreadyExists(first);
    }
    for (const name of names) {
      await moveFile(join(stage, name), join(target, name), overwrites);
    }
    await syncDirectory(target);
  }
  await syncDirectory(dirname(target));
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function append(
  file: FileHandle,
  bytes: Buffer | undefined,
  freeSpace: FreeSpace,
): Promise<void> {
  if (bytes !== undefined && bytes.length > 0) {
    await freeSpace.check(bytes.length);
    await file.appendFile(bytes).catch(asIo);
  }
}

/** Converts a file system error without revealing the machine's paths. */
function asIo(error: unknown): never {
  if (error instanceof DatabaseError) {
    throw error;
  }
  const code = codeOf(error);
  if (code === '') {
    throw asDatabaseError(error);
  }
  const isFull = code === 'ENOSPC' || code === 'EDQUOT';
  throw new DatabaseError(
    { code: isFull ? 'DiskFull' : 'Io', message: `cannot write the file: ${reason(error)}` },
    { cause: error },
  );
}
