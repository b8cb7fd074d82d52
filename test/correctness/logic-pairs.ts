/**
 * A predicate splits a table into three sets of rows: where it holds, where its negation holds, and
 * where neither holds (`x < 1` and `NOT x < 1` are both false for a null `x`). Together they must
 * make up the whole table (TLP). Counting the selected rows must equal summing the predicate over
 * all rows (NoREC). The two queries of each pair take different paths through the optimizer.
 *
 *     npm run logic-pairs -- --pairs N --seed S
 */
import { Harness } from '../torture/harness.js';
import { difference } from './answers.js';
import { type Answer, Refusal, Tidemark } from './databases.js';
import { Predicates, logicTable } from './logic-tables.js';

const PAIRS_PER_TABLES = 100;

const harness = new Harness('logic-pairs', ['pairs']);
const tidemark = await Tidemark.start();

interface Source {
  readonly sql: string;
  readonly prefixes: readonly string[];
}

const SOURCES: readonly Source[] = [
  { sql: 't0', prefixes: [''] },
  { sql: 't0', prefixes: [''] },
  { sql: 't0 p', prefixes: ['p.'] },
  { sql: 't0 p JOIN t1 q ON p.l = q.l', prefixes: ['p.', 'q.'] },
  { sql: 't0 p LEFT JOIN t1 q ON p.s = q.s', prefixes: ['p.', 'q.'] },
  { sql: 't0 p CROSS JOIN t1 q', prefixes: ['p.', 'q.'] },
  { sql: '(SELECT * FROM t0 UNION ALL SELECT * FROM t1) p', prefixes: ['p.'] },
  { sql: '(SELECT * FROM t0 ORDER BY l, i LIMIT 7) p', prefixes: ['p.'] },
];

/** Aggregates that summarize rows; the summaries of several subsets can be combined. */
const SUMMARY = (prefix: string): string =>
  ['count(*)', ...['l', 'i', 'd'].map((name) => `sum(${prefix}${name})`)]
    .map((sql, index) => `${sql} c${index}`)
    .join(', ');

function sums(answers: readonly Answer[]): Answer {
  const rows = answers.map(({ rows: [row] }) => (row ?? []).map(Number));
  const width = rows[0]?.length ?? 0;
  return {
    rows: [
      Array.from({ length: width }, (_, i) => rows.reduce((all, row) => all + (row[i] ?? 0), 0)),
    ],
  };
}

async function partitions(source: Source, predicate: string): Promise<string | undefined> {
  const select = `SELECT ${SUMMARY(source.prefixes[0] ?? '')} FROM ${source.sql}`;
  const opposite = `NOT (${predicate})`;
  const neither = `CASE WHEN ${predicate} OR ${opposite} THEN false ELSE true END`;
  const parts = [predicate, opposite, neither].map((where) => `${select} WHERE ${where}`);
  const answers = await Promise.all([select, ...parts].map((sql) => tidemark.query(sql)));
  const problem = difference(sums(answers.slice(1)), sums(answers.slice(0, 1)));
  return problem === undefined ? undefined : `${problem}\n  ${parts.join('\n  ')}`;
}

async function counts(source: Source, predicate: string): Promise<string | undefined> {
  const kept = `SELECT count(*) FROM ${source.sql} WHERE ${predicate}`;
  const value = `CASE WHEN ${predicate} THEN 1 ELSE 0 END`;
  const added = `SELECT coalesce(sum(${value}), 0) FROM ${source.sql}`;
  const [a, b] = await Promise.all([tidemark.query(kept), tidemark.query(added)]);
  const problem = difference(a, b);
  return problem === undefined ? undefined : `${problem}\n  ${kept}\n  ${added}`;
}

let refused = 0;

async function pair(): Promise<string | undefined> {
  const source = harness.random.pick(SOURCES);
  const predicate = new Predicates(harness.random, source.prefixes).next();
  const counts_ = harness.random.pick([partitions, counts]);
  try {
    return await counts_(source, predicate);
  } catch (error) {
    if (error instanceof Refusal) {
      // A predicate may be refused only for a reason that the dialect defines.
      refused += 1;
      return /unsupported|not supported|internal|physical|panic/i.test(error.message) ||
        error.status >= 500
        ? `${error.message}\n  ${source.sql} WHERE ${predicate}`
        : undefined;
    }
    throw error;
  }
}

const total = harness.number('pairs', 1000);
let setup: readonly string[] = [];
for (let index = 0; index < total; index += 1) {
  if (index % PAIRS_PER_TABLES === 0) {
    setup = ['t0', 't1'].flatMap((name) => logicTable(name, harness.random));
    for (const sql of setup) {
      await tidemark.query(sql);
    }
  }
  const before = harness.failures;
  const problem = await pair();
  harness.judge(problem === undefined ? undefined : `pair ${index}: ${problem}`);
  if (before === 0 && problem !== undefined) {
    harness.say(`${setup.join(';\n')};`);
  }
}
harness.say(`${total} pairs, ${refused} of them refused for their types`);
if (refused > total / 4) {
  harness.fail(`more than a quarter of the predicates were refused`);
}
await tidemark.close();
harness.finish();
