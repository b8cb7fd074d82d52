/** One stream of events of the server, given up when nothing has come for a while. */
import type { ServerEvent } from '../api/events.js';

interface Listening {
  /** It is not wanted any more when this is aborted. */
  readonly signal: AbortSignal;
  /** A server that says nothing for so long is not there any more. */
  readonly silenceMs: number;
  /** Answers whether more events are wanted. */
  readonly take: (event: ServerEvent) => boolean | Promise<boolean>;
}

/** Takes events until no more are wanted: true then, false where the stream has ended by itself. */
export async function listened(
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
