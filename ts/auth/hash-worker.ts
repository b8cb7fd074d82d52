/** One thread of `hash-pool.ts`: hashes what it is sent, one after the other. */
import { pbkdf2Sync } from 'node:crypto';
import { parentPort } from 'node:worker_threads';

/** A password and how it is to be hashed. */
export interface HashRequest {
  readonly password: string;
  readonly salt: Uint8Array;
  readonly iterations: number;
  readonly keyBytes: number;
}

parentPort?.on('message', ({ password, salt, iterations, keyBytes }: HashRequest) => {
  parentPort?.postMessage(pbkdf2Sync(password, salt, iterations, keyBytes, 'sha256'));
});
