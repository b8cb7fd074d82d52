/** Maps CancelRequests to the connections whose statements they cancel. */
import { randomBytes, randomInt, timingSafeEqual } from 'node:crypto';

const SECRET_BYTES = 4;

interface Entry {
  readonly secret: Buffer;
  readonly cancel: () => void;
}

/** The key data that a client needs to cancel. */
interface CancelKey {
  readonly processId: number;
  readonly secret: Buffer;
}

export class CancelKeys {
  private readonly entries = new Map<number, Entry>();

  register(cancel: () => void): CancelKey {
    let processId = 0;
    do {
      processId = randomInt(1, 0x7fff_ffff);
    } while (this.entries.has(processId));
    const secret = randomBytes(SECRET_BYTES);
    this.entries.set(processId, { secret, cancel });
    return { processId, secret };
  }

  /**
   * Cancels the statement that a request refers to. A request that does not match a connection is
   * ignored; there is never a reply.
   */
  cancel(processId: number, secret: Buffer): void {
    const entry = this.entries.get(processId);
    const known = entry?.secret ?? Buffer.alloc(SECRET_BYTES);
    const same = secret.length === known.length && timingSafeEqual(secret, known);
    if (same && entry !== undefined) {
      entry.cancel();
    }
  }

  forget(processId: number): void {
    this.entries.delete(processId);
  }
}
