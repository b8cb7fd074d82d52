/** Compresses files that are sent repeatedly; each is compressed once, at the highest level. */
import * as zlib from 'node:zlib';

import type { Coding } from '../request/negotiation.js';

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = zlib.constants;
const BROTLI_QUALITY_ONCE = 9;
const GZIP_LEVEL_ONCE = 9;

/** Codings for files that are compressed once and sent repeatedly. */
export type FileCoding = Exclude<Coding, 'zstd'>;
export const FILE_CODINGS: readonly FileCoding[] = ['br', 'gzip'];

export function compressFile(body: Buffer, coding: FileCoding): Buffer {
  return coding === 'gzip'
    ? zlib.gzipSync(body, { level: GZIP_LEVEL_ONCE })
    : zlib.brotliCompressSync(body, {
        params: {
          [BROTLI_PARAM_QUALITY]: BROTLI_QUALITY_ONCE,
          [BROTLI_PARAM_SIZE_HINT]: body.length,
        },
      });
}
