/** Intentional differences from QuestDB in the meaning of interval expressions. */
import type { TickAnswer } from './answers.js';

interface Compared {
  readonly text: string;
  readonly isMalformed: boolean;
  readonly ours: TickAnswer;
  readonly peer: TickAnswer;
}

interface Difference {
  /** Name of the section in docs/dialect-differences.md that describes the difference. */
  readonly name: string;
  readonly applies: (compared: Compared) => boolean;
}

const refuses = (answer: TickAnswer): boolean => 'refused' in answer;

const HOURS_2 = 2n * 3_600_000_000n;

/** Whether corresponding bounds differ by no more than the shift of a clock change. */
function isWithinTolerance({ ours, peer }: Compared): boolean {
  if ('refused' in ours || 'refused' in peer) {
    return false;
  }
  const scale = ours.now > 10n ** 17n ? 1000n : 1n;
  const theirs = peer.intervals.flat();
  return (
    ours.intervals.length === peer.intervals.length &&
    ours.intervals.flat().every((bound, index) => {
      const distance = bound - (theirs[index] ?? 0n);
      return distance < HOURS_2 * scale && -distance < HOURS_2 * scale;
    })
  );
}

const DIFFERENCES: readonly Difference[] = [
  { name: 'accepted', applies: ({ ours, peer }) => refuses(peer) && !refuses(ours) },
  { name: 'not of the grammar', applies: ({ isMalformed }) => isMalformed },
  { name: 'filter', applies: ({ text }) => /#.*;|[[,].*\].*#/.test(text) },
  { name: 'months backward', applies: ({ text }) => /;-\d+[My];/.test(text) },
  { name: 'week with a time', applies: ({ text, ours }) => refuses(ours) && /W.*T/.test(text) },
  { name: 'change of clocks', applies: (it) => it.text.includes('@') && isWithinTolerance(it) },
];

/** Returns the name of the intentional difference that explains the disagreement. */
export function decidedBy(compared: Compared): string | undefined {
  return DIFFERENCES.find(({ applies }) => applies(compared))?.name;
}
