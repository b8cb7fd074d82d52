/**
 * Ensures that enough disk space remains free when the server writes files other than the
 * database's own.
 */
import { statfs } from 'node:fs/promises';

import { DatabaseError } from '../../session/index.js';

/** Bytes written between two checks of the disk. */
const CHECK_INTERVAL_BYTES = 64 * 1024 * 1024;
const MAX_RESERVED_BYTES = 1024 * 1024 * 1024;
const RESERVED_FRACTION = 0.05;

export class FreeSpace {
  readonly #path: string;
  readonly #what: string;
  readonly #reservedBytes: number;
  /** Starts at the interval, so that the first write triggers a check. */
  #uncheckedBytes = CHECK_INTERVAL_BYTES;

  /**
   * `reservedBytes` is the number of bytes that must remain free on the disk that contains `path`;
   * 0 means 5 % of the disk, at most 1 GiB. `what` describes the directory `path`.
   */
  constructor(path: string, reservedBytes: number, what: string) {
    this.#path = path;
    this.#what = what;
    this.#reservedBytes = reservedBytes;
  }

  /** Rejects with `DiskFull` if `bytes` must not be written. */
  async check(bytes: number): Promise<void> {
    this.#uncheckedBytes += bytes;
    if (this.#uncheckedBytes < CHECK_INTERVAL_BYTES) {
      return;
    }
    this.#uncheckedBytes = 0;
    const { bavail, blocks, bsize } = await statfs(this.#path);
    const defaultBytes = Math.min(
      Math.floor(blocks * bsize * RESERVED_FRACTION),
      MAX_RESERVED_BYTES,
    );
    const reservedBytes = this.#reservedBytes > 0 ? this.#reservedBytes : defaultBytes;
    const free = bavail * bsize;
    if (free < reservedBytes) {
      throw new DatabaseError({
        code: 'DiskFull',
        message: `not enough disk space for ${this.#what} [free=${free}, kept=${reservedBytes}]`,
        hint: 'free disk space',
      });
    }
  }
}
