/**
 * Follows the last rows of a query by streaming its results. The server runs the query repeatedly,
 * and sends the result only if it has changed.
 */
import type { Column, Row } from '../api/answer.js';
import { aborted, live, SqlError, Unreachable, type LiveQuery } from '../api/client.js';
import type { ServerEvent } from '../api/events.js';
import { listen } from './listen.js';
import { pollUntilRecheck, poll } from './polled.js';
import {
  lastRows,
  pause,
  troubleText,
  waitAfter,
  type Followed,
  type FollowListener,
  type FollowSource,
} from './source.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** The server requests that this module makes. */
interface AnswerServer {
  readonly live: (query: LiveQuery, signal: AbortSignal) => AsyncIterable<ServerEvent>;
  /** Polls until the signal aborts. */
  readonly poll: (listener: FollowListener, signal: AbortSignal) => Promise<void>;
}

const POLL_MS = 1000;
/** Interval after which the server retries a query that failed. */
const FAILED_MS = 5000;
/**
 * Silence after which the connection counts as lost. Normally, the server sends a keep-alive every
 * 5 s.
 */
const SILENCE_MS = 12_000;
const BUSY = 503;
const SILENT = texts.follow.silentForSeconds;

export function answerSource(
  followed: Followed,
  server: AnswerServer = serverOf(followed),
): FollowSource {
  return {
    subscribe: (listener) => {
      const abort = new AbortController();
      void run(followed, server, listener, abort.signal);
      return { close: () => abort.abort() };
    },
  };
}

function serverOf(followed: Followed): AnswerServer {
  return {
    live: (query, signal) => live([query], signal),
    poll: (listener, signal) => poll(followed, listener, signal),
  };
}

/** Follows the query until the signal aborts. */
async function run(
  followed: Followed,
  server: AnswerServer,
  listener: FollowListener,
  signal: AbortSignal,
): Promise<void> {
  let failures = 0;
  const isOver = (): boolean => signal.aborted;
  while (!isOver()) {
    try {
      await stream(followed, server, signal, (event) => {
        failures = 0;
        take(event, listener);
      });
    } catch (cause) {
      if (isOver()) {
        return;
      }
      if (cause instanceof SqlError && cause.status !== 401) {
        listener.polled(fill(texts.follow.pollingInstead, { reason: whyNot(cause) }));
        await pollUntilRecheck((until) => server.poll(listener, until), signal);
        continue;
      }
      failures += 1;
      const wait = waitAfter(failures);
      const text = aborted(cause) ? SILENT : troubleText(cause, followed);
      listener.failed(text, !(cause instanceof SqlError), wait);
      await pause(wait, signal);
    }
  }
}

/** Reads one stream. If the stream ends, this counts as a failure. */
async function stream(
  followed: Followed,
  server: AnswerServer,
  signal: AbortSignal,
  onEvent: (event: ServerEvent) => void,
): Promise<void> {
  const query = { name: 'rows', query: lastRows(followed), everyMs: POLL_MS };
  const take = (event: ServerEvent): boolean => {
    if (!signal.aborted) {
      onEvent(event);
    }
    return !signal.aborted;
  };
  const open = (until: AbortSignal): AsyncIterable<ServerEvent> => server.live(query, until);
  if (!(await listen(open, { signal, silenceMs: SILENCE_MS, take }))) {
    throw new Unreachable(texts.follow.streamInterrupted);
  }
}

interface EventData {
  readonly columns?: readonly Column[];
  readonly dataset?: readonly Row[];
  readonly error?: string;
}

function take({ name, data }: ServerEvent, listener: FollowListener): void {
  const { columns = [], dataset = [], error = '' } = JSON.parse(data) as EventData;
  switch (name) {
    case 'answer':
      listener.polled(undefined);
      listener.rows({ query: '', columns, timestamp: -1 }, dataset);
      break;
    case 'failed':
      listener.polled(undefined);
      listener.failed(error, false, FAILED_MS);
      break;
    case 'error':
      throw new Unreachable(error);
    default:
  }
}

function whyNot({ status, message }: SqlError): string {
  return status === BUSY ? texts.follow.tooManyStreams : fill(texts.follow.noStream, { message });
}
