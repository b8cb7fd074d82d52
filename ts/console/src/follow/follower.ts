/** What one tab follows: its rows as they are shown, what has come since, how the feed fares. */
import { batch, createSignal, untrack, type Accessor } from 'solid-js';
import type { AnswerHead, Row } from '../api/answer.js';
import { Result } from '../model/result.js';
import { answerSource } from './answers.js';
import { feedSource } from './feed.js';
import { slideOf } from './slide.js';
import { lastRows, type Followed, type FollowSource } from './source.js';

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
  /** Whether there may be more. */
  readonly isLeast: boolean;
}

const NONE: Unseen = { count: 0, isLeast: false };

export class Follower {
  readonly followed: Followed;
  readonly result: Accessor<Result | undefined>;
  readonly revision: Accessor<number>;
  readonly feed: Accessor<Feed>;
  readonly isPaused: Accessor<boolean>;
  /** Whether the user looks at the shown rows, so that what comes waits. */
  readonly isHeld: Accessor<boolean>;
  /** When the shown rows were the last ones. */
  readonly asOf: Accessor<Date | undefined>;
  /** Rows that came while the shown ones were held. */
  readonly unseen: Accessor<Unseen>;
  /** Why the server is asked again and again; nothing where it tells of changes by itself. */
  readonly polled: Accessor<string | undefined>;
  readonly #source: FollowSource;
  readonly #setResult: (result: Result) => void;
  readonly #bump: () => void;
  readonly #setFeed: (feed: Feed) => void;
  readonly #setHeld: (isHeld: boolean) => void;
  readonly #setPaused: (isPaused: boolean) => void;
  readonly #setAsOf: (at: Date) => void;
  readonly #setUnseen: (unseen: Unseen) => void;
  readonly #setPolled: (reason: string | undefined) => void;
  #open: { readonly close: () => void } | undefined;
  /** The newest window, where it is not the one that is shown. */
  #waiting: Window | undefined;

  constructor(followed: Followed, source: FollowSource = sourceOf(followed)) {
    const [result, setResult] = createSignal<Result>();
    const [revision, setRevision] = createSignal(0);
    const [feed, setFeed] = createSignal<Feed>({ state: 'starting' });
    const [isPaused, setPaused] = createSignal(false);
    const [isHeld, setHeld] = createSignal(false);
    this.isHeld = isHeld;
    this.#setHeld = setHeld;
    const [asOf, setAsOf] = createSignal<Date>();
    const [unseen, setUnseen] = createSignal(NONE);
    const [polled, setPolled] = createSignal<string>();
    this.polled = polled;
    this.#setPolled = setPolled;
    this.followed = followed;
    this.#source = source;
    this.result = result;
    this.revision = revision;
    this.feed = feed;
    this.isPaused = isPaused;
    this.asOf = asOf;
    this.unseen = unseen;
    this.#setResult = setResult;
    this.#bump = () => setRevision((value) => value + 1);
    this.#setFeed = setFeed;
    this.#setPaused = setPaused;
    this.#setAsOf = setAsOf;
    this.#setUnseen = setUnseen;
  }

  /** The tab is looked at; nothing is asked for while it is paused. */
  start(): void {
    if (this.#open || this.isPaused()) {
      return;
    }
    this.#open = this.#source.subscribe({
      rows: (head, rows) => this.#take({ head, rows }),
      same: () => this.#current(),
      polled: this.#setPolled,
      failed: (message, isLost, retryMs) => {
        const retryAt = new Date(Date.now() + retryMs);
        this.#setFeed({ state: isLost ? 'lost' : 'refused', message, retryAt });
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
    this.#setPaused(true);
    this.stop();
  }

  resume(): void {
    this.#setPaused(false);
    this.start();
  }

  /** While the user looks back the shown rows stay as they are. */
  hold(isHeld: boolean): void {
    this.#stillCurrent();
    this.#setHeld(isHeld);
    const waiting = this.#waiting;
    if (!isHeld && waiting) {
      this.#show(waiting);
    }
  }

  #take(next: Window): void {
    const shown = this.result();
    if (!this.isHeld() || !shown || !hasColumns(shown, next)) {
      this.#show(next);
      return;
    }
    const before = this.#waiting?.rows ?? shown.rows;
    const { fresh, isGap } = slideOf(before, next.rows);
    const { count, isLeast } = this.unseen();
    this.#waiting = next;
    batch(() => {
      this.#setUnseen({ count: count + fresh, isLeast: isLeast || isGap });
      this.#setFeed({ state: 'live' });
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
        this.#setResult(result);
      }
      this.#bump();
      this.#setUnseen(NONE);
      this.#current();
    });
  }

  /** A server that would have said so has not: nothing has changed up to now. */
  #stillCurrent(): void {
    const isPushed = untrack(() => this.feed().state === 'live' && this.polled() === undefined);
    if (this.#open && isPushed) {
      this.#current();
    }
  }

  #current(): void {
    this.#setFeed({ state: 'live' });
    if (!this.#waiting) {
      this.#setAsOf(new Date());
    }
  }
}

function sourceOf(followed: Followed): FollowSource {
  return followed.query === undefined ? feedSource(followed) : answerSource(followed);
}

function hasColumns({ columns }: Result, { head }: Window): boolean {
  return JSON.stringify(columns) === JSON.stringify(head.columns);
}
