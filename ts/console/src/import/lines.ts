/**
 * Finds malformed lines in a file by the line numbers that the server reported, and reads their
 * text.
 */
import type { Proposal } from '../api/upload.js';

/**
 * A malformed line. Lines are numbered as on the server, where the header that was sent is line 1.
 */
export interface BadLine {
  readonly line: number;
  /** Number of the malformed field, starting at 1. Absent if the whole line is malformed. */
  readonly field?: number;
  readonly problem: string;
}

/** A malformed line, together with its text. */
export interface FileLine extends BadLine {
  /** The field as written in the file, truncated if long. */
  readonly value: string;
  /** The line as written in the file, truncated if long. */
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
 * Reads the text of malformed lines, and converts their numbers to line numbers of the file. The
 * text is empty if the file was sent unchanged (compressed, in another encoding, or JSON).
 */
export async function linesOf(
  file: Blob,
  proposal: Proposal,
  bad: readonly BadLine[],
): Promise<FileLine[]> {
  if (proposal.asIs) {
    return bad.map((one) => ({ ...one, value: '', text: '' }));
  }
  // The header that was sent is always one line, but the header in the file may have several lines.
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

/**
 * Finds the starts of the selected lines, or of all lines. A line begins after an LF, a CR or a
 * CRLF.
 */
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

/** Parses the first record of a text. Line breaks inside quotes are part of the record. */
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
