/** The head of an answer as Node sent it, for answers that differ in length and date alone. */
import type { ServerResponse } from 'node:http';

const LINES = '(?:[^\\r\\n]+\\r\\n)*?';
const HEAD = new RegExp(
  `^(HTTP/1\\.1 200 OK\\r\\n${LINES}Content-Length: )\\d+` +
    `(\\r\\n${LINES}Date: )[^\\r\\n]+(\\r\\n${LINES}\\r\\n)$`,
);
/** What is said of one answer, or of one that ends its connection. */
const OWN = /^(?:content-encoding|set-cookie|retry-after|connection: close)/im;

/** Its parts around length and date; null where others would not be alike. */
export function answerHead(response: ServerResponse): [string, string, string] | null {
  // Node's documented interface does not have it.
  const { _header: head } = response as unknown as { readonly _header?: unknown };
  const found = typeof head === 'string' && !OWN.test(head) ? HEAD.exec(head) : null;
  const [, toLength, toDate, behind] = found ?? [];
  return toLength === undefined || toDate === undefined || behind === undefined
    ? null
    : [toLength, toDate, behind];
}
