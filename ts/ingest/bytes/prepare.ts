/** Bytes as they come become what the reader takes, UTF-8 with commas or another delimiter. */
import { asUtf8 } from './encoding.js';
import { inflated } from './gzip.js';
import { asCsv, type JsonText } from './json-text.js';

interface Preparation {
  /** As the sender named it; `null` finds it out. */
  readonly encoding: string | null;
  /** A text that begins as JSON does is JSON. */
  readonly json: boolean;
  /** Rows of JSON that name the columns. */
  readonly linesMax: number;
  /** The bytes are not only the beginning of a text. */
  readonly isWhole?: boolean;
}

interface PreparedText {
  readonly content: AsyncIterable<Buffer>;
  /** What JSON says of its columns; `null` for other texts. */
  readonly json: JsonText | null;
}

export async function prepare(
  content: AsyncIterable<Buffer>,
  { encoding, json, linesMax, isWhole = true }: Preparation,
): Promise<PreparedText> {
  const text = asUtf8(inflated(content, isWhole), encoding, isWhole);
  return json ? await asCsv(text, linesMax, isWhole) : { content: text, json: null };
}
