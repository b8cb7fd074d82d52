/**
 * A connection on its way to the engine and back: the socket's handle reads nothing while the
 * engine does.
 */
import type { Socket } from 'node:net';

/** What is used of Node's handle of a socket, which its documented interface does not have. */
interface Handle {
  readonly fd: number;
  reading: boolean;
  readStart(): number;
  readStop(): number;
}

/** What is read from a socket when it is handed off. */
interface HandoffSocket {
  readonly descriptor: number;
  /** Reads again. */
  resume(): void;
}

/** Stops reading; null where the socket cannot be handed off, which then reads on. */
export function stopReading(socket: Socket): HandoffSocket | null {
  const handle = handleOf(socket);
  const isQuiet =
    !socket.destroyed &&
    !socket.isPaused() &&
    !socket.writableEnded &&
    socket.writableLength === 0 &&
    socket.readableLength === 0;
  if (handle === null || !isQuiet || handle.readStop() !== 0) {
    return null;
  }
  handle.reading = false;
  return {
    descriptor: handle.fd,
    resume: () => {
      if (!socket.destroyed && !handle.reading) {
        handle.reading = true;
        handle.readStart();
      }
    },
  };
}

/** Null for an encrypted socket, and where sockets are no descriptors. */
function handleOf(socket: Socket): Handle | null {
  const handle = (socket as unknown as { readonly _handle?: Partial<Handle> | null })._handle;
  const { fd = -1, reading, readStart, readStop } = handle ?? {};
  const isWhole =
    fd >= 0 &&
    reading === true &&
    typeof readStart === 'function' &&
    typeof readStop === 'function' &&
    !('encrypted' in socket);
  return isWhole ? (handle as Handle) : null;
}

/** Questions of a kind in a row before a connection is handed off for the first time. */
const FIRST_RUNS = 3;
/** After handoffs that were soon over. */
const MAX_RUNS = 64;
/** A handoff with fewer answers is not worth its two crossings. */
const FEW_ANSWERED = 16;

/** When a client that repeats itself has done so often enough to be handed off. */
export class Patience {
  #runs = 0;
  #runsNeeded = FIRST_RUNS;

  /** It repeated itself once more. */
  ran(): void {
    this.#runs += 1;
  }

  /** It did something else. */
  interrupt(): void {
    this.#runs = 0;
  }

  get isTime(): boolean {
    return this.isTimeIn(0);
  }

  /** Whether it is time once the client has repeated itself so often. */
  isTimeIn(runs: number): boolean {
    return this.#runs + runs >= this.#runsNeeded;
  }

  /** A handoff ended after so many answers. */
  returned(answered: number): void {
    const isWorthIt = answered >= FEW_ANSWERED;
    this.#runs = 0;
    this.#runsNeeded = isWorthIt ? 1 : Math.min(MAX_RUNS, this.#runsNeeded * 2);
  }
}
