/**
 * The console's files, read at startup into a fixed map. A request path is never used as a file
 * path.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, posix } from 'node:path';

import { MIN_COMPRESSED_BYTES } from '../request/negotiation.js';
import { compressFile, type FileCoding } from './file-compression.js';

export interface StaticFile {
  readonly body: Buffer;
  /** Returns the compressed content; `null` if compression would not make the file smaller. */
  readonly compressed: ((coding: FileCoding) => Buffer) | null;
  readonly type: string;
  /** The ETag, including its quotes. */
  readonly etag: string;
  /** Whether the name contains a hash of the content. */
  readonly immutable: boolean;
}

/** Files, keyed by request path, for instance `/assets/main.js`. */
export type StaticFiles = ReadonlyMap<string, StaticFile>;

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'application/javascript',
  '.mjs': 'application/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.map': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.wasm': 'application/wasm',
  '.txt': 'text/plain; charset=utf-8',
};
const COMPRESSED = new Set(['.html', '.js', '.mjs', '.css', '.json', '.svg', '.txt']);
/**
 * The icon file that is also served at `/favicon.ico`, for browsers that request it without reading
 * the page.
 */
const ICON = /^\/assets\/icon\b.*\.svg$/;
const HASHED_NAME = /[.-][A-Za-z0-9_-]{8,}\.\w+$/;

/**
 * Loads the files. Returns none if the directory does not exist, as on a server without the
 * console.
 */
export function loadStaticFiles(directory: string): StaticFiles {
  const files = new Map<string, StaticFile>();
  for (const path of listFiles(directory)) {
    files.set(`/${path}`, readStaticFile(join(directory, path), path));
  }
  const index = files.get('/index.html');
  if (index !== undefined) {
    files.set('/', index);
  }
  const icon = [...files].find(([path]) => ICON.test(path))?.[1];
  if (icon !== undefined) {
    files.set('/favicon.ico', { ...icon, immutable: false });
  }
  return files;
}

function listFiles(directory: string, below = ''): string[] {
  try {
    const entries = readdirSync(join(directory, below), { withFileTypes: true });
    return entries.flatMap((entry) => {
      const path = posix.join(below, entry.name);
      return entry.isDirectory() ? listFiles(directory, path) : entry.isFile() ? [path] : [];
    });
  } catch {
    return [];
  }
}

function readStaticFile(location: string, path: string): StaticFile {
  const body = readFileSync(location);
  const extension = extname(path).toLowerCase();
  const compress = COMPRESSED.has(extension) && body.length >= MIN_COMPRESSED_BYTES;
  return {
    body,
    compressed: compress ? onceEach((coding) => compressFile(body, coding)) : null,
    type: TYPES[extension] ?? 'application/octet-stream',
    etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
    immutable: path.startsWith('assets/') && HASHED_NAME.test(path),
  };
}

/** Compresses on first use, so that compression does not delay startup. */
function onceEach(make: (coding: FileCoding) => Buffer): (coding: FileCoding) => Buffer {
  const compressed = new Map<FileCoding, Buffer>();
  return (coding) => {
    const bytes = compressed.get(coding) ?? make(coding);
    compressed.set(coding, bytes);
    return bytes;
  };
}
