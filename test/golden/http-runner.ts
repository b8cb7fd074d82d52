/**
 * Golden cases for the HTTP interface: a request, the expected response, and the expected state
 * afterwards. `README.md` in this folder describes the case format.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import { internalWord } from '../internal-words.js';
import { isObject, type Json, parseExact, printExact, sameValue } from './exact-json.js';
import { type Exchange, execute, type Reply, send } from './http-client.js';

interface Part {
  readonly name: string;
  readonly filename?: string | null;
  readonly content?: string;
  readonly content_b64?: string;
}

interface Request {
  readonly method: string;
  readonly path: string;
  readonly params?: readonly (readonly [string, string])[];
  readonly raw_query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly body_b64?: string;
  readonly multipart?: readonly Part[];
}

interface Expectation {
  readonly status: number;
  readonly reason?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly headers_absent?: readonly string[];
  readonly body?: string;
  readonly body_b64?: string;
  readonly body_re?: string;
  readonly body_json?: unknown;
  readonly body_prefix_b64?: string;
  readonly ignore?: readonly string[];
  readonly connection_closed?: boolean;
}

interface Afterwards {
  readonly sql: string;
  readonly dataset?: unknown;
  readonly error_re?: string;
}

export interface HttpCase {
  readonly id: string;
  readonly group: string;
  /** Ids of superseded cases that this case replaces. */
  readonly decides?: readonly string[];
  readonly requires?: 'auth';
  readonly setup?: readonly string[];
  readonly teardown?: readonly string[];
  readonly request: Request;
  readonly expect: Expectation;
  readonly after?: readonly Afterwards[];
}

interface HttpServers {
  readonly open: string;
  /** URL of a server started with `http.user=joe`, `http.password=secret`. */
  readonly login: string;
}

const BOUNDARY = '----goldenCaseBoundary';
/** Extra time for a slow machine in milliseconds; writes are visible before the response. */
const AFTER_MS = 300;

/** Returns `null` if the case passes, otherwise the problem. */
export async function runHttpCase(servers: HttpServers, golden: HttpCase): Promise<string | null> {
  const base = golden.requires === 'auth' ? servers.login : servers.open;
  const problems: string[] = [];
  for (const sql of golden.setup ?? []) {
    const reply = await execute(base, sql);
    const head = reply.body.subarray(0, 2000).toString();
    if (Math.floor(reply.status / 100) !== 2 || head.includes('"error"')) {
      problems.push(`setup failed: ${sql} → ${reply.status} ${head.slice(0, 200)}`);
    }
  }
  problems.push(...(await runRequest(base, golden)));
  for (const step of golden.after ?? []) {
    problems.push(...(await runAfterwards(base, step)));
  }
  for (const sql of golden.teardown ?? []) {
    await execute(base, sql).catch(() => undefined);
  }
  return problems.length === 0 ? null : problems.join('\n');
}

async function runRequest(base: string, golden: HttpCase): Promise<string[]> {
  const mustClose = golden.expect.connection_closed === true;
  try {
    const reply = await send(base, exchangeOf(golden.request));
    return mustClose
      ? [`expected the connection to close without an answer, got ${reply.status}`]
      : compare(golden.expect, reply);
  } catch (error) {
    return mustClose ? [] : [`request failed: ${String(error)}`];
  }
}

function exchangeOf(request: Request): Exchange {
  const headers: Record<string, string> = { ...request.headers };
  let body: Buffer | null = null;
  if (request.multipart !== undefined) {
    body = encodeMultipart(request.multipart);
    headers['Content-Type'] ??= `multipart/form-data; boundary=${BOUNDARY}`;
  } else if (request.body_b64 !== undefined) {
    body = Buffer.from(request.body_b64, 'base64');
  } else if (request.body !== undefined) {
    body = Buffer.from(request.body);
  }
  return { method: request.method, target: targetOf(request), headers, body };
}

function targetOf(request: Request): string {
  if (request.raw_query !== undefined) {
    return `${request.path}?${request.raw_query}`;
  }
  const pairs = (request.params ?? []).map((pair) => pair.map(encodeURIComponent).join('='));
  return pairs.length === 0 ? request.path : `${request.path}?${pairs.join('&')}`;
}

function encodeMultipart(parts: readonly Part[]): Buffer {
  const chunks: Buffer[] = [];
  for (const part of parts) {
    const filename = part.filename == null ? '' : `; filename="${part.filename}"`;
    const head = `Content-Disposition: form-data; name="${part.name}"${filename}`;
    const content =
      part.content_b64 === undefined
        ? Buffer.from(part.content ?? '')
        : Buffer.from(part.content_b64, 'base64');
    chunks.push(Buffer.from(`--${BOUNDARY}\r\n${head}\r\n\r\n`), content, Buffer.from('\r\n'));
  }
  return Buffer.concat([...chunks, Buffer.from(`--${BOUNDARY}--\r\n`)]);
}

