/**
 * Gate G26: no statement crashes the server, blocks other clients, or runs past its timeout. `npm
 * run sweep` runs the whole sweep. This test sends every construct once, larger than any client
 * needs, alternating between HTTP and the wire protocol.
 */
import test from 'ava';

import { type Construct, CONSTRUCTS, COUNTS } from './constructs.js';
import { sweep } from './sweep.js';

/** Statement timeout in milliseconds. */
const TIMEOUT_MS = 1_000;
/** Allowed CPU time beyond the timeout in milliseconds, because the tests share the machine. */
const MARGIN_MS = 500;

/** Returns the largest count at which the statement is not refused for its length. */
function large(construct: Construct): number {
  const counts = construct.counts ?? COUNTS;
  return counts.filter((count) => count < 10_000).at(-1) ?? 1;
}

for (const protocol of ['http', 'pgwire'] as const) {
  test.serial(`no grammar construct crashes the server: ${protocol}`, async (t) => {
    t.timeout(300_000);
    const mine = CONSTRUCTS.filter((_, at) => at % 2 === (protocol === 'http' ? 0 : 1));
    const outcomes = await sweep(mine, {
      protocols: [protocol],
      timeoutMs: TIMEOUT_MS,
      marginMs: MARGIN_MS,
      accepts: (construct, count) =>
        construct.acceptsAnyCount === true || count === large(construct),
    });
    t.true(outcomes.length >= mine.length);
    const wrong = outcomes.filter(({ problem }) => problem !== null);
    t.deepEqual(
      wrong.map(({ name, count, problem, answer }) => `${name} × ${count}: ${problem}: ${answer}`),
      [],
    );
  });
}
