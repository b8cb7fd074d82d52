/** A server with users and permissions, and functions that run statements as any user. */
import { startTestServer, type TestServer } from '../golden/server.js';

export const ADMIN = 'admin:quest';

interface Answer {
  readonly status: number;
  readonly dataset?: readonly (readonly unknown[])[];
  readonly error?: string;
  readonly position?: number;
}

/** `root`: the root directory of a server that ran earlier. */
export async function startAccessServer(
  root?: string,
  ...set: readonly string[]
): Promise<TestServer> {
  return await startTestServer({
    ...(root === undefined ? {} : { root }),
    set: ['acl.enabled=true', 'acl.password.hash.iteration.count=4096', ...set],
  });
}

export function credentials(who: string): Record<string, string> {
  const isToken = who.startsWith('tdm_');
  return {
    authorization: isToken ? `Bearer ${who}` : `Basic ${Buffer.from(who).toString('base64')}`,
  };
}

/** `who`: either `name:password` or a token. */
export async function exec(server: TestServer, who: string, query: string): Promise<Answer> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`, {
    headers: credentials(who),
  });
  const text = await response.text();
  const { status } = response;
  try {
    return { status, ...(JSON.parse(text) as object) };
  } catch {
    return { status, error: text.trim() };
  }
}

export async function rows(
  server: TestServer,
  who: string,
  query: string,
): Promise<readonly (readonly unknown[])[]> {
  const { dataset, error } = await exec(server, who, query);
  if (dataset === undefined) {
    throw new Error(`${query}: ${error ?? ''}`);
  }
  return dataset;
}

/** Runs statements as the administrator; throws on the first failure. */
export async function run(server: TestServer, ...statements: readonly string[]): Promise<void> {
  for (const statement of statements) {
    const { error } = await exec(server, ADMIN, statement);
    if (error !== undefined) {
      throw new Error(`${statement}: ${error}`);
    }
  }
}
