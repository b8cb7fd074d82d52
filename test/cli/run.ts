/** Runs the command line in its own process. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { exitCode, runCli } from '../golden/server.js';

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export function emptyFolder(): string {
  return mkdtempSync(join(tmpdir(), 'tidemark-cli-'));
}

export async function run(...args: string[]): Promise<Ended> {
  return await runUnder([], ...args);
}

/** Runs the command line under another command, such as one that mounts a disk. */
export async function runUnder(wrapper: readonly string[], ...args: string[]): Promise<Ended> {
  const child = runCli(args, { wrapper });
  const code = await exitCode(child.process);
  return { code, out: child.out(), err: child.err() };
}

export const FREE_PORTS = [
  ...['--set', 'http.bind.to=127.0.0.1:0'],
  ...['--set', 'pg.net.bind.to=127.0.0.1:0'],
  ...['--set', 'line.tcp.net.bind.to=127.0.0.1:0'],
  ...['--set', 'http.min.enabled=false'],
];

/** Starts a server that is expected to end by itself. */
export function serve(root: string, ...args: string[]): Promise<Ended> {
  return run('serve', '--root', root, ...FREE_PORTS, ...args);
}

/** Whether the output is one line for the operator, without a stack trace. */
export function isOneLine(err: string): boolean {
  const lines = err.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
  return lines.length === 1 && (lines[0] ?? '').startsWith('tidemark: ');
}

/** Returns the line for the operator, without log lines. */
export function messageOf({ err }: Ended): string {
  return err
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('{'))
    .join('\n');
}
