/**
 * Gate G26: no statement ends the server, keeps it from others, or goes on after its time. The
 * whole sweep is `npm run sweep`; here every construct is sent once, with more of it than any
 * client needs, and by turns over HTTP and the wire protocol.
 */
import test from 'ava';

import { type Construct, CONSTRUCTS, COUNTS } from './constructs.js';
import { sweep } from './sweep.js';

/** What a statement may take. */
const TIMEOUT_MS = 1_000;
/** What it may take beyond that, of CPU time: tests share the machine. */
const MARGIN_MS = 500;

/** The largest count that is not refused for the length of the text. */
function large(construct: Construct): number {
  const counts = construct.counts ?? COUNTS;
  return counts.filter((count) => count < 10_000).at(-1) ?? 1;
}

for (const door of ['http', 'pgwire'] as const) {
  test.serial(`no construct of the grammar brings the server down: ${door}`, async (t) => {
    t.timeout(300_000);
    const mine = CONSTRUCTS.filter((_, at) => at % 2 === (door === 'http' ? 0 : 1));
    const outcomes = await sweep(mine, {
      doors: [door],
      timeoutMs: TIMEOUT_MS,
      marginMs: MARGIN_MS,
      takes: (construct, count) => construct.takesAll === true || count === large(construct),
    });
    t.true(outcomes.length >= mine.length);
    const wrong = outcomes.filter(({ problem }) => problem !== null);
    t.deepEqual(
      wrong.map(({ name, count, problem, answer }) => `${name} × ${count}: ${problem}: ${answer}`),
      [],
    );
  });
}
