/** Progress and remaining time of an import, from the bytes sent. */
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface Progress {
  readonly startedAt: number;
  readonly sent: number;
  readonly all: number;
  /** Recent bytes per second; unknown for the first two seconds. */
  readonly rate: number | undefined;
  readonly marks: readonly Mark[];
}

interface Mark {
  readonly at: number;
  readonly sent: number;
}

const MEAN_MS = 5000;
const SETTLING_MS = 2000;

export function begun(at: number, all: number): Progress {
  return { startedAt: at, sent: 0, all, rate: undefined, marks: [{ at, sent: 0 }] };
}

/** Returns the progress once `sent` bytes have been sent by time `at`, in milliseconds. */
export function advanced(progress: Progress, at: number, sent: number, all: number): Progress {
  const marks = [...progress.marks.filter((mark) => at - mark.at <= MEAN_MS), { at, sent }];
  const first = marks[0];
  const isSettled = at - progress.startedAt >= SETTLING_MS;
  const millis = first ? at - first.at : 0;
  const rate = isSettled && first && millis > 0 ? ((sent - first.sent) * 1000) / millis : undefined;
  return { ...progress, sent, all, rate, marks };
}

/** Percentage, rounded down; 100 only at the very end. */
export function percent({ sent, all }: Progress): number {
  return all === 0 ? 0 : Math.floor((sent / all) * 100);
}

/** Remaining time as text: `about 9 s left`; `undefined` while unknown. */
export function remaining({ sent, all, rate }: Progress): string | undefined {
  if (rate === undefined || rate <= 0) {
    return undefined;
  }
  const seconds = Math.ceil((all - sent) / rate);
  return seconds < 90
    ? fill(texts.importPage.secondsLeft, { seconds })
    : fill(texts.importPage.minutesLeft, { minutes: Math.round(seconds / 60) });
}
