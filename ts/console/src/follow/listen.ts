/** Reads a stream of server events. The stream is closed if it is silent for too long. */
import type { ServerEvent } from '../api/events.js';

interface Listening {
  /** Ends the stream when aborted. */
  readonly signal: AbortSignal;
  /** Silence after which the connection counts as lost. */
  readonly silenceMs: number;
  /** Handles an event. Returns false to stop reading. */
  readonly take: (event: ServerEvent) => boolean | Promise<boolean>;
}

/**
 * Reads events until `take` returns false, and then returns true. Returns false if the stream ends
 * before that.
 */
export async function listen(
  open: (signal: AbortSignal) => AsyncIterable<ServerEvent>,
  { signal, silenceMs, take }: Listening,
): Promise<boolean> {
  const connection = new AbortController();
  const end = (): void => connection.abort();
  let silence = setTimeout(end, silenceMs);
  signal.addEventListener('abort', end);
  try {
    for await (const event of open(connection.signal)) {
      clearTimeout(silence);
      silence = setTimeout(end, silenceMs);
      if (!(await take(event))) {
        return true;
      }
    }
    return false;
  } finally {
    clearTimeout(silence);
    signal.removeEventListener('abort', end);
  }
}
