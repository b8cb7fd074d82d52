/**
 * What a conversation does with each message in each of its states. The block (idle, open, failed)
 * is another state beside these: it says which statements run, not which messages are read.
 */
import type { ClientMessage } from '../protocol/client-messages.js';

export type ConversationState =
  /** Between statements. */
  | 'ready'
  /** Executions of an INSERT are held back until something else comes. */
  | 'waiting'
  /** After an error of the extended protocol, up to Sync. */
  | 'skipping'
  /** The client sends the data of a COPY. */
  | 'copying'
  /** The client is gone. */
  | 'closed';

export type Step =
  /** Handled without waiting: a pipeline consists of thousands of such messages. */
  | 'now'
  /** Handled after what came before it. */
  | 'run'
  /** What is held back runs first; then the message is looked up again. */
  | 'settle'
  | 'skip'
  /** A simple query begins. */
  | 'query'
  /** The batch ends. */
  | 'sync'
  /** Data of the COPY, its end, or what has no place in it. */
  | 'copy'
  /** The conversation ends. */
  | 'end';

type Steps = Readonly<Record<ClientMessage['kind'], Step>>;

/** All messages but those named. */
function all(step: Step, others: Partial<Steps> = {}): Steps {
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
    ...others,
  };
}

const AT_ONCE = { bind: 'now', describe: 'now', execute: 'now' } as const;
/** What is left of a COPY that failed. */
const LATE_DATA = { copyData: 'skip', copyDone: 'skip', copyFail: 'skip' } as const;
const TURNS = { query: 'query', sync: 'sync', terminate: 'end' } as const;

export const STEPS: Readonly<Record<ConversationState, Steps>> = {
  ready: all('run', { ...AT_ONCE, ...LATE_DATA, ...TURNS }),
  waiting: all('settle', AT_ONCE),
  skipping: all('skip', TURNS),
  copying: all('copy', { terminate: 'end' }),
  closed: all('end'),
};
