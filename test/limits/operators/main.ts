/**
 * npm run adversarial -- [--rows N] [--terms N] [--stride N] [--timeout MS] [--seed S] [--only
 * TEXT]
 *
 * Runs every operator over every adversarial shape; see `run.ts`. `--stride N` runs every N-th
 * case; `--timeout` is the timeout for statements that do not set one.
 */
import { parseArgs } from 'node:util';

import { Random } from '../../torture/harness.js';
import { type Case, casesOf, Ground, isAlive, type Pool, run } from './run.js';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    terms: { type: 'string', default: '100000' },
    stride: { type: 'string', default: '1' },
    timeout: { type: 'string', default: '5000' },
    seed: { type: 'string', default: String(Math.floor(Date.now() / 1000)) },
    only: { type: 'string', default: '' },
    verbose: { type: 'boolean', default: false },
  },
});
const seed = Number(values.seed);
const random = new Random(seed);
const started = Date.now();
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};
const tally = { passed: 0, failed: 0, answered: 0 };

async function judge(ground: Ground, pool: Pool, one: Case): Promise<void> {
  const outcome = await run(ground.server, one);
  const { name, answer, problem, wallMs, lateMs, peakMebibytes } = outcome;
  const figures = `${Math.round(wallMs)} ms, ${lateMs} ms late, ${peakMebibytes} MiB`;
  const isWrong = problem !== undefined;
  if (isWrong || values.verbose) {
    const verdict = isWrong ? `FAILED ${problem}` : 'ok';
    say(`${verdict}: ${pool} pool, ${name}: ${figures}: ${answer} (--seed ${seed})`);
  }
  if (isWrong) {
    say(`  ${one.statement.rows.replaceAll(/\s+/g, ' ').slice(0, 300)}`);
  }
  tally.failed += isWrong ? 1 : 0;
  tally.passed += isWrong ? 0 : 1;
  tally.answered += outcome.isAnswered ? 1 : 0;
  if (!isAlive(ground.server)) {
    await ground.use(pool);
  }
}

say(`adversarial: seed ${seed}`);
const ground = await Ground.prepare(Number(values.rows), Number(values.timeout));
say(`tables: ${((Date.now() - started) / 1000).toFixed(1)} s`);
const cases = casesOf(ground.shapes, Number(values.terms), (name) => name.includes(values.only));
for (const pool of ['usual', 'small'] as const) {
  await ground.use(pool);
  for (const one of cases) {
    if (random.next() * Number(values.stride) < 1) {
      await judge(ground, pool, one);
    }
  }
}
await ground.end();
say(`${tally.answered} answered, ${tally.passed + tally.failed - tally.answered} refused`);
say(`time: ${((Date.now() - started) / 1000).toFixed(1)} s`);
say(`${tally.passed} passed, ${tally.failed} failed`);
process.exitCode = tally.failed === 0 && tally.passed > 0 ? 0 : 1;
