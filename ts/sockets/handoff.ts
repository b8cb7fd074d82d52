/**
 * Prepares a socket for a handoff to the engine and for its return. Node must not read from the
 * socket during the handoff.
 */
import type { Socket } from 'node:net';

/** Undocumented members of Node's socket handle. */
interface Handle {
  readonly fd: number;
  reading: boolean;
  readStart(): number;
  readStop(): number;
}

/** A socket whose reading was stopped for a handoff. */
interface HandoffSocket {
  readonly descriptor: number;
  /** Resumes reading. */
  resume(): void;
}

/**
 * Stops reading from the socket. If the socket cannot be handed off, returns `null` and continues
 * reading.
 */
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

/** Returns `null` for an encrypted socket, and on platforms where sockets are not descriptors. */
function handleOf(socket: Socket): Handle | null {
  const handle = (socket as unknown as { readonly _handle?: Partial<Handle> | null })._handle;
  const { fd = -1, reading, readStart, readStop } = handle ?? {};
  const isUsable =
    fd >= 0 &&
    reading === true &&
    typeof readStart === 'function' &&
    typeof readStop === 'function' &&
    !('encrypted' in socket);
  return isUsable ? (handle as Handle) : null;
}

/** Number of consecutive repetitions before a connection's first handoff. */
const FIRST_RUNS = 3;
/** Maximum number of repetitions required after handoffs that ended early. */
const MAX_RUNS = 64;
/** Number of replies below which a handoff does not pay off. */
const MIN_WORTHWHILE_REPLIES = 16;

/** Decides when a client has repeated its requests often enough for a handoff. */
export class Patience {
  #runs = 0;
  #requiredRuns = FIRST_RUNS;

  /** Records a repetition. */
  ran(): void {
    this.#runs += 1;
  }

  /** Records a request that is not a repetition. */
  interrupt(): void {
    this.#runs = 0;
  }

  get isTime(): boolean {
    return this.isTimeIn(0);
  }

  /** Whether a handoff will be due after `runs` more repetitions. */
  isTimeIn(runs: number): boolean {
    return this.#runs + runs >= this.#requiredRuns;
  }

  /** Records that a handoff ended after `answered` replies. */
  returned(answered: number): void {
    const isWorthIt = answered >= MIN_WORTHWHILE_REPLIES;
    this.#runs = 0;
    this.#requiredRuns = isWorthIt ? 1 : Math.min(MAX_RUNS, this.#requiredRuns * 2);
  }
}
