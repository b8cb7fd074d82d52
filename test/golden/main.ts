/**
 * npm run golden -- [--suite http|sql|decided] [--only TEXT] [--quiet] [--groups]
 *     [--update-pending | --init]
 *
 * Runs the golden cases and prints the failures. `--update-pending` removes passing ids from the
 * list; `--init` rewrites the list. The last line reads: N passed, N pending, N failed.
 */
import { parseArgs } from 'node:util';

import { internalErrorReport } from '../internal-errors.js';
import { type Pending, readPending, type Suite, SUITES, writePending } from './cases.js';
import { type Choose, type Results, runDecidedSuite, runHttpSuite, runSqlSuite } from './run.js';

const { values } = parseArgs({
  options: {
    suite: { type: 'string' },
    only: { type: 'string' },
    quiet: { type: 'boolean', default: false },
    groups: { type: 'boolean', default: false },
    'update-pending': { type: 'boolean', default: false },
    init: { type: 'boolean', default: false },
  },
});

const RUNS = { http: runHttpSuite, sql: runSqlSuite, decided: runDecidedSuite };
const only = values.only;
const choose: Choose = only === undefined ? () => true : (id) => id.includes(only);
const before = readPending();
const totals = { passed: 0, pending: 0, failed: 0 };
const next: { -readonly [Name in Suite]: readonly string[] } = { ...before };

for (const suite of SUITES.filter((name) => (values.suite ?? name) === name)) {
  const results = await RUNS[suite](choose);
  const failing = report(suite, results, new Set(before[suite]));
  const unseen = before[suite].filter((id) => !results.has(id) && only !== undefined);
  next[suite] = values.init
    ? [...unseen, ...failing]
    : before[suite].filter((id) => !results.has(id) || failing.includes(id));
}
if (values['update-pending'] || values.init) {
  writePending(next satisfies Pending);
}
process.stdout.write(
  `${totals.passed} passed, ${totals.pending} pending, ${totals.failed} failed\n`,
);
const internal = internalErrorReport();
if (internal !== undefined) {
  process.stdout.write(`${internal}\n`);
}
process.exitCode = (totals.failed === 0 || values.init) && internal === undefined ? 0 : 1;

/**
 * Prints the failures. A listed case that passes counts as a failure, because it shows that the
 * list is outdated.
 */
function report(suite: string, results: Results, listed: ReadonlySet<string>): string[] {
  const failing: string[] = [];
  const groups = new Map<string, [passed: number, all: number]>();
  for (const [id, problem] of results) {
    const group = id.replace(/\.\d+$/, '');
    const [passed, all] = groups.get(group) ?? [0, 0];
    groups.set(group, [passed + (problem === null ? 1 : 0), all + 1]);
    if (problem !== null) {
      failing.push(id);
    }
    count(id, problem, listed);
  }
  if (values.groups) {
    for (const [group, [passed, all]] of groups) {
      process.stdout.write(`  ${group.padEnd(24)} ${passed} of ${all}\n`);
    }
  }
  const passed = results.size - failing.length;
  process.stdout.write(`${suite}: ${passed} of ${results.size} hold\n`);
  return failing;
}

function count(id: string, problem: string | null, listed: ReadonlySet<string>): void {
  if (problem === null && listed.has(id) && !values['update-pending'] && !values.init) {
    process.stdout.write(`passes, but is listed as pending: ${id}\n`);
    totals.failed += 1;
  } else if (problem === null) {
    totals.passed += 1;
  } else if (listed.has(id)) {
    totals.pending += 1;
    print(id, problem);
  } else {
    totals.failed += 1;
    print(id, problem);
  }
}

function print(id: string, problem: string): void {
  if (!values.quiet) {
    process.stdout.write(`${id}\n  ${problem.replaceAll('\n', '\n  ')}\n`);
  }
}
