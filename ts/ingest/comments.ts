/** Comment lines at the beginning of the input, which are not data. */
import { ImportError } from './import-error.js';
import type { Sample } from './sample.js';
import { analyseText, type StructureHints, type TextStructure } from './structure.js';

interface DetectedText {
  readonly structure: TextStructure;
  /** The start of the input, without the leading comment lines. */
  readonly text: string;
  /** The whole input, without the leading comment lines. */
  readonly chunks: AsyncIterable<Buffer>;
  readonly notes: readonly string[];
}

const COMMENT = /^\ufeff?(?:#[^\r\n]*(?:\r\n|\r|\n))+/;

/**
 * Detects the structure of the input. If this fails because of leading comment lines (starting with
 * `#`), it tries again without them. They are not removed first, because a header may also start
 * with `#`.
 */
export function withoutComments(sample: Sample, hints: StructureHints): DetectedText {
  const { text, isComplete, chunks } = sample;
  try {
    return { structure: analyseText(text, isComplete, hints), text, chunks, notes: [] };
  } catch (error) {
    const comment = COMMENT.exec(text)?.[0] ?? '';
    if (!(error instanceof ImportError) || comment === '') {
      throw error;
    }
    // The comment lines become blank lines, which the reader skips but counts, so that line numbers
    // stay correct.
    const ends = comment.replaceAll(/[^\r\n]/g, '');
    const remainder = ends + text.slice(comment.length);
    const structure = analyseText(remainder, isComplete, hints);
    const lines = comment.match(/#[^\r\n]*/g)?.length ?? 0;
    const notes = [`comment lines skipped at the beginning: ${lines}`];
    const cutChunks = cut(chunks, Buffer.byteLength(comment), ends);
    return { structure, text: remainder, chunks: cutChunks, notes };
  }
}

async function* cut(
  chunks: AsyncIterable<Buffer>,
  bytes: number,
  lineEnds: string,
): AsyncGenerator<Buffer> {
  yield Buffer.from(lineEnds);
  let remaining = bytes;
  for await (const chunk of chunks) {
    const skipped = Math.min(remaining, chunk.length);
    remaining -= skipped;
    if (skipped < chunk.length) {
      yield chunk.subarray(skipped);
    }
  }
}
