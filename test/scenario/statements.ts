/** A server for a scenario, and statements over HTTP. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { startTestServer, type TestServer } from '../golden/server.js';

export interface Answer {
  readonly columns?: readonly { readonly name: string }[];
  readonly dataset?: readonly (readonly unknown[])[];
  readonly updated?: number;
  readonly inserted?: number;
  readonly notice?: string;
  readonly position?: number;
  readonly error?: string;
}

export async function exec(server: TestServer, query: string): Promise<Answer> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  return (await response.json()) as Answer;
}

export async function rows(
  server: TestServer,
  query: string,
): Promise<readonly (readonly unknown[])[]> {
  const answer = await exec(server, query);
  if (answer.dataset === undefined) {
    throw new Error(`${query}: ${answer.error ?? ''}`);
  }
  return answer.dataset;
}

export async function run(server: TestServer, ...statements: readonly string[]): Promise<Answer> {
  let last: Answer = {};
  for (const statement of statements) {
    last = await exec(server, statement);
    if (last.error !== undefined) {
      throw new Error(`${statement}: ${last.error}`);
    }
  }
  return last;
}

/** Kills the server and starts a new one on the same root directory. */
export async function restart(server: TestServer): Promise<TestServer> {
  server.process.kill('SIGKILL');
  await once(server.process, 'exit');
  return await startTestServer({ root: server.root });
}

export async function withServer(body: (server: TestServer) => Promise<TestServer>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-scenario-'));
  const first = await startTestServer({ root });
  try {
    await (await body(first)).stop();
  } finally {
    first.process.kill('SIGKILL');
    await rm(root, { recursive: true, force: true });
  }
}
