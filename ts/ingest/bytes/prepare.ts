/** Prepares input for the reader: UTF-8 CSV with any delimiter. */
import { asUtf8 } from './encoding.js';
import { inflated } from './gzip.js';
import { asCsv, type JsonText } from './json-text.js';

interface Preparation {
  /** The encoding that the sender specified; `null` to detect it. */
  readonly encoding: string | null;
  /** Whether to treat input that starts like JSON as JSON. */
  readonly json: boolean;
  /** Number of JSON rows that determine the columns. */
  readonly linesMax: number;
  /** False if the bytes are only the start of the input. */
  readonly isComplete?: boolean;
}

interface PreparedText {
  readonly content: AsyncIterable<Buffer>;
  /** Details of JSON input; `null` for other input. */
  readonly json: JsonText | null;
}

export async function prepare(
  content: AsyncIterable<Buffer>,
  { encoding, json, linesMax, isComplete = true }: Preparation,
): Promise<PreparedText> {
  const text = asUtf8(inflated(content, isComplete), encoding, isComplete);
  return json ? await asCsv(text, linesMax, isComplete) : { content: text, json: null };
}
