/**
 * Text files that queries read (`read_csv`, `read_json`). Their structure is detected as for an
 * import. The engine reads UTF-8 CSV directly. Any other file is first converted to a temporary
 * file next to the database, which is cached for several minutes.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { LRUCache } from 'lru-cache';

import { DatabaseError } from '../engine/error.js';
import type {
  CsvTextSpec,
  TextFormatRequest,
  TextFile,
  TextPath,
  TextShape,
} from '../engine/types.js';
import { isUtf8 } from './bytes/encoding.js';
import { isGzip } from './bytes/gzip.js';
import { inflatesTooFar } from './bytes/inflation.js';
import { prepare } from './bytes/prepare.js';
import { FreeSpace } from './bytes/free-space.js';
import { withoutComments } from './comments.js';
import { ImportError } from './import-error.js';
import { ANALYSED_LINES } from './limits.js';
import { readSample } from './sample.js';
import type { TextColumn } from './structure.js';
import { mapToNew } from './target.js';
import { readTextOptions, type TextOptions } from './text-options.js';

interface TextFilesOptions {
  /** Directory for converted files. */
  readonly directory: string;
  /** Lines used for detection; 1000 by default. */
  readonly linesMax?: number;
  /** Disk space to leave free, in bytes; 0, the default, means 5 % of the disk, at most 1 GiB. */
  readonly reservedDiskBytes?: number;
}

const CHUNK_BYTES = 256 * 1024;
const HEAD_BYTES = 3;
const NAME_BYTES = 16;
const EDGE_BYTES = 64;
/**
 * Maximum number of cached conversions. It exceeds the number of files that a statement can name.
 * If a converted file is evicted while in use, the original is converted again.
 */
const MAX_CONVERTED = 4096;
const CACHED_MS = 10 * 60 * 1000;

const UNCHANGED_NAMES = {
  timestamp: null,
  partitionBy: 'NONE',
  givenPartitionBy: null,
  o3MaxLagMicros: null,
  maxUncommittedRows: null,
  widens: true,
} as const;

