/**
 * Defines how a conversation handles each message in each of its states. The transaction block has
 * a separate state (idle, open, failed): it determines which statements run, not which messages are
 * read.
 */
import type { ClientMessage } from '../protocol/client-messages.js';

export type ConversationState =
  /** Between statements. */
  | 'ready'
  /** Executions of an INSERT are buffered until a different message arrives. */
  | 'waiting'
  /** An error occurred in the extended protocol; messages are skipped until Sync. */
  | 'skipping'
  /** The client is sending COPY data. */
  | 'copying'
  /** The client disconnected. */
  | 'closed';

export type Step =
  /** Handles the message immediately, because a pipeline may contain thousands of such messages. */
  | 'now'
  /** Handles the message after the previous messages. */
  | 'run'
  /** Runs the buffered inserts, and then selects the step for the message again. */
  | 'settle'
  | 'skip'
  /** Starts a simple query. */
  | 'query'
  /** Ends the batch. */
  | 'sync'
  /** Processes COPY data, its end, or a message that is invalid during COPY. */
  | 'copy'
  /** Ends the conversation. */
  | 'end';

type Steps = Readonly<Record<ClientMessage['kind'], Step>>;

/** Returns the same step for all messages except those in `overrides`. */
function all(step: Step, overrides: Partial<Steps> = {}): Steps {
  return {
    bind: step,
    close: step,
    copyData: step,
    copyDone: step,
    copyFail: step,
    describe: step,
    execute: step,
    flush: step,
    functionCall: step,
    parse: step,
    password: step,
    query: step,
    sync: step,
    terminate: step,
    ...overrides,
  };
}

const AT_ONCE = { bind: 'now', describe: 'now', execute: 'now' } as const;
/** Skips data that arrives after its COPY has failed. */
const LATE_DATA = { copyData: 'skip', copyDone: 'skip', copyFail: 'skip' } as const;
const ROUND_TRIP_STEPS = { query: 'query', sync: 'sync', terminate: 'end' } as const;

export const STEPS: Readonly<Record<ConversationState, Steps>> = {
  ready: all('run', { ...AT_ONCE, ...LATE_DATA, ...ROUND_TRIP_STEPS }),
  waiting: all('settle', AT_ONCE),
  skipping: all('skip', ROUND_TRIP_STEPS),
  copying: all('copy', { terminate: 'end' }),
  closed: all('end'),
};
