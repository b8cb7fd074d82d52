/**
 * Lines without an end, as a connection brings them: gathered as bytes, and committed in batches.
 * What a line is, the engine knows: it says where the last whole one ended.
 */
import type { LineOptions } from '../../engine/types.js';
import type { WriteDoor } from '../../session/write-door.js';
import { commitLines, type LineDatabase, LineError } from './lines.js';

/** The most bytes of one batch: others wait for their turn. */
const BATCH_BYTES = 4 * 1024 * 1024;
/** Behind a wrong line batches begin small: what follows another one is read again. */
const CAREFUL_BYTES = 16 * 1024;
/** More pieces are made one: a sender may send each byte by itself. */
const MAX_PIECES = 64;
/** What is left of a batch is copied up to so many bytes. */
const COPIED_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;

interface LineStreamOptions {
  readonly database: LineDatabase;
  readonly lines: Omit<LineOptions, 'goesOn'>;
  readonly door: WriteDoor;
  /** Rows from which on a batch ends. */
  readonly mostRows: number;
  /** Receives what was committed. */
  readonly committed: (rows: number) => void;
  /** Receives how many bytes more are held, or fewer. */
  readonly held: (change: number) => void;
}

export class LineStream {
  readonly #options: LineStreamOptions;
  #chunks: Buffer[] = [];
  /** Bytes held, those of the batch that is being written among them. */
  #size = 0;
  /** Of these, the first, that are known to be the beginning of a line. */
  #begun = 0;
  #lines = 0;
  #batchBytes = BATCH_BYTES;
  /** Whether the last batch ended before what was there. */
  #isBehind = false;
  /** Whether what comes up to the next line feed belongs to a line that is left out. */
  #isSkipping = false;

  constructor(options: LineStreamOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  /** Bytes that no batch has looked at. */
  get unread(): number {
    return this.#size - this.#begun;
  }

  /** Whether something waits that the last batch left for the next one. */
  get isBehind(): boolean {
    return this.#isBehind && this.unread > 0;
  }

  push(chunk: Buffer): void {
    const bytes = this.#isSkipping ? this.#skipped(chunk) : chunk;
    if (bytes.length > 0) {
      this.#chunks.push(bytes);
      if (this.#chunks.length >= MAX_PIECES) {
        this.#chunks = [Buffer.concat(this.#chunks)];
      }
      this.#hold(bytes.length);
    }
  }

  /**
   * Commits the whole lines that are there. Throws a `LineError` for a wrong one, when those before
   * it are committed; it then is the first of what is left. After another error everything is as
   * before.
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

  /** Leaves out the line that is the first of what is there. */
  skipLine(): void {
    const held = this.#chunks;
    this.#forget();
    this.#lines += 1;
    this.#isSkipping = true;
    for (const chunk of held) {
      this.push(chunk);
    }
  }

  /** Forgets what is left. */
  close(): void {
    this.#forget();
  }

  async #commit(mostBytes: number): Promise<void> {
    const { database, lines, door, committed } = this.#options;
    const appender = await database.openLines({ ...lines, goesOn: true });
    const batch: Buffer[] = [];
    let isWritten = false;
    this.#isBehind = true;
    try {
      for (let left = mostBytes; left > 0;) {
        const chunk = this.#next(left);
        if (chunk === null) {
          this.#isBehind = false;
          break;
        }
        batch.push(chunk);
        left -= chunk.length;
        const { ended, rows } = await appender.write(chunk);
        if (ended === true || rows >= this.#options.mostRows) {
          break;
        }
      }
      const { rows, read } = await commitLines(appender, door);
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

  /** What is good before a line that is wrong; half of what is too much at once. */
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

  /** Takes at most `mostBytes` from the front. */
  #next(mostBytes: number): Buffer | null {
    const chunk = this.#chunks.shift();
    if (chunk === undefined) {
      return null;
    }
    const taken = chunk.subarray(0, mostBytes);
    if (taken.length < chunk.length) {
      this.#chunks.unshift(chunk.subarray(mostBytes));
    }
    return taken;
  }

  /** Of a batch `consumed` bytes are done with; the others are the first again. */
  #restore(batch: readonly Buffer[], consumed: number): void {
    let done = consumed;
    const rest: Buffer[] = [];
    for (const chunk of batch) {
      if (done < chunk.length) {
        rest.push(chunk.subarray(done));
      }
      done = Math.max(done - chunk.length, 0);
    }
    const left = rest.reduce((sum, { length }) => sum + length, 0);
    if (left > 0 && left <= COPIED_BYTES) {
      // A copy: a few bytes must not keep the large piece of memory that they came in.
      this.#chunks.unshift(Buffer.concat(rest));
    } else {
      this.#chunks.unshift(...rest);
    }
    this.#hold(-consumed);
  }

  #skipped(chunk: Buffer): Buffer {
    const end = chunk.indexOf(LINE_FEED);
    this.#isSkipping = end < 0;
    return end < 0 ? Buffer.alloc(0) : chunk.subarray(end + 1);
  }

  #forget(): void {
    this.#chunks = [];
    this.#begun = 0;
    this.#hold(-this.#size);
  }

  #hold(change: number): void {
    this.#size += change;
    this.#options.held(change);
  }
}
