/**
 * POST and DELETE /api/v1/import/file: uploads a Parquet file under a generated name, and removes
 * it. The file is stored in the directory that `read_parquet` and COPY read, so that SQL statements
 * can use it.
 */
import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, readdir, rm, stat, statfs } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';

import { KEYS } from '../../config/index.js';
import type { HttpPaths } from '../paths.js';
import { BodyError, onEarlyEnd, watchBody } from '../request/request-body.js';
import { answer, type HttpContext, type HttpServices, JSON_TYPE, type Route } from '../route.js';

/** Directory for uploads, below the import directory; its files are temporary. */
export const UPLOADS = 'upload';
const NAME = /^upload\/([0-9a-f]{32}\.parquet)$/;
const NAME_BYTES = 16;
/** How long a file is retained if its uploader does not remove it. */
const RETENTION_MS = 24 * 60 * 60 * 1000;

export function importFileRoute(services: HttpServices, paths: HttpPaths): Route {
  const folder = join(services.importRoot, UPLOADS);
  const readOnly = services.config.get(KEYS.httpReadOnly);
  return {
    path: paths.importFile,
    methods: ['POST', 'DELETE'],
    access: 'data',
    errors: 'json',
    permission: 'WRITE FILES',
    about: 'uploads a Parquet file for `read_parquet`',
    handle: async (context) => {
      if (readOnly) {
        refuse(context, 403, 'this endpoint is read-only');
        return;
      }
      if (context.method === 'POST') {
        await receive(context, services, folder);
      } else {
        await remove(context, folder);
      }
    },
  };
}

async function receive(
  context: HttpContext,
  services: HttpServices,
  folder: string,
): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await sweep(folder);
  const { bavail, bsize } = await statfs(folder);
  const length = Number(context.get('Content-Length') || 0);
  if (bavail * bsize < length + services.config.get(KEYS.diskWatermark)) {
    // The body must be consumed: closing the connection early would lose the response.
    context.req.resume();
    refuse(context, 507, 'not enough disk space for the file');
    return;
  }
  const name = `${randomBytes(NAME_BYTES).toString('hex')}.parquet`;
  await store(context.req, join(folder, name), context.state.timeouts.bodyMs);
  answer(context, 200, JSON_TYPE, JSON.stringify({ file: `${UPLOADS}/${name}` }));
}

/** Writes a body to a file; an incomplete file is removed. */
function store(request: IncomingMessage, path: string, stallMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const file = createWriteStream(path, { flags: 'wx', mode: 0o600 });
    let isOver = false;
    const fail = (error: Error): void => {
      if (isOver) {
        return;
      }
      isOver = true;
      stop();
      request.unpipe(file);
      request.resume();
      const reason = 'code' in error && error.code === 'ENOSPC' ? diskFull() : error;
      const remove = (): void =>
        void rm(path, { force: true }).finally(() => {
          reject(reason);
        });
      // A file that is still being opened is removed later; otherwise opening it would create it
      // again.
      if (file.closed) {
        remove();
      } else {
        file.once('close', remove);
        file.destroy();
      }
    };
    const stop = watchBody(request, stallMs, fail);
    onEarlyEnd(request, fail);
    file.once('error', fail);
    file.once('close', () => {
      if (!isOver) {
        isOver = true;
        stop();
        resolve();
      }
    });
    request.pipe(file);
  });
}

function diskFull(): BodyError {
  return new BodyError(507, 'not enough disk space for the file');
}

async function remove(context: HttpContext, folder: string): Promise<void> {
  const name = NAME.exec(context.state.parameters.get('file') ?? '')?.[1];
  if (name === undefined) {
    refuse(context, 400, 'expected file=upload/NAME.parquet, as returned by the upload');
    return;
  }
  await rm(join(folder, name), { force: true });
  answer(context, 200, JSON_TYPE, JSON.stringify({ status: 'OK' }));
}

/** Removes expired uploads. */
async function sweep(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => null);
    if (NAME.test(`${UPLOADS}/${name}`) && found && Date.now() - found.mtimeMs > RETENTION_MS) {
      await rm(path, { force: true });
    }
  }
}

function refuse(context: HttpContext, status: number, error: string): void {
  answer(context, status, JSON_TYPE, JSON.stringify({ error }));
}
