/** Builders for import requests. */
import { type ImportPart, importCsv, readImportParameters } from '../../ts/ingest/index.js';
import {
  type ImportAnswer,
  type ImportDatabase,
  type ImportOptions,
} from '../../ts/ingest/import.js';

export interface TestPart {
  readonly name: string;
  readonly filename?: string | null;
  readonly content?: string;
  readonly content_b64?: string;
}

function bytesOf(part: TestPart): Buffer {
  return part.content_b64 === undefined
    ? Buffer.from(part.content ?? '')
    : Buffer.from(part.content_b64, 'base64');
}

/** Yields the content in small chunks. */
async function* inChunks(bytes: Buffer, chunkBytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    yield await Promise.resolve(bytes.subarray(at, at + chunkBytes));
  }
}

async function* partsOf(parts: readonly TestPart[]): AsyncGenerator<ImportPart> {
  for (const part of parts) {
    const filename = part.filename ?? null;
    yield await Promise.resolve({
      name: part.name,
      filename,
      content: inChunks(bytesOf(part), 7),
    });
  }
}

export function send(
  database: ImportDatabase,
  parameters: Iterable<readonly [string, string]>,
  parts: readonly TestPart[],
  options: ImportOptions = {},
): Promise<ImportAnswer> {
  const query = new URLSearchParams(
    [...parameters].map(([name, value]): [string, string] => [name, value]),
  );
  return importCsv(database, readImportParameters(query), partsOf(parts), options);
}

/** Imports one file into `t` and returns the JSON response. */
export async function importText(
  database: ImportDatabase,
  content: string,
  parameters: Readonly<Record<string, string>> = {},
  options: ImportOptions = {},
): Promise<Record<string, unknown>> {
  const query = Object.entries({ name: 't', fmt: 'json', ...parameters });
  const parts = [{ name: 'data', filename: 't.csv', content }];
  const answer = await send(database, query, parts, options);
  return JSON.parse(answer.body) as Record<string, unknown>;
}
