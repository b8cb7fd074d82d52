/**
 * Hashes passwords that clients send. Each hash takes tens of milliseconds of CPU time, and any
 * client can request one. The hashes are therefore computed on separate threads, one per core, from
 * a bounded queue with fair scheduling. A request is dropped when its client disconnects. File
 * writes use other threads and never wait for a hash.
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';

import { machineOf } from '../config/index.js';
import { HashQueue, type Waiting } from './hash-queue.js';
import type { HashRequest } from './hash-worker.js';

/** Maximum number of queued hashes. */
export const MAX_WAITING = 64;
/** Idle time after which a hashing thread ends. */
const IDLE_MS = 30_000;

/** Stored instead of the failure count after a successful login. */
const KNOWN_TO_SUCCEED = -1;

/** The connection that a login arrived on. */
export interface LoginConnection {
  readonly destroyed: boolean;
  once(event: 'close', listener: () => void): unknown;
}

/** The client that a login comes from. */
export interface Caller {
  readonly address: string;
  readonly connection?: LoginConnection | undefined;
}

/** The queue of hashes is full; the client may retry. */
export class LoginsBusy extends Error {
  override readonly name = 'LoginsBusy';

  constructor() {
    super(`too many concurrent logins [limit=${MAX_WAITING} waiting]; try again later`);
  }
}

/**
 * One shared instance: thousands of logins per second may be refused, and none needs a stack trace.
 */
const BUSY = new LoginsBusy();

/** Thrown if the client disconnected. */
export class CallerDisconnected extends Error {
  override readonly name = 'CallerDisconnected';
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
  readonly #maxThreads: number;
  readonly #queue = new HashQueue<Task>(MAX_WAITING);
  readonly #threads = new Set<Thread>();
  readonly #watched = new WeakSet<object>();
  /** Failures on a connection since its last success; absent before the first verdict. */
  readonly #failures = new WeakMap<object, number>();

  constructor(maxThreads = availableParallelism()) {
    this.#maxThreads = maxThreads;
  }

  /** Hashes a password. Rejects with `LoginsBusy` or `CallerDisconnected`. */
  hash(request: HashRequest, { address, connection }: Caller): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (connection?.destroyed === true) {
        reject(new CallerDisconnected());
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

  /**
   * Records a verdict for scheduling. Connections that have logged in get the highest priority,
   * connections with failures the lowest.
   */
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
          reject(new CallerDisconnected());
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

  /** Starts a thread; returns `null` if the maximum number is already running. */
  #begin(): Thread | null {
    if (this.#threads.size >= this.#maxThreads) {
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
      failed(new Error('the password hashing thread has terminated'));
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

/** One pool per process, because all users of the pool share the cores. */
export const hashPool = new HashPool();
