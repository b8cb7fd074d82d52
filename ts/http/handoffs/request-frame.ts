/**
 * The bytes of a request around the text of its query: what every request is compared with by who
 * answers a client that repeats itself.
 */
import type { IncomingMessage } from 'node:http';

/** What is used of Node's parser, which its documented interface does not have. */
interface Parser {
  /** What it reads at the moment: all that came at once from the socket. */
  getCurrentBuffer?(): Buffer;
}

export interface RequestFrame {
  /** Up to the text of the query. */
  readonly before: string;
  /** From there to the end of the headers. */
  readonly after: string;
}

/** The end of the headers. */
const END = '\r\n\r\n';
const VERSION = ' HTTP/1.1\r\n';
/** Printable ASCII and tabs, in lines. */
const PLAIN = /^(?:[\t\x20-\x7e]*\r\n)*$/;
const QUERY = /[?&]query=/g;
/**
 * Parameters beside the query that change no more of an answer than they do each time. The answer
 * to others is not that of a handoff.
 */
const OTHERS = new Set(['limit', 'count', 'nm', 'explain', 'quoteLargeNum', 'src']);
/** Headers of requests that go on behind their headers, or end their connection. */
const REFUSED = new Set([
  'content-length',
  'transfer-encoding',
  'expect',
  'upgrade',
  'trailer',
  'te',
  'http2-settings',
]);

/** Where the text of the query is in an address; null where another request would not be alike. */
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
    pair === '' || pair === 'query=' || OTHERS.has(pair.split('=', 1)[0] ?? '');
  return pairs.every(isKnown) ? [before, after] : null;
}

/**
 * The frame of a request that came at once and alone, while Node's parser reads it; null for any
 * other, and where the parser does not tell. What comes next on its connection begins a request.
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
  // What the parser was in the middle of before would be among its headers.
  const isWhole = headers.length * 2 === rawHeaders.length && headers.every(isSame);
  const [before, after] = split;
  const behind = text.slice(line.length - VERSION.length);
  return isWhole ? { before: `GET ${before}`, after: `${after}${behind}` } : null;
}

function mayRepeat(name: string, value: string): boolean {
  const lower = name.toLowerCase();
  const isKept = lower !== 'connection' || value.toLowerCase() === 'keep-alive';
  return isKept && !REFUSED.has(lower);
}
