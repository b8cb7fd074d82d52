/**
 * Receives changes from the server through a single stream: tables, running queries, memory and
 * jobs. A hidden page closes its stream. If the server refuses the stream, the console polls
 * instead.
 */
import type { Column, Row } from '../api/answer.js';
import type { Answer } from '../api/cells.js';
import { onLoginForgotten } from '../api/credentials.js';
import { aborted, live, SqlError, type LiveQuery } from '../api/client.js';
import { ACTIVITY_QUESTION } from './activity.js';
import { JOBS_QUESTION } from './jobs.js';
import { LIVE_TREE_QUESTION } from './schema.js';
import { MEMORY_QUESTION } from './vitals.js';

const QUERIES = [
  { name: 'tables', query: LIVE_TREE_QUESTION, everyMs: 1000 },
  { name: 'queries', query: ACTIVITY_QUESTION, everyMs: 1000 },
  { name: 'memory', query: MEMORY_QUESTION, everyMs: 5000 },
  { name: 'jobs', query: JOBS_QUESTION, everyMs: 5000 },
] as const satisfies readonly LiveQuery[];

type LiveName = (typeof QUERIES)[number]['name'];

/** Period of silence after which the server counts as lost. It sends a keep-alive every 5 s. */
const SILENT_MS = 12_000;
/** Polling interval for a server that does not support the stream. */
const POLL_MS = 5000;
/** Maximum delay between attempts to reach a lost server. */
export const RETRY_MS = 5000;
const FIRST_RETRY_MS = 1000;

interface Follower {
  /** Called when a stream is opened, before its first event. */
  readonly greet: (signal: AbortSignal) => Promise<void>;
  readonly poll: () => Promise<void>;
  /** Receives the server's time and a result, which is `undefined` if it has not changed. */
  readonly take: (name: LiveName, answer: Answer | undefined, now: string) => void;
  readonly lost: () => void;
  readonly isLost: () => boolean;
}

/** Follows the server until the returned function is called. */
export function followServer(follower: Follower): () => void {
  const stopped = new AbortController();
  void follow(follower, stopped.signal);
  return () => stopped.abort();
}

async function follow(follower: Follower, stopped: AbortSignal): Promise<void> {
  let waitMs = FIRST_RETRY_MS;
  const isOver = (): boolean => stopped.aborted;
  while (!isOver()) {
    if (document.hidden && !follower.isLost()) {
      await shown(stopped);
    }
    const outcome = await once(follower, stopped);
    if (outcome === 'hidden') {
      continue;
    }
    waitMs = outcome === 'ended' ? FIRST_RETRY_MS : Math.min(RETRY_MS, waitMs * 2);
    await pause(outcome === 'refused' ? POLL_MS : waitMs, stopped);
  }
}

type Outcome = 'hidden' | 'ended' | 'lost' | 'refused';

/** Reads one stream until it ends. */
async function once(follower: Follower, stopped: AbortSignal): Promise<Outcome> {
  const end = new AbortController();
  const stop = (): void => end.abort();
  const hide = (): void => {
    if (document.hidden) {
      stop();
    }
  };
  stopped.addEventListener('abort', stop);
  document.addEventListener('visibilitychange', hide);
  const login = new AbortController();
  login.signal.addEventListener('abort', stop);
  const forget = onLoginForgotten(() => login.abort());
  let silence = setTimeout(stop, SILENT_MS);
  try {
    await Promise.race([follower.greet(end.signal), ended(end.signal)]);
    await readStream(follower, end.signal, () => {
      clearTimeout(silence);
      silence = setTimeout(stop, SILENT_MS);
    });
    return 'ended';
  } catch (cause) {
    if (aborted(cause) && (document.hidden || stopped.aborted)) {
      return 'hidden';
    }
    if (aborted(cause) && login.signal.aborted) {
      return 'ended';
    }
    return cause instanceof SqlError ? await instead(follower) : lose(follower);
  } finally {
    forget();
    clearTimeout(silence);
    stopped.removeEventListener('abort', stop);
    document.removeEventListener('visibilitychange', hide);
  }
}

/** Rejects when the signal aborts. */
function ended(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as DOMException));
  });
}

async function readStream(
  follower: Follower,
  signal: AbortSignal,
  received: () => void,
): Promise<void> {
  let now = new Date().toISOString();
  for await (const { name, data } of live(QUERIES, signal)) {
    received();
    if (name === 'alive') {
      ({ now } = JSON.parse(data) as { now: string });
      follower.take('tables', undefined, now);
    } else if (name === 'answer') {
      const answer = JSON.parse(data) as LiveAnswer;
      const { columns, dataset: rows } = answer;
      follower.take(answer.name, { head: { columns }, rows }, now);
    } else if (name === 'error') {
      throw new SqlError((JSON.parse(data) as { error: string }).error, undefined, 403);
    }
  }
}

interface LiveAnswer {
  readonly name: LiveName;
  readonly columns: Column[];
  readonly dataset: Row[];
}

async function instead(follower: Follower): Promise<Outcome> {
  try {
    await follower.poll();
    return 'refused';
  } catch {
    return lose(follower);
  }
}

function lose(follower: Follower): Outcome {
  follower.lost();
  return 'lost';
}

/** Resolves when the page becomes visible. */
async function shown(stopped: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const check = (): void => {
      if (!document.hidden || stopped.aborted) {
        document.removeEventListener('visibilitychange', check);
        stopped.removeEventListener('abort', check);
        resolve();
      }
    };
    document.addEventListener('visibilitychange', check);
    stopped.addEventListener('abort', check);
  });
}

async function pause(ms: number, stopped: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    const end = (): void => {
      clearTimeout(timer);
      resolve();
    };
    stopped.addEventListener('abort', end, { once: true });
  });
}
