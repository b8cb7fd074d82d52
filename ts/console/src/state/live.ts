/**
 * A single stream through which the server reports changes: tables, running queries, memory, jobs.
 * A hidden page has no stream. If the server refuses it, the page polls instead.
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

/** The server sends a keep-alive every 5 s, so it counts as lost after this period of silence. */
const SILENT_MS = 12_000;
/** Polling interval for a server without a stream. */
const POLL_MS = 5000;
/** Maximum delay before another attempt to reach a lost server. */
export const RETRY_MS = 5000;
const FIRST_RETRY_MS = 1000;

interface Follower {
  /** Called before the first event of a stream. */
  readonly greet: (signal: AbortSignal) => Promise<void>;
  readonly poll: () => Promise<void>;
  /** Receives a result, or `undefined` if it has not changed, and the server's time. */
  readonly take: (name: LiveName, answer: Answer | undefined, now: string) => void;
  readonly lost: () => void;
  readonly isLost: () => boolean;
}

/** Runs until the returned function is called. */
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

/** Runs one stream from beginning to end. */
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
