import test from 'ava';
import type { Row } from '../src/api/answer.js';
import { filtered, filterOf, type JobFilter } from '../src/jobs/model.js';
import { tableEntries, type TableEntry } from '../src/schema/model.js';
import { treeRows, type TreeRow } from '../src/schema/rows.js';
import { jobsOf } from '../src/state/jobs.js';
import { ageText, freshnessOf, freshnessText, type MaterializedFacts } from '../src/views/model.js';

function answer(names: string[], rows: Row[]): Parameters<typeof tableEntries>[0] {
  return { head: { columns: names.map((name) => ({ name, type: 'STRING' })) }, rows };
}

const COLUMNS = [
  'table_name',
  'table_type',
  'table_row_count',
  'refresh_type',
  'base_table_name',
  'view_status',
  'invalidation_reason',
  'last_refresh_finish_timestamp',
  'refresh_base_table_txn',
  'base_table_txn',
  'asked_at',
];
const NOW = '2026-11-26T12:00:00.000000Z';

function listed(name: string, ...view: Row): TableEntry {
  const row = [name, view.length > 0 ? 'M' : 'T', 5, ...view, ...(view.length > 0 ? [NOW] : [])];
  const [entry] = tableEntries(
    answer(COLUMNS, [[...row, ...COLUMNS.slice(row.length).map(() => null)]]),
  );
  return entry!;
}

function viewOf(...view: Row): MaterializedFacts {
  return listed('v', ...view).view!;
}

const AGO_5_S = '2026-11-26T11:59:55.000000Z';
const AGO_5_MIN = '2026-11-26T11:55:00.000000Z';

test('tables are no views', (t) => {
  t.is(listed('trades').view, undefined);
  t.is(listed('trades').kind, 'table');
});

test('a view tells its base, its state and how far behind it is', (t) => {
  const described = (...view: Row): [string, number, boolean, string] => {
    const facts = viewOf(...view);
    const { kind, behind, isLate } = freshnessOf(facts);
    return [kind, behind, isLate, freshnessText(facts)];
  };
  t.deepEqual(described('immediate', 'b', 'valid', null, AGO_5_MIN, 7, 7), [
    'current',
    0,
    false,
    'Valid, shows all of its base; refreshed 5 min ago',
  ]);
  t.deepEqual(described('manual', 'b', 'valid', null, AGO_5_MIN, 7, 1207), [
    'behind',
    1200,
    false,
    'Valid, behind by up to 1,200 transactions; refreshed 5 min ago',
  ]);
  t.deepEqual(described('manual', 'b', 'valid', null, null, null, 3), [
    'empty',
    3,
    false,
    'Valid, not filled yet; never refreshed',
  ]);
  t.deepEqual(described('timer', 'b', 'refreshing', null, AGO_5_S, 7, 8), [
    'refreshing',
    1,
    false,
    'Refreshing; refreshed 5 s ago',
  ]);
  t.deepEqual(described('immediate', 'b', 'invalid', 'truncate operation', AGO_5_S, 7, 8), [
    'invalid',
    1,
    false,
    'Invalid: truncate operation; refreshed 5 s ago',
  ]);
});

test('a view that follows each change may rest a little, not for long', (t) => {
  const resting = freshnessOf(viewOf('immediate', 'b', 'valid', null, AGO_5_S, 7, 8));
  t.deepEqual([resting.kind, resting.isLate], ['current', false]);
  const late = freshnessOf(viewOf('immediate', 'b', 'valid', null, AGO_5_MIN, 7, 8));
  t.deepEqual([late.kind, late.isLate], ['behind', true]);
  const timed = freshnessOf(viewOf('timer', 'b', 'valid', null, AGO_5_S, 7, 8));
  t.deepEqual([timed.kind, timed.isLate], ['behind', false]);
});

test('the base of a view may be hidden from who asks', (t) => {
  t.is(viewOf('immediate', null, 'valid', null, AGO_5_S, 7, 7).base, undefined);
});

test('spans of time are described in their largest unit', (t) => {
  const spans = [0, 999, 1000, 59_999, 60_000, 3_600_000, 200_000_000, 9e11];
  t.deepEqual(spans.map(ageText), ['0 s', '0 s', '1 s', '59 s', '1 min', '1 h', '2 d', '10,416 d']);
});

test('the tree says what is wrong with views, and finds them by that word', (t) => {
  const entries = [
    listed('a', 'immediate', 'b', 'valid', null, AGO_5_S, 7, 7),
    listed('bad', 'immediate', 'b', 'invalid', 'truncate operation', AGO_5_MIN, 7, 8),
    listed('old', 'manual', 'b', 'valid', null, AGO_5_MIN, 7, 8),
  ];
  const rows = (opened: string[], filter = ''): TreeRow[] =>
    treeRows(entries, new Map(), new Set(opened), new Set(), filter);
  t.like(rows([])[0], { name: 'Materialized views', count: 3, invalid: 1 });
  const facts = rows(['bad']).flatMap((row) =>
    row.kind === 'fact' ? [[row.name, row.text, row.isBad]] : [],
  );
  t.deepEqual(facts, [
    ['from', 'b', false],
    ['state', 'Invalid: truncate operation', true],
    ['lag', 'up to 1 transaction', false],
    ['last', '5 min ago', false],
  ]);
  const found = (word: string): string[] =>
    rows([], word).flatMap((row) => (row.kind === 'table' ? row.table.name : []));
  t.deepEqual(found('invalid'), ['bad']);
  t.deepEqual(found('behind'), ['old']);
});

const JOBS = jobsOf(
  answer(
    ['kind', 'name', 'state', 'last_error', 'last_start', 'last_micros', 'runs', 'failures'],
    [
      ['refresh', 'candles', 'failing', 'no room', NOW, '1500', '4', '2'],
      ['refresh', 'hourly', 'running', null, NOW, '1500', '4', '0'],
      ['refresh', 'lost', 'stopped', 'truncate operation', null, '0', '0', '0'],
      ['expiry', '', 'waiting', null, null, '0', '0', '0'],
    ],
  ),
);

test('jobs are read and filtered by state and by words', (t) => {
  t.like(JOBS[0], { lastMs: 1.5, runs: 4, failures: 2, lastError: 'no room', nextRun: undefined });
  const names = (filter: JobFilter, wanted = ''): string[] =>
    filtered(JOBS, filter, wanted).map(({ kind, name }) => `${kind} ${name}`.trim());
  t.deepEqual(names('trouble'), ['refresh candles', 'refresh lost']);
  t.deepEqual(names('running'), ['refresh hourly']);
  t.deepEqual(names('resting'), ['expiry']);
  t.deepEqual(names('all', ' TRUNCATE '), ['refresh lost']);
  t.deepEqual(names('trouble', 'cand'), ['refresh candles']);
  t.is(filterOf('trouble'), 'trouble');
  t.is(filterOf('nonsense'), 'all');
});
