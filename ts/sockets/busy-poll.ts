/**
 * Busy-polls the event loop between a reply and the client's next request. Waking a sleeping thread
 * takes longer than most requests (60 to 100 µs on a virtual machine). The thread therefore stays
 * awake for clients that send their next request immediately. For a client that turns out to be
 * slower, the thread stops polling until that client is fast again.
 */

/** Maximum time to poll, in milliseconds. This time is wasted if no request arrives. */
export const SOON_MS = 0.25;

/** The event loop's clock and iterations. */
interface EventLoop {
  /** Returns the current time in milliseconds, with a fraction. */
  now(): number;
  /** Polls the sockets once more without sleeping, and then calls `iterate`. */
  next(iterate: () => void): void;
}

const NODE: EventLoop = {
  now: () => performance.now(),
  next: (iterate) => {
    setImmediate(iterate);
  },
};

/** One instance is shared by all connections of a thread. */
export class BusyPoll {
  readonly #loop: EventLoop;
  /** Keyed by socket, because other code owns the sockets. */
  readonly #paces = new WeakMap<object, Pace>();
  #until = Number.NEGATIVE_INFINITY;
  #isPolling = false;

  constructor(loop: EventLoop = NODE) {
    this.#loop = loop;
  }

  /** A connection's pace. */
  paceOf(socket: object): Pace {
    let pace = this.#paces.get(socket);
    if (pace === undefined) {
      pace = new Pace(this.#loop, this.#pollUntil);
      this.#paces.set(socket, pace);
    }
    return pace;
  }

  readonly #pollUntil = (until: number): void => {
    this.#until = until;
    if (!this.#isPolling) {
      this.#isPolling = true;
      this.#loop.next(this.#iterate);
    }
  };

  readonly #iterate = (): void => {
    this.#isPolling = this.#loop.now() < this.#until;
    if (this.#isPolling) {
      this.#loop.next(this.#iterate);
    }
  };
}

/** Tracks when a client sends requests and receives replies. */
export class Pace {
  readonly #loop: EventLoop;
  readonly #pollUntil: (until: number) => void;
  #answeredAt = Number.NEGATIVE_INFINITY;
  #isQuick = false;

  constructor(loop: EventLoop, pollUntil: (until: number) => void) {
    this.#loop = loop;
    this.#pollUntil = pollUntil;
  }

  /** Called when bytes of a request have arrived. */
  received(): void {
    this.#isQuick = this.#loop.now() - this.#answeredAt < SOON_MS;
  }

  /** Called when all requests have been answered. */
  answered(): void {
    this.#answeredAt = this.#loop.now();
    if (this.#isQuick) {
      this.#pollUntil(this.#answeredAt + SOON_MS);
    }
  }
}

/** This thread's instance. */
export const busyPoll = new BusyPoll();
