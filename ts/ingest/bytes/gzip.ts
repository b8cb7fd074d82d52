/** Decompresses gzip input, regardless of its file name and headers. */
import { pipeline, Readable } from 'node:stream';
import { constants, createGunzip } from 'node:zlib';

import { ImportError } from '../import-error.js';
import { inflatesTooFar } from './inflation.js';
import { peek } from './peek.js';

const MAGIC: readonly number[] = [0x1f, 0x8b];
const CHUNK_BYTES = 256 * 1024;

/** Returns whether the input starts with gzip's magic bytes. */
export function isGzip(head: Buffer): boolean {
  return MAGIC.every((byte, at) => head[at] === byte);
}

/** Decompresses the input. With `isComplete`, a truncated stream is an error. */
export async function* inflated(
  content: AsyncIterable<Buffer>,
  isComplete: boolean,
): AsyncGenerator<Buffer> {
  const { head, all } = await peek(content, MAGIC.length);
  yield* isGzip(head) ? inflate(all, isComplete) : all;
}

async function* inflate(
  content: AsyncIterable<Buffer>,
  isComplete: boolean,
): AsyncGenerator<Buffer> {
  const finishFlush = isComplete ? constants.Z_FINISH : constants.Z_SYNC_FLUSH;
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES, finishFlush });
  pipeline(Readable.from(content, { objectMode: true }), gunzip, () => undefined);
  let total = 0;
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      total += chunk.length;
      if (inflatesTooFar(total, gunzip.bytesWritten)) {
        throw new ImportError('the decompressed gzip data is too large');
      }
      yield chunk;
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw code.startsWith('Z_') ? new ImportError(`the gzip data is damaged: ${code}`) : error;
  }
}
