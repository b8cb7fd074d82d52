/**
 * Runs the SQL and shell examples of a page in order. A `sql` block runs over HTTP, a `sh` block in
 * a shell where `localhost:9000` is the server. A `csv` or `text` block that follows is the
 * expected output; for `sql`, it is the output of the last statement. An `sql wire` block runs over
 * the PostgreSQL wire protocol, on its own connection.
 */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { send } from '../golden/http-client.js';
import { pgClient } from '../pg-client.js';
import { until } from '../until.js';
import type { Setup } from './setups.js';

export const DOCS = fileURLToPath(new URL('../../../docs', import.meta.url));
/** The examples' output has the same line endings as the documents. */
const BLOCK = /^```(sql|sh)(?: ([^\n]*))?\n(.*?)^```$(?:\n+```(csv|text)\n(.*?)^```$)?/gms;
const run = promisify(execFile);

interface Example {
  readonly language: string;
  /** The words after the language in the block's first line. */
  readonly options: string;
  readonly code: string;
  /** The expected output, if the page shows it. */
  readonly output: string | null;
}

/** The addresses of a running server. */
interface Server {
  /** `http://HOST:PORT` */
  readonly url: string;
  /** `HOST:PORT` */
  readonly pg: string;
}

type Headers = Record<string, string>;

export function examplesOf(page: string): Example[] {
  return [...page.matchAll(BLOCK)].map(([, language = '', options = '', code = '', , output]) => ({
    language,
    options,
    code,
    output: output ?? null,
  }));
}

/** Returns the examples of a page, by its path in `docs`. */
export async function examplesIn(page: string): Promise<Example[]> {
  return examplesOf(await readFile(join(DOCS, page), 'utf8'));
}

/** Splits at semicolons at line ends. */
function statementsOf(code: string): string[] {
  return code
    .split(/;\s*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}

/**
 * Whether the output matches: exactly for SQL. For a shell, `…` matches any characters within a
 * line, and trailing spaces are ignored.
 */
export function fits(language: string, found: string, expected: string): boolean {
  const lines = (text: string): string => text.replaceAll('\r\n', '\n');
  if (language === 'sql') {
    return lines(found) === expected;
  }
  const plain = (text: string): string => lines(text).trimEnd();
  const pattern = plain(expected)
    .split('…')
    .map((literal) => literal.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('[^\\n]*');
  return new RegExp(`^${pattern}$`).test(plain(found));
}

/** Executes a statement; if `isShown`, returns its answer as CSV. */
async function answerOf(
  server: Server,
  sql: string,
  headers: Headers,
  isShown = false,
): Promise<string> {
  const target = `/${isShown ? 'exp' : 'exec'}?query=${encodeURIComponent(sql)}`;
  const reply = await send(server.url, { method: 'GET', target, headers, body: null });
  const body = reply.body.toString('utf8');
  if (reply.status !== 200) {
    throw new Error(`${sql}\n${body}`);
  }
  return body;
}

/** Executes statements on a new connection of the wire protocol. */
async function runOverWire(server: Server, code: string): Promise<void> {
  const client = pgClient(server.pg);
  await client.connect();
  try {
    for (const statement of statementsOf(code)) {
      await client.query(statement);
    }
  } finally {
    await client.end();
  }
}

/** Runs one example and returns its output. */
async function outputOf(
  { language, options, code, output }: Example,
  server: Server,
  headers: Headers,
  shell: (script: string) => Promise<string>,
): Promise<string> {
  if (language === 'sh') {
    return shell(code);
  }
  if (options === 'wire') {
    await runOverWire(server, code);
    return '';
  }
  const statements = statementsOf(code);
  const shown = output === null ? -1 : statements.length - 1;
  let found = '';
  for (const [at, statement] of statements.entries()) {
    found = await answerOf(server, statement, headers, at === shown);
  }
  return found;
}

/**
 * Runs the examples on a server, with `folder` as the working folder of the shell. Throws an error
 * if an example fails or prints something other than what the page shows.
 */
export async function runExamples(
  examples: readonly Example[],
  server: Server,
  folder: string,
  setup: Setup = {},
): Promise<void> {
  const headers: Headers = setup.headers ?? {};
  const address = new URL(server.url).host;
  await writeFile(join(folder, '.curlrc'), `connect-to = "localhost:9000:${address}"\n`);
  const PATH = `${folder}:${process.env['PATH'] ?? ''}`;
  const options = { cwd: folder, env: { ...process.env, PATH, CURL_HOME: folder } };
  const shell = async (script: string): Promise<string> =>
    (await run('sh', ['-e', '-c', script], options)).stdout;
  for (const sql of setup.sql ?? []) {
    await answerOf(server, sql, headers);
  }
  if (setup.shell !== undefined) {
    await shell(setup.shell);
  }
  for (const example of examples) {
    const { language, code, output } = example;
    let found = '';
    const isRight = async (): Promise<boolean> => {
      found = await outputOf(example, server, headers, shell);
      return output === null || fits(language, found, output);
    };
    // A query on a view shows new rows of its base only a moment later.
    const mayLag = setup.lags === true && language === 'sql' && output !== null;
    const right = await (mayLag ? until(isRight, code).catch(() => false) : isRight());
    if (right === false) {
      throw new Error(`${code}\nprints\n${found}\nnot\n${output ?? ''}`);
    }
  }
}

/**
 * Returns a shell script that runs the examples with `curl` on `localhost:9000` and prints the
 * output of each after a line with `marker` and its index.
 */
export function scriptOf(examples: readonly Example[], marker: string): string {
  const lines = examples.flatMap(({ language, code, output }, at) => {
    const target = output === null ? 'exec' : 'exp';
    const query = code.replaceAll("'", String.raw`'\''`);
    const curl = `curl -sf -G http://localhost:9000/${target} --data-urlencode 'query=${query}'`;
    return [`echo '${marker}${at}'`, language === 'sh' ? code : curl];
  });
  return lines.join('\n');
}

/** Returns the examples whose output, printed by the script, differs from the page. */
export function differing(
  examples: readonly Example[],
  marker: string,
  printed: string,
): readonly string[] {
  return examples.flatMap(({ language, code, output }, at) => {
    // A trace of the shell may show the markers before.
    const rest = printed.split(`${marker}${at}\n`).at(-1) ?? '';
    const [found = ''] = rest.split(marker);
    return output === null || fits(language, found, output) ? [] : [`${code}\n${found}`];
  });
}
