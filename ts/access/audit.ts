/**
 * The audit log records logins, refused logins and changes. Each event is one JSON line in a
 * separate file. Each line carries a digest of itself and of the previous line, so a removed or
 * altered line is detected. A full file is renamed to `audit.jsonl.1`, the previous `.1` to `.2`,
 * and so on. The chain continues across files.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, open, readFile, rename, rm, stat } from 'node:fs/promises';

export type AuditFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

const FIRST = '0'.repeat(64);
/** Maximum length of a value, in characters. It keeps client input from filling the disk. */
const MAX_VALUE_LENGTH = 8 * 1024;
/** File mode: only the server's OS user may read the audit log. */
const MODE = 0o600;

export interface AuditSetting {
  /** Maximum file size in bytes; 0 disables rotation. */
  readonly fileBytes: number;
  /** Number of files to keep, including the current one. */
  readonly files: number;
  /** Called when a line cannot be written. */
  readonly failed: (error: unknown) => void;
  /**
   * Called periodically with the last line's number and digest. A copy of these stored elsewhere
   * reveals whether the log, or its end, was replaced.
   */
  readonly anchor?: (end: ChainEnd) => void;
}

/** The last line written. */
export interface ChainEnd {
  readonly sequence: number;
  readonly hash: string;
}

const ANCHOR_MS = 10 * 60_000;

/** Maximum number of lines buffered in memory while the log cannot be written. */
const MAX_WAITING = 10_000;

export class AuditLog {
  readonly #path: string;
  readonly #setting: AuditSetting;
  #file: FileHandle;
  /** Current file size in bytes. */
  #bytes: number;
  #last: string;
  #sequence: number;
  #waiting: (ChainEnd & { readonly line: string })[] = [];
  #written: ChainEnd;
  #reported: number;
  readonly #anchors: NodeJS.Timeout;
  #queue: Promise<void> = Promise.resolve();

  private constructor(
    path: string,
    setting: AuditSetting,
    { file, bytes, last, sequence }: End & { readonly file: FileHandle },
  ) {
    this.#path = path;
    this.#setting = setting;
    this.#file = file;
    this.#bytes = bytes;
    this.#last = last;
    this.#sequence = sequence;
    this.#written = { sequence, hash: last };
    this.#reported = sequence;
    this.#anchors = setInterval(() => {
      this.#anchor();
    }, ANCHOR_MS).unref();
  }

  /** Opens the log and continues the existing chain. */
  static async open(path: string, setting: AuditSetting): Promise<AuditLog> {
    const end = (await endOf(path)) ?? { ...((await endOf(`${path}.1`)) ?? NO_LINES), bytes: 0 };
    return new AuditLog(path, setting, { ...end, file: await openFile(path) });
  }

  /** Queues an event; events are written in order. */
  write(event: string, user: string, fields: AuditFields = {}): void {
    this.#sequence += 1;
    const entry = {
      sequence: this.#sequence,
      time: new Date().toISOString(),
      event,
      user: cut(user),
      ...Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, cut(value)])),
      previous: this.#last,
    };
    const hash = digest(JSON.stringify(entry));
    this.#last = hash;
    if (this.#waiting.length < MAX_WAITING) {
      const line = `${escaped(JSON.stringify({ ...entry, hash }))}\n`;
      this.#waiting.push({ line, hash, sequence: this.#sequence });
    }
    this.#enqueue();
  }

  /**
   * Resolves once each queued event has either been passed to the operating system or failed to be
   * written.
   */
  async flush(): Promise<void> {
    await this.#queue;
  }

  /** Returns whether the log can be written. First retries the events whose write failed. */
  async isWritable(): Promise<boolean> {
    await this.#queue;
    if (this.#waiting.length > 0) {
      this.#enqueue();
      await this.#queue;
    }
    return this.#waiting.length === 0;
  }

  async close(): Promise<void> {
    clearInterval(this.#anchors);
    await this.#queue;
    this.#anchor();
    await this.#file.close();
  }

  /** Reports the end of the chain if it changed. */
  #anchor(): void {
    if (this.#written.sequence !== this.#reported) {
      this.#reported = this.#written.sequence;
      this.#setting.anchor?.(this.#written);
    }
  }

  #enqueue(): void {
    this.#queue = this.#queue.then(() => this.#drain()).catch(this.#setting.failed);
  }

  async #drain(): Promise<void> {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const { fileBytes } = this.#setting;
      const { line, sequence, hash } = next;
      const bytes = Buffer.byteLength(line);
      if (fileBytes > 0 && this.#bytes > 0 && this.#bytes + bytes > fileBytes) {
        await this.#rotate();
        this.#anchor();
      }
      await this.#file.appendFile(line);
      this.#bytes += bytes;
      this.#written = { sequence, hash };
      this.#waiting.shift();
    }
  }

  /** Renames the current file to `.1`, shifting older files only as far as needed. */
  async #rotate(): Promise<void> {
    const at = (number: number): string =>
      number === 0 ? this.#path : `${this.#path}.${String(number)}`;
    const oldest = this.#setting.files - 1;
    let free = 1;
    while (free < oldest && (await isThere(at(free)))) {
      free += 1;
    }
    for (let number = Math.min(free, oldest); number > 0; number -= 1) {
      await rename(at(number - 1), at(number));
    }
    if (oldest === 0) {
      await rm(this.#path);
    }
    const file = await openFile(this.#path);
    await this.#file.close();
    this.#file = file;
    this.#bytes = 0;
  }
}

/** The end of a file's chain. */
interface End {
  readonly bytes: number;
  readonly last: string;
  readonly sequence: number;
}

const NO_LINES: End = { bytes: 0, last: FIRST, sequence: 0 };

/** Returns `null` for a file without a complete line. */
async function endOf(path: string): Promise<End | null> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const lines = text.split('\n').filter((line) => line !== '');
  // Terminates a line truncated by a crash, so that the next event starts on a new line.
  if (text !== '' && !text.endsWith('\n')) {
    const file = await openFile(path);
    await file.appendFile('\n');
    await file.close();
  }
  const found = [...lines]
    .reverse()
    .map(parsed)
    .find((line) => line !== null);
  return found === undefined
    ? null
    : { bytes: Buffer.byteLength(text), last: found.hash, sequence: found.sequence };
}

async function openFile(path: string): Promise<FileHandle> {
  const file = await open(path, 'a', MODE);
  await file.chmod(MODE);
  return file;
}

async function isThere(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}

interface Entry {
  readonly sequence: number;
  readonly previous: string;
  readonly hash: string;
}

function parsed(line: string): Entry | null {
  try {
    const entry = JSON.parse(line) as Partial<Entry>;
    const isComplete = typeof entry.hash === 'string' && typeof entry.sequence === 'number';
    return isComplete ? (entry as Entry) : null;
  } catch {
    return null;
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function cut<T>(value: T): T | string {
  return typeof value === 'string' && value.length > MAX_VALUE_LENGTH
    ? `${value.slice(0, MAX_VALUE_LENGTH)}…`
    : value;
}

/**
 * Escapes control characters above U+001F, because logs are read in terminals. JSON already escapes
 * those up to U+001F.
 */
function escaped(json: string): string {
  return json.replace(/[\u007f-\u009f\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}
