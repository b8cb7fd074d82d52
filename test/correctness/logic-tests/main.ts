/**
 * Runs the logic tests of other databases over the wire protocol and counts equal, refused, wrong
 * and internal results.
 *
 *     npm run logic-tests -- --suite sqlite|duckdb|postgres|datafusion|tidemark --path DIR
 *       [--only TEXT] [--from PATH] [--limit FILES] [--sample PERCENT --seed S]
 *       [--report FILE] [--oracle URL]
 *
 * `--only` runs files whose path contains TEXT, `--from` resumes at a path. `--report` writes one
 * JSON line for each record that is not equal. `--oracle` is a PostgreSQL server that provides the
 * expected results of the suite postgres, whose DIR is src/test/regress. See
 * docs/sql-correctness.md.
 */
import { appendFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';

import { internalErrorReport } from '../../internal-errors.js';
import { Random } from '../../torture/harness.js';
import { DIALECTS, type SuiteName, SUITES } from './dialects.js';
import { FileRun } from './file-run.js';
import { OracleRun, scheduledScripts } from './oracle-run.js';
import { Tally } from './tally.js';
import { FreshServer } from './wire.js';

/** Maximum number of refusal classes to print. */
const MAX_CLASSES = 40;

const { values } = parseArgs({
  options: {
    suite: { type: 'string' },
    path: { type: 'string' },
    only: { type: 'string', default: '' },
    from: { type: 'string', default: '' },
    limit: { type: 'string', default: '0' },
    sample: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    report: { type: 'string' },
    oracle: { type: 'string' },
  },
});

const say = (line: string): boolean => process.stdout.write(`${line}\n`);

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

const suite: SuiteName =
  SUITES.find((name) => name === values.suite) ??
  fail(`--suite ${String(values.suite)}: expected one of ${SUITES.join(', ')}`);
const folder = values.path ?? fail('--path DIR: expected the directory of the test files');
const dialect = DIALECTS[suite];

function chosenFiles(): readonly string[] {
  const all =
    suite === 'postgres'
      ? scheduledScripts(folder)
      : readdirSync(folder, { recursive: true, encoding: 'utf8' })
          .filter((name) => dialect.files.test(name))
          .toSorted()
          .map((name) => join(folder, name));
  const random = new Random(Number(values.seed));
  const fraction = Number(values.sample) / 100;
  const drawn = all.filter(() => random.next() < fraction);
  const begin = drawn.findIndex((file) => relative(folder, file).startsWith(values.from));
  const chosen = drawn
    .slice(Math.max(0, begin))
    .filter((file) => relative(folder, file).includes(values.only));
  return Number(values.limit) === 0 ? chosen : chosen.slice(0, Number(values.limit));
}

function printClasses({ findings }: Tally): void {
  for (const verdict of ['refused', 'skipped'] as const) {
    const classes = new Map<string, number>();
    for (const { why } of findings.filter((finding) => finding.verdict === verdict)) {
      const name = why.replace(/ ⟨.*/s, '');
      classes.set(name, (classes.get(name) ?? 0) + 1);
    }
    for (const [name, count] of [...classes]
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, MAX_CLASSES)) {
      say(`${verdict} ${String(count)} ${name}`);
    }
  }
}

const files = chosenFiles();
if (files.length === 0) {
  fail(`${folder}: no test file of ${suite} matches`);
}
if (values.report !== undefined) {
  writeFileSync(values.report, '');
}
const server = await FreshServer.start();
const total = new Tally();
let oracle: OracleRun | undefined;
if (suite === 'postgres') {
  const url = values.oracle ?? fail('--oracle URL: expected a PostgreSQL to compare with');
  oracle = new OracleRun(server, dialect, folder, url);
  await oracle.prepare();
}
for (const [index, file] of files.entries()) {
  const began = Date.now();
  const tally = await (oracle ?? new FileRun(server, dialect, folder)).run(file);
  total.add(tally);
  const seconds = ((Date.now() - began) / 1000).toFixed(1);
  say(`${relative(folder, file)}: ${tally.line()}`);
  process.stderr.write(`${String(index + 1)}/${String(files.length)} ${file} ${seconds} s\n`);
  if (values.report !== undefined) {
    const lines = tally.findings.map((finding) => `${JSON.stringify(finding)}\n`);
    appendFileSync(values.report, lines.join(''));
  }
}
printClasses(total);
say(`${String(files.length)} files, ${String(server.restarts)} restarts of the server`);
say(`total: ${total.line()}`);
await oracle?.close();
await server.close();
const internal = internalErrorReport();
if (internal !== undefined) {
  say(internal);
}
process.exit(internal === undefined ? 0 : 1);
