/**
 * npm run stops -- [--rounds N] [--seed S]
 *
 * Sends SIGTERM under load repeatedly, at different times.
 */
import { Harness } from './harness.js';
import { stopRound } from './stop-round.js';

const harness: Harness = new Harness('stops', ['rounds']);
const rounds = harness.number('rounds', 100);
for (let round = 0; round < rounds; round += 1) {
  const problems = await stopRound(harness.random.between(0, 1_000));
  harness.judge(problems.length === 0 ? undefined : `round ${round}: ${problems.join('; ')}`);
}
harness.finish();
