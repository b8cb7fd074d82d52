/**
 * Runs every operator over every adversarial shape. Operators are discovered automatically: the
 * first tests fail if an operator in the source code or in a plan has no statements in
 * `operators/entries.ts`. A seeded sample of the cases runs here; `npm run adversarial` runs all of
 * them.
 */
import test from 'ava';

import { suiteSeed } from '../seed.js';
import { Random } from '../torture/harness.js';
import { send } from './client.js';
import { ENTRIES } from './operators/entries.js';
import { namesInPlans, namesInSources, operatorsIn, planNodes } from './operators/registry.js';
import { casesOf, Ground, type Outcome, run, textOf } from './operators/run.js';

const seed = suiteSeed();
const ROWS = 50_000;
const TERMS = 100_000;
/** Timeout in milliseconds for statements that do not set one. */
const QUERY_TIMEOUT_MS = 1_000;
/** Time budget for the cases of one memory size, in milliseconds. */
const BUDGET_MS = 10_000;

let ground: Ground;

test.before(async () => {
  ground = await Ground.prepare(ROWS, QUERY_TIMEOUT_MS);
  await ground.use('usual');
});

test.after.always(async () => {
  await ground.end();
});

test.serial('every operator in the source code is covered by a statement', (t) => {
  const { names, without } = namesInSources();
  t.true(names.length >= 14, names.join());
  t.deepEqual(without, [], 'operators without a name');
  t.deepEqual(
    names.filter((name) => !(name in ENTRIES)),
    [],
  );
  // Only these types implement the trait: the node for the project's own operators, the transparent
  // wrapper, and the file scans.
  t.deepEqual(planNodes(), ['BoundedExec', 'OperatorExec', 'ParquetScanExec', 'TextScanExec']);
});

test.serial('the plan of each statement contains its operator', async (t) => {
  const missing: string[] = [];
  const seen = new Set<string>();
  const reached = new Set<string>();
  for (const one of casesOf(ground.shapes, 3, () => true)) {
    if (one.timeoutMs === null && (one.limit === 'all' || one.limit === 'terms')) {
      const { rows, error } = await send(ground.server, `explain ${textOf(one)}`);
      const operators = operatorsIn(rows);
      operators.forEach((name) => seen.add(name));
      if (operators.includes(one.operator)) {
        reached.add(one.operator);
      } else {
        missing.push(`${one.operator}, ${one.shape.name}: ${error ?? textOf(one)}`);
      }
    }
  }
  t.deepEqual(missing, []);
  t.deepEqual([...reached].sort(), Object.keys(ENTRIES).sort());
  t.deepEqual(
    [...seen].filter((name) => !(name in ENTRIES)),
    [],
    'operators without statements',
  );
});

test.serial(
  'each statement returns or is refused, within its time and memory limits',
  async (t) => {
    t.timeout(300_000);
    const random = new Random(seed);
    const outcomes: Outcome[] = [];
    for (const pool of ['usual', 'small'] as const) {
      await ground.use(pool);
      const cases = casesOf(ground.shapes, TERMS, () => true)
        .map((one) => ({ one, at: random.next() }))
        .sort((left, right) => left.at - right.at);
      const end = performance.now() + BUDGET_MS;
      for (const { one } of cases) {
        if (performance.now() > end) {
          break;
        }
        const outcome = await run(ground.server, one);
        outcomes.push(outcome);
        const { name, problem, answer } = outcome;
        t.is(
          problem,
          undefined,
          `${pool}: ${name}: ${answer}: ${one.statement.rows.slice(0, 300)}`,
        );
      }
    }
    const answered = outcomes.filter(({ isAnswered }) => isAnswered).length;
    t.true(
      answered > 0 && answered < outcomes.length,
      'some cases are answered and some are refused',
    );
    t.log(`${outcomes.length} cases: ${answered} answered, ${outcomes.length - answered} refused`);
  },
);

test.serial(
  'plans of statements generated from the grammar contain no untested operator',
  async (t) => {
    await ground.use('usual');
    const names = await namesInPlans(ground.server);
    t.true(names.length > 25, names.join());
    t.deepEqual(
      names.filter((name) => !(name in ENTRIES)),
      [],
    );
  },
);
