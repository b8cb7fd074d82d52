/**
 * A continuous stream of lines from a connection. It is buffered as bytes and committed in batches.
 * The engine splits the lines and reports the end of the last complete line.
 */
import type { LineOptions } from '../../engine/types.js';
import type { WriteAuthorizer } from '../../session/write-authorizer.js';
import { commitLines, type LineDatabase, LineError } from './lines.js';

/**
 * Maximum batch size in bytes. It is limited because other senders wait while a batch is committed.
 */
const BATCH_BYTES = 4 * 1024 * 1024;
/**
 * Initial batch size after an invalid line. It is small, because bytes after another invalid line
 * must be read again.
 */
const CAREFUL_BYTES = 16 * 1024;
/**
 * Number of buffers above which they are merged into one, because a sender may send single bytes.
 */
const MAX_CHUNKS = 64;
/** Maximum size of the remainder of a batch that is copied rather than referenced. */
const COPIED_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;

interface LineStreamOptions {
  readonly database: LineDatabase;
  readonly lines: Omit<LineOptions, 'isContinued'>;
  readonly writeAuthorizer: WriteAuthorizer;
  /** Maximum number of rows per batch. */
  readonly maxRows: number;
  /** Receives the number of committed rows. */
  readonly committed: (rows: number) => void;
  /** Receives changes in the number of buffered bytes. */
  readonly buffered: (change: number) => void;
}

export class LineStream {
  readonly #options: LineStreamOptions;
  #chunks: Buffer[] = [];
  /** Buffered bytes, including those of the batch being written. */
  #size = 0;
  /** Number of leading bytes that are known to belong to an incomplete line. */
  #begun = 0;
  #lines = 0;
  #batchBytes = BATCH_BYTES;
  /** Whether the last batch ended before the end of the buffered bytes. */
  #isBehind = false;
  /**
   * Whether to discard bytes up to the next line feed, because the line that they belong to is
   * skipped.
   */
  #isSkipping = false;

  constructor(options: LineStreamOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns the number of bytes that no batch has read yet. */
  get unread(): number {
    return this.#size - this.#begun;
  }

  /** Returns whether the last batch left unread bytes for the next one. */
  get isBehind(): boolean {
    return this.#isBehind && this.unread > 0;
  }

  push(chunk: Buffer): void {
    const bytes = this.#isSkipping ? this.#skipped(chunk) : chunk;
    if (bytes.length > 0) {
      this.#chunks.push(bytes);
      if (this.#chunks.length >= MAX_CHUNKS) {
        this.#chunks = [Buffer.concat(this.#chunks)];
      }
      this.#resize(bytes.length);
    }
  }

  /**
   * Commits the complete lines. If a line is invalid, commits the lines before it and throws a
   * `LineError`; the buffer then begins with the invalid line. After any other error the buffer is
   * unchanged.
   */
  async commit(): Promise<void> {
    try {
      await this.#commit(Math.max(this.#batchBytes, this.#begun + CAREFUL_BYTES));
      this.#batchBytes = Math.min(2 * this.#batchBytes, BATCH_BYTES);
    } catch (error) {
      this.#batchBytes = CAREFUL_BYTES;
      this.#isBehind = true;
      throw error;
    }
  }

  /** Discards the first line in the buffer. */
  skipLine(): void {
    const buffered = this.#chunks;
    this.#forget();
    this.#lines += 1;
    this.#isSkipping = true;
    for (const chunk of buffered) {
      this.push(chunk);
    }
  }

  /** Discards the buffer. */
  close(): void {
    this.#forget();
  }

  async #commit(maxBytes: number): Promise<void> {
    const { database, lines, writeAuthorizer, committed } = this.#options;
    const appender = await database.openLines({ ...lines, isContinued: true });
    const batch: Buffer[] = [];
    let isWritten = false;
    this.#isBehind = true;
    try {
      for (let remainingBytes = maxBytes; remainingBytes > 0;) {
        const chunk = this.#next(remainingBytes);
        if (chunk === null) {
          this.#isBehind = false;
          break;
        }
        batch.push(chunk);
        remainingBytes -= chunk.length;
        const { ended, rows } = await appender.write(chunk);
        if (ended === true || rows >= this.#options.maxRows) {
          break;
        }
      }
      const { rows, read } = await commitLines(appender, writeAuthorizer);
      isWritten = true;
      this.#lines += read.lines;
      this.#restore(batch, read.bytes);
      this.#begun = batch.reduce((sum, { length }) => sum + length, 0) - read.bytes;
      if (rows > 0) {
        committed(rows);
      }
    } catch (error) {
      await appender.abort();
      if (!isWritten) {
        this.#restore(batch, 0);
      }
      if (!(error instanceof LineError)) {
        throw error;
      }
      await this.#commitBefore(error);
    }
  }

  /**
   * Commits the valid lines before an invalid line. If a batch is too large, commits half of it.
   */
  async #commitBefore({ at, isTooLarge, message }: LineError): Promise<void> {
    const size = this.#size;
    const good = isTooLarge ? Math.floor(at / 2) : at;
    if (good > 0) {
      await this.#commit(good);
    }
    if (!isTooLarge || this.#size === size) {
      throw new LineError({ line: this.#lines + 1, at: 0, reason: message, isTooLarge });
    }
  }

  /** Removes at most `maxBytes` from the front of the buffer. */
  #next(maxBytes: number): Buffer | null {
    const chunk = this.#chunks.shift();
    if (chunk === undefined) {
      return null;
    }
    const part = chunk.subarray(0, maxBytes);
    if (part.length < chunk.length) {
      this.#chunks.unshift(chunk.subarray(maxBytes));
    }
    return part;
  }

  /** Puts a batch back at the front of the buffer, without its first `consumed` bytes. */
  #restore(batch: readonly Buffer[], consumed: number): void {
    let done = consumed;
    const remainder: Buffer[] = [];
    for (const chunk of batch) {
      if (done < chunk.length) {
        remainder.push(chunk.subarray(done));
      }
      done = Math.max(done - chunk.length, 0);
    }
    const remainingBytes = remainder.reduce((sum, { length }) => sum + length, 0);
    if (remainingBytes > 0 && remainingBytes <= COPIED_BYTES) {
      // Copied, so that a few bytes do not keep a large buffer in memory.
      this.#chunks.unshift(Buffer.concat(remainder));
    } else {
      this.#chunks.unshift(...remainder);
    }
    this.#resize(-consumed);
  }

  #skipped(chunk: Buffer): Buffer {
    const end = chunk.indexOf(LINE_FEED);
    this.#isSkipping = end < 0;
    return end < 0 ? Buffer.alloc(0) : chunk.subarray(end + 1);
  }

  #forget(): void {
    this.#chunks = [];
    this.#begun = 0;
    this.#resize(-this.#size);
  }

  #resize(change: number): void {
    this.#size += change;
    this.#options.buffered(change);
  }
}
