/** Locates malformed lines in a file by the server's positions, and reads their text. */
import type { Proposal } from '../api/upload.js';

/** A malformed line, numbered as the server counts, including the header that was sent. */
export interface BadLine {
  readonly line: number;
  /** Number of the field, from 1; absent if the whole line is malformed. */
  readonly field?: number;
  readonly problem: string;
}

/** Text of a malformed line. */
export interface FileLine extends BadLine {
  /** The field as written, possibly truncated. */
  readonly value: string;
  /** The line, possibly truncated. */
  readonly text: string;
}

const CHUNK_BYTES = 1024 * 1024;
/** Maximum number of bytes to read per line. */
const LINE_BYTES = 16 * 1024;
/** Maximum number of characters to show per line. */
const SHOWN_LINE = 500;
const SHOWN_VALUE = 100;
const RETURN = 13;
const FEED = 10;

/** Parses a server message such as `line 4, field 3: bad syntax`. */
export function badLineOf(text: string): BadLine | undefined {
  const [, line, field, problem] = /^line (\d+)(?:, field (\d+))?: (.*)$/s.exec(text) ?? [];
  return line === undefined || problem === undefined
    ? undefined
    : { line: Number(line), ...(field === undefined ? {} : { field: Number(field) }), problem };
}

/**
 * Malformed lines with the file's line numbers and their text. The text is unknown, and empty, if
 * the file was sent unchanged (compressed, in another encoding, or JSON).
 */
export async function linesOf(
  file: Blob,
  proposal: Proposal,
  bad: readonly BadLine[],
): Promise<FileLine[]> {
  if (proposal.asIs) {
    return bad.map((one) => ({ ...one, value: '', text: '' }));
  }
  // The header that was sent is a single line, however many lines the header in the file has.
  const headerLines = (await lineStarts(file.slice(0, proposal.headerBytes))).length - 1;
  const rows = file.slice(proposal.headerBytes);
  const starts = await lineStarts(rows, new Set(bad.map(({ line }) => line - 1)));
  return await Promise.all(
    bad.map(async ({ line, ...one }) => {
      const start = starts.find((found) => found.line === line - 1)?.at ?? rows.size;
      const beginning = await rows.slice(start, start + LINE_BYTES).text();
      const { text, fields } = recordOf(beginning.replace(/^\n/, ''), proposal.delimiter);
      const value = one.field === undefined ? '' : (fields[one.field - 1] ?? '');
      return {
        ...one,
        line: line - 1 + headerLines,
        value: cut(value, SHOWN_VALUE),
        text: cut(text, SHOWN_LINE),
      };
    }),
  );
}

interface LineStart {
  readonly line: number;
  readonly at: number;
}

/** Starts of the selected lines, or of all lines. A line begins after an LF, a CR or a CRLF. */
async function lineStarts(bytes: Blob, selected?: ReadonlySet<number>): Promise<LineStart[]> {
  const found: LineStart[] = [];
  let line = 1;
  let before = 0;
  const begins = (at: number): void => {
    if (selected?.has(line) ?? true) {
      found.push({ line, at });
    }
  };
  begins(0);
  for (let from = 0; from < bytes.size && found.length !== selected?.size; from += CHUNK_BYTES) {
    const chunk = new Uint8Array(await bytes.slice(from, from + CHUNK_BYTES).arrayBuffer());
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      if (byte === RETURN || (byte === FEED && before !== RETURN)) {
        line += 1;
        begins(from + at + 1);
      }
      before = byte;
    }
  }
  return found;
}

/** The first record of a text, and its fields; line breaks inside quotes are part of the record. */
export function recordOf(
  text: string,
  delimiter: string,
): { readonly text: string; readonly fields: readonly string[] } {
  const fields: string[] = [];
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at <= text.length; at += 1) {
    const character = text[at] ?? '\n';
    if (isQuoted && text.startsWith('""', at)) {
      at += 1;
    } else if (character === '"' && (isQuoted || at === start)) {
      isQuoted = !isQuoted;
    } else if (isQuoted && at < text.length) {
      continue;
    } else if (character === delimiter || character === '\n' || character === '\r') {
      fields.push(text.slice(start, at));
      start = at + 1;
      if (character !== delimiter) {
        return { text: text.slice(0, at), fields };
      }
    }
  }
  return { text, fields };
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
