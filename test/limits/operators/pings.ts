/**
 * Pings a server repeatedly from a separate thread, because the main thread is busy reading long
 * responses.
 */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

import type { TestServer } from '../../golden/server.js';

/** Returns the clock ticks (10 ms) that a thread has used. */
function threadTicks(pid: number, thread: number | string): number {
  try {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return 0;
  }
}

/** Returns the clock ticks used by all threads that run statements. */
export function workTicks(pid = 0): number {
  const name = (thread: string): string => {
    try {
      return readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8');
    } catch {
      return '';
    }
  };
  try {
    return readdirSync(`/proc/${pid}/task`)
      .filter((thread) => name(thread).startsWith('tidemark'))
      .reduce((all, thread) => all + threadTicks(pid, thread), 0);
  } catch {
    return 0;
  }
}

const TICK_MS = 10;
const EVERY_MS = 20;

export class Pings {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** Resolves after the first response. */
  static async start(server: TestServer): Promise<Pings> {
    const worker = new Worker(new URL(import.meta.url), {
      workerData: { url: server.url, pid: server.process.pid },
    });
    await once(worker, 'message');
    return new Pings(worker);
  }

  /**
   * Returns the longest time without a response. On a busy machine, only the JavaScript thread's
   * CPU time counts.
   */
  async end(): Promise<number> {
    const longest = once(this.#worker, 'message') as Promise<[number]>;
    this.#worker.postMessage('end');
    const [maxMs] = await longest;
    await this.#worker.terminate();
    return maxMs;
  }
}

interface Target {
  readonly url: string;
  readonly pid: number;
}

async function send({ url, pid }: Target): Promise<void> {
  const state = { maxMs: 0, isOver: false };
  parentPort?.once('message', () => {
    state.isOver = true;
  });
  await (await fetch(`${url}/ping`)).arrayBuffer();
  parentPort?.postMessage(0);
  while (!state.isOver) {
    const [began, before] = [performance.now(), threadTicks(pid, pid)];
    try {
      await (await fetch(`${url}/ping`)).arrayBuffer();
    } catch {
      break;
    }
    const tookMs = Math.min(performance.now() - began, (threadTicks(pid, pid) - before) * TICK_MS);
    state.maxMs = Math.max(state.maxMs, tookMs);
    await sleep(EVERY_MS);
  }
  parentPort?.postMessage(state.maxMs);
}

if (!isMainThread) {
  await send(workerData as Target);
}
