/** Monitors the free disk space that files other than the database's must leave. */
import { statfs } from 'node:fs/promises';

import { DatabaseError } from '../../session/index.js';

/** Bytes written between two checks of the disk. */
const LOOK_EVERY = 64 * 1024 * 1024;
const MAX_KEPT = 1024 * 1024 * 1024;
const SHARE_KEPT = 0.05;

export class Room {
  readonly #path: string;
  readonly #what: string;
  readonly #kept: number;
  /** Starts at the interval, so that the first bytes trigger a check. */
  #unseen = LOOK_EVERY;

  /**
   * `kept` is the number of bytes to leave free on the disk that contains `path`, the directory of
   * `what`; 0 means 5 % of the disk, at most 1 GiB.
   */
  constructor(path: string, kept: number, what: string) {
    this.#path = path;
    this.#what = what;
    this.#kept = kept;
  }

  /** Rejects with `DiskFull` if `bytes` must not be written. */
  async take(bytes: number): Promise<void> {
    this.#unseen += bytes;
    if (this.#unseen < LOOK_EVERY) {
      return;
    }
    this.#unseen = 0;
    const { bavail, blocks, bsize } = await statfs(this.#path);
    const share = Math.min(Math.floor(blocks * bsize * SHARE_KEPT), MAX_KEPT);
    const kept = this.#kept > 0 ? this.#kept : share;
    const free = bavail * bsize;
    if (free < kept) {
      throw new DatabaseError({
        code: 'DiskFull',
        message: `not enough disk space for ${this.#what} [free=${free}, kept=${kept}]`,
        hint: 'free disk space',
      });
    }
  }
}
