/**
 * Compares the operators with loops, running longer than `npm test` does.
 *     npm run operators -- --rounds N --seed S
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '12' }, seed: { type: 'string' } },
});
const rounds = Number(values.rounds);
const seed = Number(values.seed ?? Date.now() % 2 ** 31);
if (!Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed)) {
  process.stderr.write('operators: --rounds and --seed are whole numbers\n');
  process.exit(2);
}
const started = Date.now();
const tests = ['sql/time-series/*.property.test.js', 'scenario/window.test.js'];
const folder = fileURLToPath(new URL('../../', import.meta.url));
const { status } = spawnSync(
  process.execPath,
  [
    fileURLToPath(new URL('../../../../node_modules/ava/entrypoints/cli.mjs', import.meta.url)),
    '--timeout=4h',
    ...tests.map((test) => folder + test),
  ],
  {
    stdio: 'inherit',
    env: { ...process.env, RUNS: String(rounds), SEED: String(seed) },
  },
);
const seconds = ((Date.now() - started) / 1000).toFixed(1);
process.stdout.write(`operators: ${rounds} rounds of each, seed ${seed}, ${seconds} s\n`);
process.exitCode = status ?? 1;
