/**
 * Background jobs, which continue after their statement has returned. At most two run at the same
 * time, and never two with the same target; the others are queued. A finished job can still be
 * looked up by ID long afterwards.
 */
import { randomBytes } from 'node:crypto';

import type { Logger } from '../observability/index.js';
import { asDatabaseError, DatabaseError } from '../session/index.js';

/** The work of a job. If a step fails, it leaves no partial results. */
export interface Work {
  /** The job's name in the server log. */
  readonly name: string;
  /** The table or file that the job writes to. */
  readonly target: string;
  /** Records the job, before its id is returned. */
  announce(id: string): Promise<void>;
  /** Runs the job and records the outcome. Rejects if it fails, or if `signal` aborts. */
  run(id: string, signal: AbortSignal): Promise<void>;
  /** Records that the job failed or was cancelled. */
  failed(id: string, how: 'failed' | 'cancelled', message: string): Promise<void>;
}

type JobStatus = 'waiting' | 'running' | 'finished' | 'failed' | 'cancelled';

interface Job {
  readonly id: string;
  /** Key of the principal that started the job. */
  readonly owner: string;
  readonly work: Work;
  readonly cancel: AbortController;
  status: JobStatus;
  ended: Promise<void>;
}

const RUNNING_AT_ONCE = 2;
/** Number of finished jobs that can still be looked up. */
const ENDED_KNOWN = 1000;
const ID_BYTES = 8;

interface JobsOptions {
  /** Maximum number of queued jobs. */
  readonly capacity: number;
  readonly logger?: Logger | undefined;
  /** Resolves before the first job may run. */
  readonly ready: Promise<void>;
}

export class Jobs {
  readonly #options: JobsOptions;
  readonly #jobs = new Map<string, Job>();
  /** Queued jobs, ordered by start time. */
  readonly #waiting = new Map<Job, () => void>();
  readonly #running = new Set<Job>();
  #closing = false;

  constructor(options: JobsOptions) {
    this.#options = options;
  }

  /** Returns the job's owner; `null` if no job has this ID. */
  ownerOf(id: string): string | null {
    return this.#jobs.get(id)?.owner ?? null;
  }

  /** Starts a job and resolves to its id: 16 hexadecimal digits. */
  async start(owner: string, work: Work): Promise<string> {
    this.#refuse();
    const id = randomBytes(ID_BYTES).toString('hex');
    const job: Job = {
      id,
      owner,
      work,
      cancel: new AbortController(),
      status: 'waiting',
      ended: Promise.resolve(),
    };
    this.#jobs.set(id, job);
    const announced = this.#announce(job);
    job.ended = announced.then(
      () => this.#runWhenAdmitted(job),
      () => undefined,
    );
    await announced;
    return id;
  }

  /** Stops a job. Resolves to its final status once it has ended; `null` if the ID is unknown. */
  async cancel(id: string): Promise<JobStatus | null> {
    const job = this.#jobs.get(id);
    if (job === undefined) {
      return null;
    }
    job.cancel.abort(new Error('cancelled by user'));
    await job.ended;
    return job.status;
  }

  /** Refuses new jobs, stops existing ones, and waits until they have ended. */
  async close(): Promise<void> {
    this.#closing = true;
    const jobs = [...this.#jobs.values()];
    for (const job of jobs) {
      job.cancel.abort(new Error('the server is shutting down'));
    }
    await Promise.all(jobs.map(({ ended }) => ended));
  }

  #refuse(): void {
    if (this.#closing) {
      throw new DatabaseError({ code: 'Closed', message: 'the server is shutting down' });
    }
    const waiting = [...this.#jobs.values()].filter(({ status }) => status === 'waiting').length;
    const { capacity } = this.#options;
    if (waiting >= capacity) {
      throw new DatabaseError({
        code: 'Busy',
        message: `too many COPY jobs [waiting=${waiting}, limit=${capacity}]; try again later`,
        retryable: true,
      });
    }
  }

  async #announce(job: Job): Promise<void> {
    try {
      await this.#options.ready;
      await job.work.announce(job.id);
    } catch (error) {
      this.#jobs.delete(job.id);
      throw error;
    }
  }

  async #runWhenAdmitted(job: Job): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting.set(job, resolve);
      job.cancel.signal.addEventListener('abort', () => {
        this.#admit();
      });
      this.#admit();
    });
    try {
      await this.#run(job);
    } finally {
      this.#running.delete(job);
      this.#admit();
      this.#forgetOld();
    }
  }

  /** Starts the queued jobs that may run. */
  #admit(): void {
    for (const [job, go] of [...this.#waiting]) {
      if (this.#mayRun(job)) {
        this.#waiting.delete(job);
        this.#running.add(job);
        go();
      }
    }
  }

  /** Returns whether a job may run. A cancelled job does not wait for a slot. */
  #mayRun(job: Job): boolean {
    const { target } = job.work;
    const isFree = [...this.#running].every(({ work }) => work.target !== target);
    return job.cancel.signal.aborted || (isFree && this.#running.size < RUNNING_AT_ONCE);
  }

  async #run(job: Job): Promise<void> {
    const { id, work } = job;
    const { signal } = job.cancel;
    const { logger } = this.#options;
    job.status = 'running';
    try {
      signal.throwIfAborted();
      await work.run(id, signal);
      job.status = 'finished';
      logger?.info('copy_finished', { id, job: work.name });
    } catch (error) {
      const how = signal.aborted ? 'cancelled' : 'failed';
      const message = signal.aborted ? (signal.reason as Error).message : messageOf(error);
      logger?.log(how === 'failed' ? 'warn' : 'info', `copy_${how}`, {
        id,
        job: work.name,
        message,
      });
      await work.failed(id, how, message).catch((second: unknown) => {
        logger?.error('copy_log_failed', { id, message: messageOf(second) });
      });
      job.status = how;
    }
  }

  #forgetOld(): void {
    const over = [...this.#jobs.values()].filter(
      ({ status }) => status !== 'waiting' && status !== 'running',
    );
    for (const { id } of over.slice(0, Math.max(0, over.length - ENDED_KNOWN))) {
      this.#jobs.delete(id);
    }
  }
}

/** Returns the error message, with its hint, if any. */
function messageOf(error: unknown): string {
  const { message, hint } = asDatabaseError(error);
  return hint === undefined ? message : `${message}, ${hint}`;
}
