import test from 'ava';
import { SqlError } from '../src/api/client.js';
import type { Answer } from '../src/api/cells.js';
import {
  distinctQuery,
  factsOf,
  factsQuery,
  rowsOfQuery,
  rowsOfTable,
  shaped,
  shapeQuery,
  type Facts,
} from '../src/profile/questions.js';
import { summarize, type ColumnSummary } from '../src/profile/summary.js';
import { serialQueue } from '../src/profile/serial-queue.js';

function answer(record: Readonly<Record<string, string | number | null>>): Answer {
  const columns = Object.keys(record).map((name) => ({ name, type: 'LONG' }));
  return { head: { columns }, rows: [Object.values(record)] };
}

const NUMBERS = { rows: 10, filled: 8, least: '-1', greatest: '23', low: -1, high: 23, mean: 4 };

test('unusual column and table names are quoted', (t) => {
  const odd = { name: 'a" FROM b; --', type: 'DOUBLE' };
  const rows = rowsOfTable('t"1');
  t.is(rows.from, '"t""1"');
  for (const text of [
    factsQuery(odd, rows.from),
    distinctQuery(odd, rows.from),
    shapeQuery(odd, factsOf(answer(NUMBERS)), rows.from),
  ]) {
    t.notRegex(text ?? '', /a" FROM/);
    t.regex(text ?? '', /"a"" FROM b; --"/);
  }
  t.is(rowsOfQuery('SELECT 1 -- one\n ; ').from, '(SELECT 1 -- one\n)');
});

test('only statistics that suit the column type are queried', (t) => {
  const facts = (type: string) => factsQuery({ name: 'c', type }, 't');
  t.regex(facts('LONG'), /min.*max.*avg/);
  t.notRegex(facts('TIMESTAMP'), /avg/);
  t.regex(facts('TIMESTAMP'), /min\("c"\)::LONG::DOUBLE AS low/);
  t.is(facts('BOOLEAN'), 'SELECT count() AS rows FROM t');
  t.is(facts('UUID'), 'SELECT count() AS rows, count("c") AS filled FROM t');
  t.is(distinctQuery({ name: 'c', type: 'ARRAY' }, 't'), undefined);
  const none: Facts = factsOf(answer({ rows: 3 }));
  t.is(shapeQuery({ name: 'c', type: 'BINARY' }, none, 't'), undefined);
  t.is(
    shapeQuery({ name: 'c', type: 'DOUBLE' }, none, 't'),
    undefined,
    'a column of nulls has no distribution',
  );
  const equal = factsOf(answer({ ...NUMBERS, low: 5, high: 5 }));
  t.is(shapeQuery({ name: 'c', type: 'DOUBLE' }, equal, 't'), undefined);
  const huge = factsOf(answer({ ...NUMBERS, low: -1.7e308, high: 1.7e308 }));
  t.is(shapeQuery({ name: 'c', type: 'DOUBLE' }, huge, 't'), undefined);
});

test('query results are combined into one profile', (t) => {
  const facts = factsOf(answer(NUMBERS));
  t.like(facts.profile, { rows: 10, nulls: 2, min: '-1', max: '23', mean: 4 });
  const columns = [
    { name: 'part', type: 'INT' },
    { name: 'n', type: 'LONG' },
  ];
  const rows = [
    [0, 1],
    [1, 2],
    [24, 3],
    [25, 4],
  ];
  const { bins } = shaped(facts, 'DOUBLE', { head: { columns }, rows });
  t.is(bins.length, 24);
  t.deepEqual(
    [bins[0], bins.at(-1)],
    [
      { from: -1, to: 0, count: 3 },
      { from: 22, to: 23, count: 7 },
    ],
  );
  const times = { ...facts, low: 0, high: 24 * 3_600_000_000 };
  const [first] = shaped(times, 'TIMESTAMP', { head: { columns }, rows }).bins;
  t.is(first?.name, '1970-01-01 00:00:00 to 1970-01-01 01:00:00');
  t.is(
    factsOf(answer({ rows: 7 })).profile.nulls,
    0,
    'the null count is zero if it was not queried',
  );
});

test('frequent strings are listed unless all are distinct', (t) => {
  const facts = factsOf(answer({ rows: 9, filled: 9, longest: 3 }));
  const columns = [
    { name: 'value', type: 'VARCHAR' },
    { name: 'n', type: 'LONG' },
  ];
  const of = (rows: Answer['rows']) =>
    shaped(facts, 'SYMBOL', { head: { columns }, rows }).frequent;
  t.deepEqual(
    of([
      ['a', 4],
      ['', 2],
    ]),
    [
      { text: 'a', count: 4 },
      { text: '', count: 2 },
    ],
  );
  t.deepEqual(of([['a', 1]]), []);
});

async function all(
  requested: string[],
  refuse: (statement: string) => Error | undefined,
  signal = new AbortController().signal,
): Promise<ColumnSummary[]> {
  const known: ColumnSummary[] = [];
  const column = { name: 'c', type: 'DOUBLE' };
  const run = (statement: string): Promise<Answer> => {
    requested.push(statement);
    const error = refuse(statement);
    return error ? Promise.reject(error) : Promise.resolve(answer(NUMBERS));
  };
  for await (const one of summarize(column, rowsOfTable('t'), signal, run)) {
    known.push(one);
  }
  return known;
}

const TIMEOUT = new SqlError('timeout, query aborted [timeout=10000ms]', 0, 400);

test('a sample of the rows is profiled if reading all rows takes too long', async (t) => {
  const requested: string[] = [];
  const known = await all(requested, (text) => (text.endsWith('FROM "t"') ? TIMEOUT : undefined));
  t.is(known.at(-1)?.sampleName, 'the last 1,000,000 rows');
  t.true(requested.slice(1).every((text) => text.includes('LIMIT -1000000')));
});

test('statistics that time out are listed as missing; the others are shown', async (t) => {
  const known = await all([], (text) => (text.includes('count_distinct') ? TIMEOUT : undefined));
  t.deepEqual(
    known.map(({ isWhole }) => isWhole),
    [false, false, true],
  );
  t.deepEqual(known.at(-1)?.missing, ['distinct values']);
  t.is(known.at(-1)?.profile.rows, 10);
});

test('errors other than limit errors are thrown', async (t) => {
  const denied = new SqlError('Access denied [SELECT on t]', 0, 403);
  await t.throwsAsync(() => all([], () => denied), { message: /Access denied/ });
});

test('queued requests run one at a time; aborted requests do not block the queue', async (t) => {
  const enter = serialQueue();
  const abort = new AbortController();
  const first = await enter(new AbortController().signal);
  const order: string[] = [];
  const given = enter(abort.signal).then(() => order.push('given up'));
  const third = enter(new AbortController().signal).then(() => order.push('third'));
  abort.abort();
  await new Promise((resolve) => setTimeout(resolve, 5));
  t.deepEqual(order, [], 'the first request is still running');
  first();
  await Promise.all([given, third]);
  t.deepEqual(order, ['given up', 'third']);
});
