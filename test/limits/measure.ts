/** Server memory, and statements with a time limit. */
import { readFile } from 'node:fs/promises';

import type { TestServer } from '../golden/server.js';

/** Returns the process's peak memory in MiB. */
export async function peakMegabytes(server: TestServer): Promise<number> {
  const status = await readFile(`/proc/${server.process.pid ?? 0}/status`, 'utf8');
  return Math.round(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024);
}

/** Returns the process's CPU time in seconds. */
export async function cpuSeconds(server: TestServer): Promise<number> {
  const stat = await readFile(`/proc/${server.process.pid ?? 0}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

interface Timed {
  /** Status and response text. */
  readonly answer: string;
  /** Milliseconds from request to response. */
  readonly ms: number;
}

/** Runs a statement with a timeout, and reads at most five rows. */
export async function timed(
  server: TestServer,
  query: string,
  timeoutMs: number,
  headers: Readonly<Record<string, string>> = {},
): Promise<Timed> {
  const body = new URLSearchParams({ query, limit: '5' });
  const began = performance.now();
  const response = await fetch(`${server.url}/exec`, {
    method: 'POST',
    body,
    headers: { 'Statement-Timeout': String(timeoutMs), ...headers },
  });
  const answer = `${response.status} ${await response.text()}`;
  return { answer, ms: performance.now() - began };
}
