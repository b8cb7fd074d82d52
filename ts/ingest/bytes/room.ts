/** Room on the disk: what files beside the database leave to it. */
import { statfs } from 'node:fs/promises';

import { DatabaseError } from '../../session/index.js';

/** Bytes written between two looks at the disk. */
const LOOK_EVERY = 64 * 1024 * 1024;
const MAX_KEPT = 1024 * 1024 * 1024;
const SHARE_KEPT = 0.05;

export class Room {
  readonly #path: string;
  readonly #what: string;
  readonly #kept: number;
  /** The first bytes look. */
  #unseen = LOOK_EVERY;

  /**
   * `kept`: bytes that stay free on the disk of `path`, the directory of `what`; 0 is 5 % of it,
   * 1 GiB at most.
   */
  constructor(path: string, kept: number, what: string) {
    this.#path = path;
    this.#what = what;
    this.#kept = kept;
  }

  /** Rejects with `DiskFull` when `bytes` are not to be written any more. */
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
        message: `the disk of ${this.#what} is full [free=${free}, kept=${kept}]`,
        hint: 'make room on the disk',
      });
    }
  }
}
