/**
 * Keeps the thread awake between a client's question and its next one. Waking a thread that sleeps
 * takes longer than most answers (60 to 100 µs on a virtual machine), so a client that asks again
 * at once is waited for awake. No other is: a client that was slower once is not waited for
 * until it asks again sooner.
 */

/** What is soon, in milliseconds: who waits in vain loses no more than this. */
export const SOON_MS = 0.25;

/** Time, and turns of the event loop. */
interface EventLoop {
  /** Milliseconds, with fractions. */
  now(): number;
  /** Calls `turn` after the next look at the sockets, which does not sleep. */
  next(turn: () => void): void;
}

const NODE: EventLoop = {
  now: () => performance.now(),
  next: (turn) => {
    setImmediate(turn);
  },
};

/** One for all connections of a thread. */
export class BusyPoll {
  readonly #loop: EventLoop;
  /** Kept beside the sockets, which belong to others. */
  readonly #paces = new WeakMap<object, Pace>();
  #until = Number.NEGATIVE_INFINITY;
  #isTurning = false;

  constructor(loop: EventLoop = NODE) {
    this.#loop = loop;
  }

  /** The rhythm of a connection, known by its socket. */
  paceOf(socket: object): Pace {
    let pace = this.#paces.get(socket);
    if (pace === undefined) {
      pace = new Pace(this.#loop, this.#stayAwake);
      this.#paces.set(socket, pace);
    }
    return pace;
  }

  readonly #stayAwake = (until: number): void => {
    this.#until = until;
    if (!this.#isTurning) {
      this.#isTurning = true;
      this.#loop.next(this.#turn);
    }
  };

  readonly #turn = (): void => {
    this.#isTurning = this.#loop.now() < this.#until;
    if (this.#isTurning) {
      this.#loop.next(this.#turn);
    }
  };
}

/** When one client asks and is answered. */
export class Pace {
  readonly #loop: EventLoop;
  readonly #stayAwake: (until: number) => void;
  #answeredAt = Number.NEGATIVE_INFINITY;
  #isQuick = false;

  constructor(loop: EventLoop, stayAwake: (until: number) => void) {
    this.#loop = loop;
    this.#stayAwake = stayAwake;
  }

  /** A question, or a part of one, came. */
  asked(): void {
    this.#isQuick = this.#loop.now() - this.#answeredAt < SOON_MS;
  }

  /** All that was asked is answered. */
  answered(): void {
    this.#answeredAt = this.#loop.now();
    if (this.#isQuick) {
      this.#stayAwake(this.#answeredAt + SOON_MS);
    }
  }
}

/** The thread's own. */
export const busyPoll = new BusyPoll();
