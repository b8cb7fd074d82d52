/**
 * The audit log: who came in or was refused, what changed. One JSON line per event in a file of its
 * own; each line carries a digest of itself and of the line before, so that a line taken out or
 * changed is told.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, open, readFile } from 'node:fs/promises';

export type AuditFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

const FIRST = '0'.repeat(64);
/** Characters of one value; what a client sends must not fill the disk. */
const LONGEST_VALUE = 8 * 1024;
/** Only the server's user reads who did what. */
const MODE = 0o600;

export class AuditLog {
  readonly #file: FileHandle;
  readonly #failed: (error: unknown) => void;
  #last: string;
  #sequence: number;
  #queue: Promise<void> = Promise.resolve();

  private constructor(
    file: FileHandle,
    { last, sequence }: { last: string; sequence: number },
    failed: (error: unknown) => void,
  ) {
    this.#file = file;
    this.#last = last;
    this.#sequence = sequence;
    this.#failed = failed;
  }

  /** Goes on with the chain that is there. `failed` is told when a line cannot be written. */
  static async open(path: string, failed: (error: unknown) => void): Promise<AuditLog> {
    const text = await readFile(path, 'utf8').catch(() => '');
    const file = await open(path, 'a', MODE);
    await file.chmod(MODE);
    const lines = text.split('\n').filter((line) => line !== '');
    // A line that a crash cut off begins no new one.
    if (text !== '' && !text.endsWith('\n')) {
      await file.appendFile('\n');
    }
    const last = [...lines]
      .reverse()
      .map(parsed)
      .find((line) => line !== null);
    const end = { last: last?.hash ?? FIRST, sequence: last?.sequence ?? 0 };
    return new AuditLog(file, end, failed);
  }

  /** Takes an event; it is written in its turn. */
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
    const line = `${escaped(JSON.stringify({ ...entry, hash }))}\n`;
    this.#queue = this.#queue.then(() => this.#file.appendFile(line)).catch(this.#failed);
  }

  /** Resolves when everything taken is with the operating system. */
  async flush(): Promise<void> {
    await this.#queue;
  }

  async close(): Promise<void> {
    await this.#queue;
    await this.#file.close();
  }
}

/** The first line of an audit log that is not what was written; null when all are. */
export function brokenLine(text: string): number | null {
  let previous = FIRST;
  const lines = text.split('\n').filter((line) => line !== '');
  for (const [index, line] of lines.entries()) {
    const entry = parsed(line);
    if (entry === null) {
      return index + 1;
    }
    const { hash, ...rest } = entry;
    if (rest.previous !== previous || digest(JSON.stringify(rest)) !== hash) {
      return index + 1;
    }
    previous = hash;
  }
  return null;
}

interface Entry {
  readonly sequence: number;
  readonly previous: string;
  readonly hash: string;
}

function parsed(line: string): Entry | null {
  try {
    const entry = JSON.parse(line) as Partial<Entry>;
    const isWhole = typeof entry.hash === 'string' && typeof entry.sequence === 'number';
    return isWhole ? (entry as Entry) : null;
  } catch {
    return null;
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function cut<T>(value: T): T | string {
  return typeof value === 'string' && value.length > LONGEST_VALUE
    ? `${value.slice(0, LONGEST_VALUE)}…`
    : value;
}

/** Logs are read in terminals: JSON escapes what is below a blank, and this what lies above. */
function escaped(json: string): string {
  return json.replace(/[\u007f-\u009f\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}
