/** Recorded answers from QuestDB, and Tidemark's intentional differences. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { agree, type TickAnswer } from './answers.js';
import { decidedBy } from './differences.js';
import { isRelative } from './expressions.js';

export const RECORDED = join(
  import.meta.dirname,
  '../../../..',
  'test/correctness/ticks/recorded.jsonl',
);

/**
 * `null` for a refusal; otherwise, in microseconds, the first start followed by alternating lengths
 * and gaps.
 */
export type Flat = readonly number[] | null;

/** A recorded expression. */
export interface Recorded {
  readonly text: string;
  /** QuestDB's answer. */
  readonly peer: Flat;
  /** Tidemark's answer, and the name of the reason, if Tidemark intentionally differs. */
  readonly ours?: Flat;
  readonly why?: string;
  /** The time of recording, if the string depends on the current time. */
  readonly now?: number;
}

function flat(answer: TickAnswer, shift: bigint): Flat {
  if ('refused' in answer) {
    return null;
  }
  const numbers: number[] = [];
  let at = 0n;
  for (const bound of answer.intervals.flat()) {
    // Converts a time on Tidemark's clock to QuestDB's clock.
    const moved = bound % 60_000_000n === 0n ? bound : bound - shift;
    numbers.push(Number(moved - at));
    at = moved;
  }
  return numbers;
}

export function recordOf(
  text: string,
  [ours, peer]: readonly [TickAnswer, TickAnswer],
  isMalformed: boolean,
): Recorded {
  const isTimed = isRelative(text);
  const theirNow = 'now' in peer ? peer.now : undefined;
  const ourNow = 'now' in ours ? ours.now : undefined;
  const now = theirNow ?? ourNow ?? 0n;
  const shift = isTimed && ourNow !== undefined ? ourNow - now : 0n;
  const line: Recorded = { text, peer: flat(peer, 0n) };
  const timed = isTimed ? { now: Number(now) } : {};
  if (agree(ours, peer)) {
    return { ...line, ...timed };
  }
  const why = decidedBy({ text, isMalformed, ours, peer }) ?? '';
  return { ...line, ours: flat(ours, shift), why, ...timed };
}

/** Returns the intervals of a recorded line. */
export function intervalsOf(numbers: readonly number[]): (readonly [lo: number, hi: number])[] {
  const bounds: number[] = [];
  let at = 0;
  for (const number of numbers) {
    at += number;
    bounds.push(at);
  }
  return bounds.flatMap((lo, index) => {
    const hi = bounds[index + 1];
    return index % 2 === 0 && hi !== undefined ? [[lo, hi] as const] : [];
  });
}

export function readRecorded(): readonly Recorded[] {
  const lines = readFileSync(RECORDED, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Recorded);
}
