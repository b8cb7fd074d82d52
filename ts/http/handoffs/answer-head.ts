/**
 * The header of a response that Node sent, as a template for responses that differ only in length
 * and date.
 */
import type { ServerResponse } from 'node:http';

const LINES = '(?:[^\\r\\n]+\\r\\n)*?';
const HEAD = new RegExp(
  `^(HTTP/1\\.1 200 OK\\r\\n${LINES}Content-Length: )\\d+` +
    `(\\r\\n${LINES}Date: )[^\\r\\n]+(\\r\\n${LINES}\\r\\n)$`,
);
/** Headers specific to one response, or to a response that closes its connection. */
const OWN = /^(?:content-encoding|set-cookie|retry-after|connection: close)/im;

/** Returns the header split around length and date; `null` if other responses would differ. */
export function answerHead(response: ServerResponse): [string, string, string] | null {
  // Not part of Node's documented interface.
  const { _header: head } = response as unknown as { readonly _header?: unknown };
  const found = typeof head === 'string' && !OWN.test(head) ? HEAD.exec(head) : null;
  const [, toLength, toDate, behind] = found ?? [];
  return toLength === undefined || toDate === undefined || behind === undefined
    ? null
    : [toLength, toDate, behind];
}
