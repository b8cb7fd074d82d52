/**
 * State of a tab that follows a table or query: the displayed rows, newer rows, and the health of
 * the feed.
 */
import { batch, untrack, type Accessor } from 'solid-js';
import type { AnswerHead, Row } from '../api/answer.js';
import { Result } from '../model/result.js';
import { answerSource } from './answers.js';
import { feedSource } from './feed.js';
import { slideOf } from './slide.js';
import { lastRows, type Followed, type FollowSource } from './source.js';
import { signal, counter } from '../model/signal.js';

type Feed =
  | { readonly state: 'starting' | 'live' }
  | {
      readonly state: 'lost' | 'refused';
      readonly message: string;
      readonly retryAt: Date;
    };

interface Window {
  readonly head: AnswerHead;
  readonly rows: readonly Row[];
}

export interface Unseen {
  readonly count: number;
  /** True if `count` is only a lower bound. */
  readonly isLowerBound: boolean;
}

const NONE: Unseen = { count: 0, isLowerBound: false };

export class Follower {
  readonly followed: Followed;
  readonly #result = signal<Result | undefined>(undefined);
  readonly result: Accessor<Result | undefined> = this.#result;
  readonly #revision = counter();
  readonly revision: Accessor<number> = this.#revision;
  readonly #feed = signal<Feed>({ state: 'starting' });
  readonly feed: Accessor<Feed> = this.#feed;
  readonly #isPaused = signal(false);
  readonly isPaused: Accessor<boolean> = this.#isPaused;
  readonly #isOnHold = signal(false);
  /** True while updates are on hold. */
  readonly isOnHold: Accessor<boolean> = this.#isOnHold;
  readonly #asOf = signal<Date | undefined>(undefined);
  /** Latest time at which the displayed rows were known to be current. */
  readonly asOf: Accessor<Date | undefined> = this.#asOf;
  readonly #unseen = signal(NONE);
  /** Number of rows that have arrived while updates were on hold. */
  readonly unseen: Accessor<Unseen> = this.#unseen;
  readonly #polled = signal<string | undefined>(undefined);
  /** Reason that the server is polled, or `undefined` if it pushes changes. */
  readonly polled: Accessor<string | undefined> = this.#polled;
  readonly #source: FollowSource;
  #open: { readonly close: () => void } | undefined;
  /** The newest rows, if they are not displayed yet. */
  #waiting: Window | undefined;

  constructor(followed: Followed, source: FollowSource = sourceOf(followed)) {
    this.followed = followed;
    this.#source = source;
  }

  /**
   * Starts following. Called when the tab becomes visible. If the tab is paused, nothing is
   * requested.
   */
  start(): void {
    if (this.#open || this.isPaused()) {
      return;
    }
    this.#open = this.#source.subscribe({
      rows: (head, rows) => this.#take({ head, rows }),
      same: () => this.#current(),
      polled: this.#polled.set,
      failed: (message, isLost, retryMs) => {
        const retryAt = new Date(Date.now() + retryMs);
        this.#feed.set({ state: isLost ? 'lost' : 'refused', message, retryAt });
      },
    });
  }

  stop(): void {
    if (this.#open) {
      this.#stillCurrent();
      this.#open.close();
      this.#open = undefined;
    }
  }

  pause(): void {
    this.#isPaused.set(true);
    this.stop();
  }

  resume(): void {
    this.#isPaused.set(false);
    this.start();
  }

  /** Puts updates on hold or resumes them. On hold, the displayed rows do not change. */
  hold(isOnHold: boolean): void {
    this.#stillCurrent();
    this.#isOnHold.set(isOnHold);
    const waiting = this.#waiting;
    if (!isOnHold && waiting) {
      this.#show(waiting);
    }
  }

  #take(next: Window): void {
    const shown = this.result();
    if (!this.isOnHold() || !shown || !hasColumns(shown, next)) {
      this.#show(next);
      return;
    }
    const before = this.#waiting?.rows ?? shown.rows;
    const { fresh, isGap } = slideOf(before, next.rows);
    const { count, isLowerBound } = this.unseen();
    this.#waiting = next;
    batch(() => {
      this.#unseen.set({ count: count + fresh, isLowerBound: isLowerBound || isGap });
      this.#feed.set({ state: 'live' });
    });
  }

  #show(next: Window): void {
    const shown = this.result();
    this.#waiting = undefined;
    batch(() => {
      if (shown && hasColumns(shown, next)) {
        shown.slide(next.rows, slideOf(shown.rows, next.rows).dropped);
      } else {
        const result = new Result(next.head, lastRows(this.followed));
        result.append(next.rows);
        this.#result.set(result);
      }
      this.#revision.bump();
      this.#unseen.set(NONE);
      this.#current();
    });
  }

  /** Records that the rows are still current, if the server pushes changes. */
  #stillCurrent(): void {
    const isPushed = untrack(() => this.feed().state === 'live' && this.polled() === undefined);
    if (this.#open && isPushed) {
      this.#current();
    }
  }

  #current(): void {
    this.#feed.set({ state: 'live' });
    if (!this.#waiting) {
      this.#asOf.set(new Date());
    }
  }
}

function sourceOf(followed: Followed): FollowSource {
  return followed.query === undefined ? feedSource(followed) : answerSource(followed);
}

function hasColumns({ columns }: Result, { head }: Window): boolean {
  return JSON.stringify(columns) === JSON.stringify(head.columns);
}