function compare(expected: Expectation, reply: Reply): string[] {
  const problems: string[] = [];
  if (reply.status !== expected.status) {
    problems.push(difference('status', String(expected.status), String(reply.status)));
  }
  if (expected.reason !== undefined && reply.reason !== expected.reason) {
    problems.push(difference('reason', expected.reason, reply.reason));
  }
  for (const [name, value] of Object.entries(expected.headers ?? {})) {
    const got = headerOf(reply, name);
    const pattern = value.startsWith('re:') ? fullMatch(value.slice(3)) : null;
    if (got === undefined || (pattern === null ? got !== value : !pattern.test(got))) {
      problems.push(difference(`header ${name}`, value, got ?? 'nothing'));
    }
  }
  for (const name of expected.headers_absent ?? []) {
    if (headerOf(reply, name) !== undefined) {
      problems.push(`header ${name} must be absent`);
    }
  }
  return [...problems, ...internalWords(reply), ...compareBody(expected, reply.body)];
}

/** Returns the program internals that an error reveals. */
function internalWords({ status, body }: Reply): string[] {
  const error = status < 400 ? null : /"error":"((?:[^"\\]|\\.)*)"/.exec(body.toString('utf8'));
  const word = internalWord(error?.[1] ?? '');
  return word === null ? [] : [`names an internal term ('${word}')`];
}

function compareBody(expected: Expectation, body: Buffer): string[] {
  const text = body.toString('utf8');
  const problems: string[] = [];
  if (expected.body_b64 !== undefined) {
    if (!body.equals(Buffer.from(expected.body_b64, 'base64'))) {
      problems.push(difference('body bytes', expected.body_b64, body.toString('base64')));
    }
  } else if (expected.body !== undefined) {
    if (!body.equals(unescapeBytes(expected.body))) {
      problems.push(difference('body', expected.body, text));
    }
  } else if (expected.body_re !== undefined) {
    if (!fullMatch(expected.body_re).test(text)) {
      problems.push(difference('body', expected.body_re, text));
    }
  } else if (expected.body_json !== undefined) {
    problems.push(...compareJson(expected, text));
  }
  const prefix = Buffer.from(expected.body_prefix_b64 ?? '', 'base64');
  if (!body.subarray(0, prefix.length).equals(prefix)) {
    problems.push(`body begins with ${body.subarray(0, 16).toString('hex')}`);
  }
  return problems;
}

function compareJson(expected: Expectation, text: string): string[] {
  let got: Json;
  try {
    got = parseExact(text);
  } catch {
    return [`the body is not JSON: ${text.slice(0, 200)}`];
  }
  const ignored = expected.ignore ?? [];
  const expectedBody = withoutPaths(parseExact(JSON.stringify(expected.body_json)), ignored);
  const rest = withoutPaths(got, ignored);
  return sameValue(expectedBody, rest)
    ? []
    : [difference('body', printExact(expectedBody), printExact(rest))];
}

/** Replaces the members at the dotted paths, so only their presence is compared. */
function withoutPaths(document: Json, paths: readonly string[]): Json {
  return paths.reduce<Json>((rest, path) => withoutPath(rest, path.split('.')), document);
}

function withoutPath(value: Json, [name = '', ...below]: readonly string[]): Json {
  const replace = (item: Json): Json =>
    below.length === 0 ? '<ignored>' : withoutPath(item, below);
  if (Array.isArray(value)) {
    return value.map((item: Json, index) => (String(index) === name ? replace(item) : item));
  }
  const item = isObject(value) ? value[name] : undefined;
  return isObject(value) && item !== undefined ? { ...value, [name]: replace(item) } : value;
}

async function runAfterwards(base: string, step: Afterwards): Promise<string[]> {
  const end = Date.now() + AFTER_MS;
  for (;;) {
    const reply = await execute(base, step.sql);
    const text = reply.body.toString('utf8');
    if (holds(step, text)) {
      return [];
    }
    if (Date.now() > end) {
      const expected = step.error_re ?? JSON.stringify(step.dataset);
      return [difference(`after: ${step.sql}`, expected, text)];
    }
    await sleep(50);
  }
}

function holds(step: Afterwards, text: string): boolean {
  try {
    const document = parseExact(text);
    const member = (name: string): Json | undefined =>
      isObject(document) ? document[name] : undefined;
    if (step.error_re !== undefined) {
      const error = member('error');
      return fullMatch(step.error_re).test(typeof error === 'string' ? error : '');
    }
    return sameValue(parseExact(JSON.stringify(step.dataset)), member('dataset'));
  } catch {
    return false;
  }
}

function headerOf(reply: Reply, name: string): string | undefined {
  const value = reply.headers[name.toLowerCase()];
  return Array.isArray(value) ? value.join(', ') : value;
}

function fullMatch(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`, 's');
}

/** Lone low surrogates U+DC80–U+DCFF represent bytes that are not UTF-8. */
function unescapeBytes(text: string): Buffer {
  const chunks = text.split(/(?<![\ud800-\udbff])([\udc80-\udcff])/);
  return Buffer.concat(
    chunks.map((chunk) =>
      /^[\udc80-\udcff]$/.test(chunk)
        ? Buffer.from([chunk.charCodeAt(0) - 0xdc00])
        : Buffer.from(chunk),
    ),
  );
}

function difference(what: string, expected: string, got: string): string {
  let at = 0;
  while (at < expected.length && expected[at] === got[at]) {
    at += 1;
  }
  const from = Math.max(at - 40, 0);
  const cut = (text: string): string => text.slice(from, from + 160);
  return `${what}\n  expected ${cut(expected)}\n  got      ${cut(got)}`;
}
