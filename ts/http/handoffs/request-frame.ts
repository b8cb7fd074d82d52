/**
 * The bytes of a request around its SQL text. The handoff compares every request with this frame.
 */
import type { IncomingMessage } from 'node:http';

/** Undocumented members of Node's parser. */
interface Parser {
  /** The buffer that the parser is reading, which has all the bytes from one socket read. */
  getCurrentBuffer?(): Buffer;
}

export interface RequestFrame {
  /** The bytes before the SQL text. */
  readonly before: string;
  /** The bytes from the end of the SQL text to the end of the headers. */
  readonly after: string;
}

/** End of the headers. */
const END = '\r\n\r\n';
const VERSION = ' HTTP/1.1\r\n';
/** Matches lines of printable ASCII and tabs. */
const PLAIN = /^(?:[\t\x20-\x7e]*\r\n)*$/;
const QUERY = /[?&]query=/g;
/**
 * Parameters other than `query` that affect the response in the same way for every SQL text. A
 * request with any other parameter is not handed off.
 */
const REPEATABLE_PARAMETERS = new Set(['limit', 'count', 'nm', 'explain', 'quoteLargeNum', 'src']);
/** Headers of a request that has a body or ends its connection. */
const REFUSED = new Set([
  'content-length',
  'transfer-encoding',
  'expect',
  'upgrade',
  'trailer',
  'te',
  'http2-settings',
]);

/**
 * Splits a URL around the SQL text; returns `null` if repeats of the request could not be
 * recognised.
 */
export function splitAddress(url: string): readonly [before: string, after: string] | null {
  const marks = [...url.matchAll(QUERY)];
  const [mark] = marks;
  if (mark === undefined || marks.length > 1) {
    return null;
  }
  const start = mark.index + mark[0].length;
  const next = url.indexOf('&', start);
  const end = next < 0 ? url.length : next;
  const [before, after] = [url.slice(0, start), url.slice(end)];
  const pairs = [...before.slice(before.indexOf('?') + 1).split('&'), ...after.split('&')];
  const isKnown = (pair: string): boolean =>
    pair === '' || pair === 'query=' || REPEATABLE_PARAMETERS.has(pair.split('=', 1)[0] ?? '');
  return pairs.every(isKnown) ? [before, after] : null;
}

/**
 * Called while Node's parser is reading a request. Returns the request's frame if the request is
 * complete and no other bytes arrived with it. The next bytes on the connection then start a new
 * request. Returns `null` for any other request, or if the parser does not expose its buffer.
 */
export function frameOf(request: IncomingMessage): RequestFrame | null {
  const { parser } = request.socket as { readonly parser?: Parser | null };
  const bytes = parser?.getCurrentBuffer?.();
  const text = bytes?.toString('latin1') ?? '';
  const { url = '', rawHeaders, httpVersion } = request;
  const line = `GET ${url}${VERSION}`;
  const split = splitAddress(url);
  const isAlone = text.startsWith(line) && text.indexOf(END) === text.length - END.length;
  if (split === null || httpVersion !== '1.1' || !isAlone || !PLAIN.test(text)) {
    return null;
  }
  const headers = text.slice(line.length, -END.length).split('\r\n');
  const isSame = (header: string, at: number): boolean => {
    const colon = header.indexOf(':');
    const [name, value] = [header.slice(0, colon), header.slice(colon + 1).trim()];
    const isRead = name === rawHeaders[2 * at] && value === rawHeaders[2 * at + 1];
    return isRead && mayRepeat(name, value);
  };
  // Headers that arrived in an earlier read are in `rawHeaders` but not in `headers`.
  const isComplete = headers.length * 2 === rawHeaders.length && headers.every(isSame);
  const [before, after] = split;
  const behind = text.slice(line.length - VERSION.length);
  return isComplete ? { before: `GET ${before}`, after: `${after}${behind}` } : null;
}

function mayRepeat(name: string, value: string): boolean {
  const lower = name.toLowerCase();
  const isRepeatable = lower !== 'connection' || value.toLowerCase() === 'keep-alive';
  return isRepeatable && !REFUSED.has(lower);
}