export class TextFiles {
  readonly #options: Required<TextFilesOptions>;
  readonly #converted = new LRUCache<string, TextFile>({
    max: MAX_CONVERTED,
    ttl: CACHED_MS,
    ttlAutopurge: true,
    updateAgeOnGet: true,
    dispose: ({ converted }) => {
      if (converted !== undefined) {
        rm(converted, { force: true }).catch(() => undefined);
      }
    },
  });

  constructor(options: TextFilesOptions) {
    this.#options = { linesMax: ANALYSED_LINES, reservedDiskBytes: 0, ...options };
  }

  /**
   * Detects the structure of the requested files. Rejects with a `DatabaseError`, or with the
   * signal's abort reason.
   */
  async detectShape(request: TextFormatRequest, signal: AbortSignal): Promise<TextShape> {
    const files: TextFile[] = [];
    let about = '';
    try {
      const options = readTextOptions(request);
      for (const file of request.files) {
        about = `cannot read '${file.name}': `;
        files.push(await this.#textFile(file, options, signal));
      }
    } catch (error) {
      if (error instanceof ImportError) {
        return { files: [], problem: about + error.message };
      }
      if (error instanceof Error && 'errno' in error && 'code' in error) {
        return { files: [], problem: `${about}${error.code as string}` };
      }
      throw error;
    }
    return { files };
  }

  async #textFile(
    location: TextPath,
    options: TextOptions,
    signal: AbortSignal,
  ): Promise<TextFile> {
    // Opening a FIFO would block the thread, and a link could lead outside the directory.
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
    const file = await open(location.path, flags);
    try {
      const { version, bytes } = await versionOf(file);
      const key = JSON.stringify([location.path, location.name, version, options.key]);
      const known = this.#converted.get(key);
      if (known?.converted !== undefined && (await isThere(known.converted))) {
        return { ...known, examinedAt: Date.now() };
      }
      const detected = await this.#detect({ file, bytes, signal }, location.name, options);
      const now = await versionOf(file);
      const edges = await edgesOf(file, bytes);
      const current = { name: location.name, version, examinedAt: Date.now(), edges, ...detected };
      if (now.version !== version && now.bytes <= bytes) {
        await remove(current);
        throw new DatabaseError({
          code: 'Replan',
          message: `file '${location.name}' changed while its schema was being detected`,
        });
      }
      if (current.converted !== undefined) {
        this.#converted.set(key, current);
      }
      return current;
    } finally {
      await file.close();
    }
  }

  async #detect(
    source: Source,
    name: string,
    options: TextOptions,
  ): Promise<Pick<TextFile, 'csv' | 'converted'>> {
    const { linesMax } = this.#options;
    const { encoding, isJson, decimal, schema, atomicity } = options;
    const head = await read(source.file, 0, HEAD_BYTES);
    const prepared = await prepare(bytesOf(source), { encoding, json: isJson, linesMax });
    const { json } = prepared;
    if (isJson && json === null) {
      throw new ImportError('invalid JSON: expected objects or arrays of objects');
    }
    const sample = await readSample(prepared.content, linesMax);
    const { delimiter, header } = json === null ? options : { delimiter: ',', ...json };
    const hints = { source: `file=${name}`, delimiter, header, schema, linesMax, decimal };
    const texts = json === null ? {} : { texts: json.texts };
    const { structure, chunks, text } = withoutComments(sample, {
      ...hints,
      ...texts,
      nullWord: true,
    });
    const timed = { ...structure, columns: structure.columns.map(asTime) };
    const { columns } = mapToNew(timed, { ...UNCHANGED_NAMES, decimal });
    const csv: CsvTextSpec = {
      delimiter: structure.delimiter,
      header: structure.header,
      columns,
      atomicity,
      skipExtraValues: false,
    };
    const isPlain = json === null && !isGzip(head) && isUtf8(head, encoding);
    if (isPlain && text === sample.text) {
      return { csv };
    }
    const converted = await this.#convert(chunks, source);
    const [unknown] = json?.unknownKeys() ?? [];
    if (unknown !== undefined && atomicity === 'abortLine') {
      await remove({ converted });
      throw new ImportError(
        `the key '${unknown}' does not occur in the first ${linesMax} objects; add ` +
          'ignore_errors => true to ignore it',
      );
    }
    return { csv, converted };
  }

  /** Writes the converted text to a new file. */
  async #convert(chunks: AsyncIterable<Buffer>, { bytes, signal }: Source): Promise<string> {
    const { directory, reservedDiskBytes } = this.#options;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const freeSpace = new FreeSpace(directory, reservedDiskBytes, 'converted files');
    const path = join(directory, `${randomBytes(NAME_BYTES).toString('hex')}.csv`);
    const file = await open(path, 'wx', 0o600);
    let written = 0;
    try {
      for await (const chunk of chunks) {
        signal.throwIfAborted();
        written += chunk.length;
        if (inflatesTooFar(written, bytes)) {
          throw new ImportError('the decompressed text is too large');
        }
        await freeSpace.check(chunk.length);
        await file.writeFile(chunk);
      }
      return path;
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    } finally {
      await file.close();
    }
  }
}

/** Changes the type of an undeclared text column to TIMESTAMP if all its values are timestamps. */
function asTime(column: TextColumn): TextColumn {
  const { type, isDeclared, timestampFormat } = column;
  return type === 'VARCHAR' && !isDeclared && timestampFormat !== null
    ? { ...column, ...timestampFormat }
    : column;
}

async function isThere(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}

async function remove({ converted }: Pick<TextFile, 'converted'>): Promise<void> {
  if (converted !== undefined) {
    await rm(converted, { force: true });
  }
}

interface Source {
  readonly file: FileHandle;
  readonly bytes: number;
  readonly signal: AbortSignal;
}

/** Returns the version that identifies a file's content, in the engine's format. */
async function versionOf(file: FileHandle): Promise<{ version: string; bytes: number }> {
  const stats = await file.stat({ bigint: true });
  if (!stats.isFile()) {
    throw new ImportError('not a regular file');
  }
  const { dev, ino, size, mtimeNs } = stats;
  return { version: `${dev}:${ino}:${size}:${mtimeNs}`, bytes: Number(size) };
}

async function* bytesOf({ file, bytes, signal }: Source): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes;) {
    signal.throwIfAborted();
    const chunk = await read(file, at, Math.min(CHUNK_BYTES, bytes - at));
    if (chunk.length === 0) {
      return;
    }
    at += chunk.length;
    yield chunk;
  }
}

/** Returns the first and last bytes, which the engine uses to detect a changed file. */
async function edgesOf(file: FileHandle, bytes: number): Promise<string> {
  const head = await read(file, 0, Math.min(EDGE_BYTES, bytes));
  const tail = await read(file, Math.max(bytes - EDGE_BYTES, 0), Math.min(EDGE_BYTES, bytes));
  return head.toString('hex') + tail.toString('hex');
}

async function read(file: FileHandle, at: number, bytes: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(bytes), 0, bytes, at);
  return buffer.subarray(0, bytesRead);
}
