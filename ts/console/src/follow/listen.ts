/** One server event stream, abandoned if it is silent for too long. */
import type { ServerEvent } from '../api/events.js';

interface Listening {
  /** Ends the stream when aborted. */
  readonly signal: AbortSignal;
  /** A server that is silent for this long counts as lost. */
  readonly silenceMs: number;
  /** Returns whether to continue reading. */
  readonly take: (event: ServerEvent) => boolean | Promise<boolean>;
}

/**
 * Reads events until `take` returns false, then returns true. Returns false if the stream ends
 * first.
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
