/** The console's files: ETag, ranges, compressed on request; the page with its content policy. */
import { KEYS } from '../../config/index.js';
import { acceptsGzip } from '../negotiation.js';
import {
  answerText,
  type HttpContext,
  type HttpServices,
  keepAliveHeader,
  promiseKeepAlive,
  type Route,
} from '../route.js';
import type { StaticFile } from '../static-files.js';

/**
 * Everything comes from here, nothing is inline. The console's elements are made through one
 * policy of trusted types (`ts/console/src/dom.ts`).
 */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "object-src 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types tidemark-templates',
].join('; ');

export function consoleRoutes(services: HttpServices): Route[] {
  const { config } = services;
  const keepAlive = keepAliveHeader({
    timeoutMs: config.get(KEYS.httpKeepAlive),
    max: config.get(KEYS.httpKeepAliveMax),
  });
  return [...services.console].map(([path, file]) => ({
    path,
    methods: ['GET'],
    access: 'open',
    handle: (context) => {
      promiseKeepAlive(context.res, keepAlive);
      sendFile(context, file);
    },
  }));
}

function sendFile(context: HttpContext, file: StaticFile): void {
  context.set('ETag', file.etag);
  context.set('Cache-Control', file.immutable ? 'public, max-age=31536000, immutable' : 'no-cache');
  if (matchesEtag(context.get('If-None-Match'), file.etag)) {
    context.status = 304;
    return;
  }
  context.set('Content-Type', file.type);
  if (file.type === 'text/html') {
    context.set('Content-Security-Policy', CONTENT_POLICY);
    context.set('Cross-Origin-Opener-Policy', 'same-origin');
    context.set('X-Frame-Options', 'DENY');
  }
  context.set('Accept-Ranges', 'bytes');
  const range = context.get('Range');
  if (range !== '') {
    sendRange(context, file, range);
    return;
  }
  context.status = 200;
  if (file.gzip === null) {
    context.body = file.body;
    return;
  }
  context.vary('Accept-Encoding');
  const compressed = acceptsGzip(context.req);
  if (compressed) {
    context.set('Content-Encoding', 'gzip');
  }
  context.body = compressed ? file.gzip : file.body;
}

function matchesEtag(header: string, etag: string): boolean {
  return header
    .split(',')
    .map((item) => item.trim().replace(/^W\//, ''))
    .some((item) => item === etag || item === '*');
}

/** One range, both ends included; several at once are answered with the whole. */
function sendRange(context: HttpContext, file: StaticFile, header: string): void {
  const { length } = file.body;
  const match = /^bytes=(\d*)-(\d*)$/.exec(header.trim());
  if (match === null || (match[1] === '' && match[2] === '')) {
    context.status = 200;
    context.body = file.body;
    return;
  }
  const suffix = match[1] === '';
  const start = suffix ? Math.max(length - Number(match[2]), 0) : Number(match[1]);
  const end = suffix || match[2] === '' ? length - 1 : Math.min(Number(match[2]), length - 1);
  if (start > end) {
    context.set('Content-Range', `bytes */${length}`);
    context.remove('ETag');
    answerText(context, 416, 'Range Not Satisfiable');
    return;
  }
  context.status = 206;
  context.set('Content-Range', `bytes ${start}-${end}/${length}`);
  context.body = file.body.subarray(start, end + 1);
}
