/** The options of `tidemark mcp`. Secrets are read from the environment or from files. */
import { readFileSync } from 'node:fs';

import { EXIT_USAGE, reasonOf, StartError } from './start-error.js';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

export interface AgentArguments {
  readonly url: string | undefined;
  readonly user: string | undefined;
  readonly passwordFile: string | undefined;
  readonly tokenFile: string | undefined;
  readonly allowWrites: boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Forwards messages between standard input/output and a server until the client disconnects. */
export async function runMcp(given: AgentArguments, environment: Environment): Promise<void> {
  const url = readUrl(given.url ?? environment['TIDEMARK_URL'] ?? 'http://127.0.0.1:9000');
  const authorization = readAuthorization(given, environment);
  if (url.protocol === 'http:' && authorization !== '' && !LOOPBACK.test(url.hostname)) {
    process.stderr.write('tidemark mcp: the login is sent unencrypted; use https\n');
  }
  const { serveStdio } = await import('./mcp/stdio.js');
  await serveStdio({
    url: url.href.replace(/\/+$/, ''),
    authorization,
    mayWrite: given.allowWrites,
  });
}

function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw usage(`--url: expected a URL such as http://127.0.0.1:9000, found '${text}'`);
  }
  if (url.username !== '' || url.password !== '') {
    throw usage('--url must not contain a user or password; use --user and --password-file');
  }
  url.search = '';
  url.hash = '';
  return url;
}

function readAuthorization(given: AgentArguments, environment: Environment): string {
  const token = secret(given.tokenFile, environment['TIDEMARK_TOKEN'], '--token-file');
  const password = secret(given.passwordFile, environment['TIDEMARK_PASSWORD'], '--password-file');
  const user = given.user ?? environment['TIDEMARK_USER'];
  if (token !== null) {
    if (given.user !== undefined || given.passwordFile !== undefined) {
      throw usage('expected either a user with a password, or a token');
    }
    return `Bearer ${token}`;
  }
  if (user === undefined) {
    if (password !== null) {
      throw usage('a password requires a user: add --user');
    }
    return '';
  }
  if (password === null) {
    throw usage('--user requires a password: TIDEMARK_PASSWORD or --password-file');
  }
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

/**
 * Reads a secret. The file takes precedence over the environment, and its trailing line break is
 * removed.
 */
function secret(
  file: string | undefined,
  variable: string | undefined,
  option: string,
): string | null {
  if (file === undefined) {
    return variable === undefined || variable === '' ? null : variable;
  }
  let text: string;
  try {
    text = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new StartError(`${option}: cannot read '${file}': ${reasonOf(error)}`, EXIT_USAGE);
  }
  if (text === '' || /[\r\n]/.test(text)) {
    throw usage(`${option}: '${file}' must contain one line`);
  }
  return text;
}

function usage(message: string): StartError {
  return new StartError(`${message}; see tidemark help`, EXIT_USAGE);
}
