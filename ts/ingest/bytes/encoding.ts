/**
 * Converts input to UTF-8. The encoding is specified by `encoding=` or a byte order mark. No
 * characters are substituted: bytes that are invalid in the encoding end the import with an error.
 */
import { TextDecoder } from 'node:util';

import { ImportError } from '../import-error.js';
import { peek } from './peek.js';

const MARKS: readonly (readonly [encoding: string, mark: readonly number[]])[] = [
  ['utf-8', [0xef, 0xbb, 0xbf]],
  ['utf-16le', [0xff, 0xfe]],
  ['utf-16be', [0xfe, 0xff]],
];
const MAX_MARK_LENGTH = 3;

/** Returns the encoding that the first bytes indicate. */
function encodingOf(head: Buffer): string {
  return MARKS.find(([, mark]) => mark.every((byte, at) => head[at] === byte))?.[0] ?? 'utf-8';
}

/**
 * Returns whether input with these first bytes is UTF-8, according to its byte order mark or the
 * named encoding.
 */
export function isUtf8(head: Buffer, named: string | null): boolean {
  return decoder(named ?? encodingOf(head)).encoding === 'utf-8';
}

/**
 * Converts input to UTF-8. UTF-8 input is passed through unchanged; the reader reports invalid
 * values.
 */
export async function* asUtf8(
  content: AsyncIterable<Buffer>,
  named: string | null,
  isComplete = true,
): AsyncGenerator<Buffer> {
  // Created before reading, so that an unknown encoding name is the first error reported.
  const given = named === null ? null : decoder(named);
  const { head, all } = await peek(content, MAX_MARK_LENGTH);
  const found = given ?? decoder(encodingOf(head));
  yield* found.encoding === 'utf-8' ? all : decoded(all, found, isComplete);
}

/** Returns whether the encoding is supported. */
export function isEncoding(name: string): boolean {
  try {
    decoder(name);
    return true;
  } catch {
    return false;
  }
}

function decoder(encoding: string): TextDecoder {
  try {
    return new TextDecoder(encoding, { fatal: true });
  } catch {
    throw new ImportError(`unknown encoding '${encoding}'; try utf-8, utf-16le or windows-1252`);
  }
}

async function* decoded(
  chunks: AsyncIterable<Buffer>,
  from: TextDecoder,
  isComplete: boolean,
): AsyncGenerator<Buffer> {
  const step = (chunk?: Buffer): Buffer => {
    try {
      return Buffer.from(from.decode(chunk, { stream: chunk !== undefined }));
    } catch {
      throw new ImportError(
        `the text is not valid ${from.encoding}: specify its encoding (encoding=)`,
      );
    }
  };
  for await (const chunk of chunks) {
    yield step(chunk);
  }
  if (isComplete) {
    yield step();
  }
}
