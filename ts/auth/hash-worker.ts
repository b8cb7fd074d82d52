/** A thread of `hash-pool.ts`: hashes one request at a time. */
import { pbkdf2Sync } from 'node:crypto';
import { parentPort } from 'node:worker_threads';

/** A password and its hash parameters. */
export interface HashRequest {
  readonly password: string;
  readonly salt: Uint8Array;
  readonly iterations: number;
  readonly keyBytes: number;
}

parentPort?.on('message', ({ password, salt, iterations, keyBytes }: HashRequest) => {
  parentPort?.postMessage(pbkdf2Sync(password, salt, iterations, keyBytes, 'sha256'));
});
