/** Computes the progress and the remaining time of an import from the number of bytes sent. */
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface Progress {
  readonly startedAt: number;
  readonly sent: number;
  readonly all: number;
  /** Recent upload rate in bytes per second, or `undefined` during the first two seconds. */
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

/** Updates the progress: `sent` bytes have been sent by time `at`, in milliseconds. */
export function advanced(progress: Progress, at: number, sent: number, all: number): Progress {
  const marks = [...progress.marks.filter((mark) => at - mark.at <= MEAN_MS), { at, sent }];
  const first = marks[0];
  const isSettled = at - progress.startedAt >= SETTLING_MS;
  const millis = first ? at - first.at : 0;
  const rate = isSettled && first && millis > 0 ? ((sent - first.sent) * 1000) / millis : undefined;
  return { ...progress, sent, all, rate, marks };
}

/** Returns the percentage, rounded down so that it reaches 100 only at the end. */
export function percent({ sent, all }: Progress): number {
  return all === 0 ? 0 : Math.floor((sent / all) * 100);
}

/** Formats the remaining time: `about 9 s left`. Returns `undefined` while the rate is unknown. */
export function remaining({ sent, all, rate }: Progress): string | undefined {
  if (rate === undefined || rate <= 0) {
    return undefined;
  }
  const seconds = Math.ceil((all - sent) / rate);
  return seconds < 90
    ? fill(texts.importPage.secondsLeft, { seconds })
    : fill(texts.importPage.minutesLeft, { minutes: Math.round(seconds / 60) });
}
