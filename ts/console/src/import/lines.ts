/** Lines of a file that could not be read: where the server found them, what the file has there. */
import type { Proposal } from '../api/upload.js';

/** A line with something wrong, as the server counts: the header that was sent included. */
export interface BadLine {
  readonly line: number;
  /** Its field, from 1; nothing where the line as a whole is wrong. */
  readonly field?: number;
  readonly problem: string;
}

/** What the file has in a bad line. */
export interface FileLine extends BadLine {
  /** The field as it is written, or its beginning. */
  readonly value: string;
  /** The line, or its beginning. */
  readonly text: string;
}

const PIECE_BYTES = 1024 * 1024;
/** A line is read so far. */
const LINE_BYTES = 16 * 1024;
/** Characters of it that are shown. */
const SHOWN_LINE = 500;
const SHOWN_VALUE = 100;
const RETURN = 13;
const FEED = 10;

/** Reads `line 4, field 3: bad syntax`. */
export function badLineOf(text: string): BadLine | undefined {
  const [, line, field, problem] = /^line (\d+)(?:, field (\d+))?: (.*)$/s.exec(text) ?? [];
  return line === undefined || problem === undefined
    ? undefined
    : { line: Number(line), ...(field === undefined ? {} : { field: Number(field) }), problem };
}

/**
 * Bad lines as the file numbers them, with what it has there. Of a file that went as it is
 * (compressed, in another encoding, JSON) the texts are unknown here, and empty.
 */
export async function linesOf(
  file: Blob,
  proposal: Proposal,
  bad: readonly BadLine[],
): Promise<FileLine[]> {
  if (proposal.asIs) {
    return bad.map((one) => ({ ...one, value: '', text: '' }));
  }
  // The header that is sent is one line, whatever the file has in its place.
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

/** Where the wanted lines begin, or all of them: behind an LF or a CR, even one with an LF. */
async function lineStarts(bytes: Blob, wanted?: ReadonlySet<number>): Promise<LineStart[]> {
  const found: LineStart[] = [];
  let line = 1;
  let before = 0;
  const begins = (at: number): void => {
    if (wanted?.has(line) ?? true) {
      found.push({ line, at });
    }
  };
  begins(0);
  for (let from = 0; from < bytes.size && found.length !== wanted?.size; from += PIECE_BYTES) {
    const piece = new Uint8Array(await bytes.slice(from, from + PIECE_BYTES).arrayBuffer());
    for (let at = 0; at < piece.length; at += 1) {
      const byte = piece[at] ?? 0;
      if (byte === RETURN || (byte === FEED && before !== RETURN)) {
        line += 1;
        begins(from + at + 1);
      }
      before = byte;
    }
  }
  return found;
}

/** The first line of a text and its fields; line ends in quotes belong to it. */
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
