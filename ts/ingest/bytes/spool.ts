/**
 * Buffers input that may have to be read twice: its start in memory, the remainder in an unnamed
 * file. Input that the sender can supply again is not buffered.
 */
import { randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { ImportError } from '../import-error.js';

const IN_MEMORY_BYTES = 16 * 1024 * 1024;
/** Buffer size that triggers a write, in bytes. Each write requires a thread switch. */
const WRITTEN_BYTES = 1024 * 1024;
const NAME_BYTES = 16;

export class Spool {
  readonly #directory: string | null;
  readonly #memoryChunks: Buffer[] = [];
  #memoryBytes = 0;
  #isFull = false;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** The write in progress. */
  #writing: Promise<void> = Promise.resolve();
  #file: FileHandle | null = null;
  #fileBytes = 0;
  #problem: string | null = null;

  /** `directory` is the location of the overflow file. */
  constructor(directory: string | null) {
    this.#directory = directory;
  }

  /**
   * Adds the next buffer. If the disk is full, the error is reported when the input is read again.
   */
  async add(chunk: Buffer): Promise<void> {
    if (this.#problem !== null) {
      return;
    }
    this.#isFull ||= this.#memoryBytes + chunk.length > IN_MEMORY_BYTES;
    if (!this.#isFull) {
      this.#memoryChunks.push(chunk);
      this.#memoryBytes += chunk.length;
      return;
    }
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes >= WRITTEN_BYTES) {
      await this.#writing;
      this.#writing = this.#write();
    }
  }

  /** Writes the buffers to the file. Never rejects; the reader receives the error. */
  async #write(): Promise<void> {
    const chunks = this.#waiting;
    this.#waiting = [];
    const bytes = this.#waitingBytes;
    this.#waitingBytes = 0;
    try {
      this.#file ??= await nameless(this.#directory);
      const { bytesWritten } = await this.#file.writev(chunks);
      if (bytesWritten !== bytes) {
        throw new Error('not enough disk space');
      }
      this.#fileBytes += bytes;
    } catch (error) {
      this.#problem = error instanceof Error ? error.message : 'unknown error';
      this.#memoryChunks.length = 0;
    }
  }

  /** Returns the buffered input from the start. */
  async *chunks(): AsyncGenerator<Buffer> {
    await this.#writing;
    if (this.#waitingBytes > 0) {
      await this.#write();
    }
    if (this.#problem !== null) {
      throw new ImportError(
        `types change after the first lines, and the text could not be stored for a second read ` +
          `(${this.#problem}): specify the types in a schema`,
      );
    }
    yield* this.#memoryChunks;
    for (let at = 0; this.#file !== null && at < this.#fileBytes;) {
      const chunk = Buffer.allocUnsafe(WRITTEN_BYTES);
      const { bytesRead } = await this.#file.read(chunk, 0, WRITTEN_BYTES, at);
      if (bytesRead === 0) {
        throw new Error('the buffered text is shorter than expected');
      }
      at += bytesRead;
      yield chunk.subarray(0, bytesRead);
    }
  }

  async close(): Promise<void> {
    await this.#writing;
    this.#memoryChunks.length = 0;
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }
}

/** Opens an unnamed file, which is deleted when its handle is closed. */
async function nameless(directory: string | null): Promise<FileHandle> {
  if (directory === null) {
    throw new Error('no directory for temporary files');
  }
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, `${randomBytes(NAME_BYTES).toString('hex')}.text`);
  const file = await open(path, 'wx+', 0o600);
  await rm(path, { force: true });
  return file;
}
