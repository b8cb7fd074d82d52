/**
 * Hashes over passwords that clients send: each takes tens of milliseconds of a core, and any
 * client can ask for them. They run in threads of their own, as many as there are cores; so many
 * wait and no more, in fair turns; and what no client waits for any more is not run. Files are
 * written by other threads, which never wait for a hash.
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';

import { machineOf } from '../config/index.js';
import { HashQueue, type Waiting } from './hash-queue.js';
import type { HashRequest } from './hash-worker.js';

/** The most hashes that may wait. */
export const MAX_WAITING = 64;
/** A thread that has nothing to do for so long ends. */
const IDLE_MS = 30_000;

/** In place of a number of failures. */
const KNOWN_TO_SUCCEED = -1;

/** The connection a login comes by, as far as it matters here. */
export interface LoginConnection {
  readonly destroyed: boolean;
  once(event: 'close', gone: () => void): unknown;
}

/** Where a login comes from. */
export interface Caller {
  readonly address: string;
  readonly connection?: LoginConnection | undefined;
}

/** There is more to hash than can be: the client may come again. */
export class LoginsBusy extends Error {
  override readonly name = 'LoginsBusy';

  constructor() {
    super(`too many logins at once [limit=${MAX_WAITING} waiting]: try again`);
  }
}

/** One for all: thousands a second are refused, and none needs a stack. */
const BUSY = new LoginsBusy();

/** No client waits for the answer. */
export class CallerGone extends Error {
  override readonly name = 'CallerGone';
}

interface Task extends Waiting {
  readonly request: HashRequest;
  readonly resolve: (key: Buffer) => void;
  readonly reject: (error: Error) => void;
}

interface Thread {
  readonly worker: Worker;
  task: Task | null;
  idle: NodeJS.Timeout | null;
}

export class HashPool {
  readonly #most: number;
  readonly #queue = new HashQueue<Task>(MAX_WAITING);
  readonly #threads = new Set<Thread>();
  readonly #watched = new WeakSet<object>();
  /** What failed on a connection since its last success; absent: nothing was judged. */
  readonly #failures = new WeakMap<object, number>();

  constructor(most = availableParallelism()) {
    this.#most = most;
  }

  /** Rejects with `LoginsBusy`, or with `CallerGone`. */
  hash(request: HashRequest, { address, connection }: Caller): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (connection?.destroyed === true) {
        reject(new CallerGone());
        return;
      }
      const machine = machineOf(address);
      const by = connection ?? {};
      const failures = this.#failures.get(by) ?? 0;
      const task = { address: machine, connection: by, failures, request, resolve, reject };
      this.#watch(task, connection);
      this.#queue.push(task)?.reject(BUSY);
      this.#next();
    });
  }

  /** Who logged in by a connection is next on it; who failed comes after those who did not. */
  judge({ connection }: Caller, isRight: boolean): void {
    if (connection !== undefined) {
      const failures = Math.max(this.#failures.get(connection) ?? 0, 0);
      this.#failures.set(connection, isRight ? KNOWN_TO_SUCCEED : failures + 1);
    }
  }

  #watch(task: Task, connection: LoginConnection | undefined): void {
    if (connection !== undefined && !this.#watched.has(connection)) {
      this.#watched.add(connection);
      connection.once('close', () => {
        for (const { reject } of this.#queue.remove(task)) {
          reject(new CallerGone());
        }
      });
    }
  }

  #next(): void {
    if (this.#queue.size === 0) {
      return;
    }
    const thread = [...this.#threads].find(({ task }) => task === null) ?? this.#begin();
    const task = thread === null ? null : this.#queue.shift();
    if (thread !== null && task !== null) {
      clearTimeout(thread.idle ?? undefined);
      thread.task = task;
      thread.worker.ref();
      thread.worker.postMessage(task.request);
    }
  }

  /** Another thread, where there may be one. */
  #begin(): Thread | null {
    if (this.#threads.size >= this.#most) {
      return null;
    }
    const worker = new Worker(new URL('./hash-worker.js', import.meta.url), { execArgv: [] });
    const thread: Thread = { worker, task: null, idle: null };
    this.#threads.add(thread);
    worker.on('message', (key: Uint8Array) => {
      this.#done(thread, key);
    });
    const failed = (error: Error): void => {
      this.#threads.delete(thread);
      thread.task?.reject(error);
      thread.task = null;
      this.#next();
    };
    worker.once('error', failed);
    worker.once('exit', () => {
      failed(new Error('the thread that hashes passwords has ended'));
    });
    return thread;
  }

  #done(thread: Thread, key: Uint8Array): void {
    thread.task?.resolve(Buffer.from(key));
    thread.task = null;
    thread.worker.unref();
    thread.idle = setTimeout(() => {
      this.#threads.delete(thread);
      void thread.worker.terminate();
    }, IDLE_MS).unref();
    this.#next();
  }
}

/** The process's own: cores are shared by all of it. */
export const hashPool = new HashPool();
