/** Response compression: as a stream, or in one step for short responses. */
import type { IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';

import { chooseCoding, type Coding, MIN_COMPRESSED_BYTES } from '../request/negotiation.js';
import type { HttpContext } from '../route.js';

/** A compressing stream; `flush` sends its buffered data. */
export type Compressor = Transform & { flush(done: () => void): void };

/** Part of Node since 22.15; with older versions zstd is not offered. */
interface Zstd {
  readonly createZstdCompress?: (options: object) => Compressor;
  readonly constants: { readonly ZSTD_c_compressionLevel?: number };
}
const { createZstdCompress, constants: zstdConstants } = zlib as unknown as Zstd;

const { BROTLI_PARAM_QUALITY, Z_BEST_SPEED } = zlib.constants;

/**
 * Fastest coding first, because a client on the same machine should not wait for a slightly smaller
 * response.
 */
const STREAMED: readonly Coding[] =
  createZstdCompress === undefined ? ['gzip', 'br'] : ['zstd', 'gzip', 'br'];

const gzip = promisify<zlib.InputType, zlib.ZlibOptions, Buffer>(zlib.gzip);

/** Returns the coding for a response that is generated while it is sent. */
export function streamedCoding(request: IncomingMessage): Coding | null {
  return chooseCoding(request.headers['accept-encoding'], STREAMED);
}

export function createCompressor(coding: Coding): Compressor {
  switch (coding) {
    case 'gzip':
      return zlib.createGzip({ level: Z_BEST_SPEED });
    case 'br':
      return zlib.createBrotliCompress({ params: { [BROTLI_PARAM_QUALITY]: 1 } });
    case 'zstd': {
      const level = zstdConstants.ZSTD_c_compressionLevel;
      if (createZstdCompress === undefined || level === undefined) {
        throw new Error('this version of Node.js does not support zstd');
      }
      return createZstdCompress({ params: { [level]: 1 } });
    }
  }
}

/** Sets a complete body, compressed if the client accepts it and the body is large enough. */
export async function setBody(context: HttpContext, body: Buffer): Promise<void> {
  const worthIt = body.length >= MIN_COMPRESSED_BYTES && context.method !== 'HEAD';
  if (worthIt && chooseCoding(context.req.headers['accept-encoding'], ['gzip']) === 'gzip') {
    context.vary('Accept-Encoding');
    context.set('Content-Encoding', 'gzip');
    context.body = await gzip(body, { level: Z_BEST_SPEED });
  } else {
    context.body = body;
  }
}
