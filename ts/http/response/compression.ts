/** How answers are compressed: streams as they come, short answers as a whole. */
import type { IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';

import { chooseCoding, type Coding } from '../request/negotiation.js';
import type { HttpContext } from '../route.js';

/** A stream that compresses; `flush` hands on what it holds back. */
export type Compressor = Transform & { flush(done: () => void): void };

/** Shorter answers gain nothing. */
export const MIN_COMPRESSED_BYTES = 1024;

/** Node has zstd since 22.15; before, it is not offered. */
interface Zstd {
  readonly createZstdCompress?: (options: object) => Compressor;
  readonly constants: { readonly ZSTD_c_compressionLevel?: number };
}
const { createZstdCompress, constants: zstdConstants } = zlib as unknown as Zstd;

const { BROTLI_PARAM_QUALITY, Z_BEST_SPEED } = zlib.constants;

/** Fast ones first: a client on the same machine must not wait for the last few percent. */
const STREAMED: readonly Coding[] =
  createZstdCompress === undefined ? ['gzip', 'br'] : ['zstd', 'gzip', 'br'];

const gzip = promisify<zlib.InputType, zlib.ZlibOptions, Buffer>(zlib.gzip);

/** What an answer made for one client is compressed with. */
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
        throw new Error('this Node has no zstd');
      }
      return createZstdCompress({ params: { [level]: 1 } });
    }
  }
}

/** Sets a body that is there as a whole, compressed where the client asks and it gains. */
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
