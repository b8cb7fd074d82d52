/**
 * Serves the console's files, with ETag, ranges, and compression on request. The page has a content
 * security policy.
 */
import { type FileCoding, FILE_CODINGS } from '../response/file-compression.js';
import { chooseCoding } from '../request/negotiation.js';
import {
  answerText,
  DISCOVERY_WAIT_MS,
  type HttpContext,
  type HttpServices,
  keepAliveHeader,
  promiseKeepAlive,
  type Route,
} from '../route.js';
import type { StaticFile } from '../response/static-files.js';

/**
 * Allows only resources from this server, and no inline code. The console creates its elements
 * through one trusted types policy (`ts/console/src/dom.ts`).
 */
async function contentPolicy({ authenticator }: HttpServices): Promise<string> {
  // The console requests tokens from the provider, and redirects there for sign-in and sign-out.
  const metadata = await authenticator.signOn?.metadata(DISCOVERY_WAIT_MS);
  const origins = [metadata?.token, metadata?.authorization, metadata?.endSession]
    .filter((address) => typeof address === 'string')
    .map((address) => new URL(address).origin);
  const elsewhere = [...new Set(origins)].map((origin) => ` ${origin}`).join('');
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    `connect-src 'self'${elsewhere}`,
    "worker-src 'self'",
    "base-uri 'none'",
    `form-action 'self'${elsewhere}`,
    "frame-ancestors 'none'",
    "object-src 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types tidemark-templates',
  ].join('; ');
}

export function consoleRoutes(services: HttpServices, base: string): Route[] {
  const { config } = services;
  const keepAlive = keepAliveHeader(config);
  const files = [...services.console].map(([path, file]): Route => ({
    path: base + path,
    methods: ['GET'],
    access: 'open',
    errors: 'text',
    about: path === '/' ? 'the [console](console.md)' : null,
    handle: async (context) => {
      promiseKeepAlive(context, keepAlive);
      if (file.type === 'text/html') {
        // Also set with status 304, because a cached page uses the headers of the last response.
        context.set('Content-Security-Policy', await contentPolicy(services));
        context.set('Cross-Origin-Opener-Policy', 'same-origin');
        context.set('X-Frame-Options', 'DENY');
      }
      sendFile(context, file);
    },
  }));
  return base === '' || files.length === 0 ? files : [toFolder(base), ...files];
}

/**
 * Redirects to the URL with a trailing slash, because the page refers to its files relative to its
 * directory.
 */
function toFolder(base: string): Route {
  return {
    path: base,
    methods: ['GET'],
    access: 'open',
    errors: 'text',
    about: null,
    handle: (context) => {
      context.set('Location', `${base}/`);
      answerText(context, 301, 'Moved Permanently');
    },
  };
}

function sendFile(context: HttpContext, file: StaticFile): void {
  context.set('Cache-Control', file.immutable ? 'public, max-age=31536000, immutable' : 'no-cache');
  context.set('ETag', file.etag);
  if (file.compressed !== null) {
    context.vary('Accept-Encoding');
  }
  if (matchesEtag(context.get('If-None-Match'), file)) {
    context.status = 304;
    return;
  }
  context.set('Content-Type', file.type);
  context.set('Accept-Ranges', 'bytes');
  const range = context.get('Range');
  if (range !== '' && isRangeCurrent(context.get('If-Range'), file)) {
    sendRange(context, file, range);
    return;
  }
  context.status = 200;
  const coding =
    file.compressed === null
      ? null
      : chooseCoding(context.req.headers['accept-encoding'], FILE_CODINGS);
  if (coding === null || file.compressed === null) {
    context.body = file.body;
    return;
  }
  context.set('Content-Encoding', coding);
  context.set('ETag', codedEtag(file, coding));
  context.body = file.compressed(coding);
}

/** Each coding has a different ETag, so that ranges of different codings are never combined. */
function codedEtag(file: StaticFile, coding: FileCoding): string {
  return `${file.etag.slice(0, -1)}-${coding}"`;
}

/** Whether the client has the file, in any coding. */
function matchesEtag(header: string, file: StaticFile): boolean {
  const forms = [file.etag, ...FILE_CODINGS.map((coding) => codedEtag(file, coding)), '*'];
  return header.split(',').some((item) => forms.includes(item.trim().replace(/^W\//, '')));
}

/**
 * Whether the `If-Range` header allows a range: the client's partial file must be from the same
 * version. Otherwise the whole file is sent.
 */
function isRangeCurrent(condition: string, file: StaticFile): boolean {
  return condition === '' || condition.trim() === file.etag;
}

/**
 * Sends a single range, with both ends inclusive. A request for several ranges gets the whole file.
 */
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
