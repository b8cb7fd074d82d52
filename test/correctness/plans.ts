/**
 * Runs the other programs with plans that small tables do not get by default: scans in chunks of 1
 * to 7 rows on 1 to 7 workers. Chunks therefore end both inside segments and at segment ends.
 *
 *     npm run plans -- --plans N --seed S       N of the 28 settings, 0 for all
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { Harness } from '../torture/harness.js';

const ROWS = [1, 2, 3, 4, 5, 6, 7];
const WORKERS = [1, 2, 4, 7];

const BUILD = fileURLToPath(new URL('../../', import.meta.url));
const AVA = fileURLToPath(
  new URL('../../../node_modules/ava/entrypoints/cli.mjs', import.meta.url),
);

/** Programs with their arguments; `SEED` is replaced by the seed of the run. */
const PROGRAMS: readonly (readonly [name: string, ...command: string[]])[] = [
  ['golden', `${BUILD}test/golden/main.js`, '--suite', 'sql', '--quiet'],
  ['operators', AVA, '--timeout=1h', `${BUILD}test/sql/time-series/*.property.test.js`],
  ['windows', AVA, '--timeout=1h', `${BUILD}test/scenario/window.test.js`],
  ['logic-pairs', `${BUILD}test/correctness/logic-pairs.js`, '--pairs', '800', '--seed', 'SEED'],
  ['selects', `${BUILD}test/correctness/selects.js`, '--queries', '300', '--seed', 'SEED'],
  [
    'differential',
    `${BUILD}test/correctness/differential.js`,
    '--queries',
    '300',
    '--seed',
    'SEED',
  ],
];

const harness = new Harness('plans', ['plans']);

interface Plan {
  readonly rows: number;
  readonly workers: number;
}

const ALL: readonly Plan[] = ROWS.flatMap((rows) => WORKERS.map((workers) => ({ rows, workers })));

/** Chooses `count` plans with evenly distributed chunk sizes and worker counts. */
function chosen(count: number): readonly Plan[] {
  if (count === 0 || count >= ALL.length) {
    return ALL;
  }
  const first = harness.random.between(0, ALL.length - 1);
  return Array.from({ length: count }, (_, index) => ({
    rows: ROWS[(first + 3 * index) % ROWS.length] ?? 1,
    workers: WORKERS[(first + 3 * index + 1) % WORKERS.length] ?? 4,
  }));
}

function settings({ rows, workers }: Plan): string {
  return `query.scan.part.rows=${rows},shared.query.worker.count=${workers}`;
}

async function run(
  args: readonly string[],
  set: string,
  seed: number,
): Promise<string | undefined> {
  const child = spawn(
    process.execPath,
    args.map((argument) => (argument === 'SEED' ? String(seed) : argument)),
    { env: { ...process.env, TIDEMARK_TEST_SET: set, SEED: String(seed), RUNS: '6' } },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return code === 0 ? undefined : output.slice(-6000);
}

for (const plan of chosen(harness.number('plans', 4))) {
  const set = settings(plan);
  const seed = harness.random.between(1, 2 ** 30);
  for (const [name, ...args] of PROGRAMS) {
    const problem = await run(args, set, seed);
    const again = `TIDEMARK_TEST_SET=${set} SEED=${seed}`;
    harness.judge(problem === undefined ? undefined : `${name} with ${again}\n${problem}`);
  }
}
harness.finish();
