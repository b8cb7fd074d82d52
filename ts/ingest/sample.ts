/**
 * Reads a sample of the input for detection. The import then reads the complete input, including
 * the sample.
 */
import { MAX_SAMPLE_BYTES } from './limits.js';

export interface Sample {
  readonly text: string;
  /** Whether the sample is the complete input. */
  readonly isComplete: boolean;
  /** The complete input, including the sample. */
  readonly chunks: AsyncIterable<Buffer>;
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** Reads slightly more than `linesMax` lines, or the complete input if it is shorter. */
export async function readSample(
  content: AsyncIterable<Buffer>,
  linesMax: number,
): Promise<Sample> {
  const iterator = content[Symbol.asyncIterator]();
  const chunks: Buffer[] = [];
  let lines = 0;
  let bytes = 0;
  let isComplete = false;
  while (lines <= linesMax && bytes < MAX_SAMPLE_BYTES) {
    const next = await iterator.next();
    if (next.done === true) {
      isComplete = true;
      break;
    }
    chunks.push(next.value);
    bytes += next.value.length;
    lines += countLineEnds(next.value);
  }
  const text = Buffer.concat(chunks).toString('utf8');
  return { text, isComplete, chunks: replay(chunks, iterator, isComplete) };
}

/** Counts line ends; CR LF counts as one. */
function countLineEnds(chunk: Buffer): number {
  let count = 0;
  for (let at = 0; at < chunk.length; at += 1) {
    const byte = chunk[at];
    if (byte === LINE_FEED || (byte === CARRIAGE_RETURN && chunk[at + 1] !== LINE_FEED)) {
      count += 1;
    }
  }
  return count;
}

async function* replay(
  chunks: readonly Buffer[],
  iterator: AsyncIterator<Buffer>,
  isComplete: boolean,
): AsyncGenerator<Buffer> {
  yield* chunks;
  while (!isComplete) {
    const next = await iterator.next();
    if (next.done === true) {
      return;
    }
    yield next.value;
  }
}
