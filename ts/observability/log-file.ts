/**
 * A log file with rotation. A full file is renamed to `server.log.1`, the previous `.1` to `.2`,
 * and so on. If a line cannot be written to the file, it is written to the fallback.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';

/** File mode: only the server's OS user may read the log. */
const MODE = 0o600;

interface LogFileOptions {
  readonly path: string;
  /** Maximum file size in bytes; 0 disables rotation. */
  readonly maxBytes: number;
  /** Number of files to keep, including the current one. */
  readonly files: number;
  /** Receives lines that cannot be written to the file. */
  readonly fallback: (line: string) => void;
}

export class LogFile {
  readonly #options: LogFileOptions;
  #descriptor = -1;
  #bytes = 0;

  /** Opens the file and appends to it. Throws if the file cannot be opened. */
  constructor(options: LogFileOptions) {
    this.#options = options;
    mkdirSync(dirname(options.path), { recursive: true, mode: 0o700 });
    this.#open();
  }

  write(line: string): void {
    const { maxBytes, fallback } = this.#options;
    const bytes = Buffer.byteLength(line);
    try {
      if (this.#descriptor < 0) {
        this.#open();
      }
      if (maxBytes > 0 && this.#bytes > 0 && this.#bytes + bytes > maxBytes) {
        this.#rotate();
      }
      writeSync(this.#descriptor, line);
      this.#bytes += bytes;
    } catch {
      fallback(line);
    }
  }

  /** Opens the file again, for programs that rename it, such as logrotate. */
  reopen(): void {
    this.close();
    try {
      this.#open();
    } catch {
      // The next line tries the file again. If that fails, the line goes to the fallback.
    }
  }

  close(): void {
    if (this.#descriptor >= 0) {
      closeSync(this.#descriptor);
      this.#descriptor = -1;
    }
  }

  #open(): void {
    this.#descriptor = openSync(this.#options.path, 'a', MODE);
    this.#bytes = fstatSync(this.#descriptor).size;
  }

  /** Renames the current file to `.1`, shifting older files only as far as needed. */
  #rotate(): void {
    const { path, files } = this.#options;
    const at = (number: number): string => (number === 0 ? path : `${path}.${number}`);
    this.close();
    const oldest = files - 1;
    let free = 1;
    while (free < oldest && existsSync(at(free))) {
      free += 1;
    }
    for (let number = Math.min(free, oldest); number > 0; number -= 1) {
      renameSync(at(number - 1), at(number));
    }
    if (oldest === 0) {
      rmSync(path);
    }
    this.#open();
  }
}
