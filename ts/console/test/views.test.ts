import test from 'ava';
import type { Row } from '../src/api/answer.js';
import { filtered, filterOf, type JobFilter } from '../src/jobs/model.js';
import { tableEntries, type TableEntry } from '../src/model/schema.js';
import { treeRows, type TreeRow } from '../src/schema/rows.js';
import { jobsOf } from '../src/state/jobs.js';
import { mayDo, ownGrants } from '../src/state/own-rights.js';
import { ageText, freshnessOf, freshnessText, type ViewFacts } from '../src/model/views.js';
import {
  changeStatement,
  definitionOf,
  draftOf,
  invalidAdvice,
  nextTick,
  policyText,
  rangeStatement,
} from '../src/views/refresh.js';

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
  const [entry] = tableEntries(answer(COLUMNS, [COLUMNS.map((_, index) => row[index] ?? null)]));
  if (!entry) {
    throw new Error('no entry');
  }
  return entry;
}

function viewOf(...view: Row): ViewFacts {
  const { view: facts } = listed('v', ...view);
  if (!facts) {
    throw new Error('no view');
  }
  return facts;
}

const AGO_5_S = '2026-11-26T11:59:55.000000Z';
const AGO_5_MIN = '2026-11-26T11:55:00.000000Z';

test('tables are not shown as views', (t) => {
  t.is(listed('trades').view, undefined);
  t.is(listed('trades').kind, 'table');
});

test('a view shows its base table, state and lag', (t) => {
  const described = (...view: Row): [string, number, boolean, string] => {
    const facts = viewOf(...view);
    const { kind, isLate } = freshnessOf(facts);
    return [kind, facts.behind, isLate, freshnessText(facts)];
  };
  t.deepEqual(described('immediate', 'b', 'valid', null, AGO_5_MIN, 7, 7), [
    'current',
    0,
    false,
    'Valid, up to date with its base table; refreshed 5 min ago',
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

test('a view with immediate refresh may pause briefly without counting as late', (t) => {
  const resting = freshnessOf(viewOf('immediate', 'b', 'valid', null, AGO_5_S, 7, 8));
  t.deepEqual([resting.kind, resting.isLate], ['current', false]);
  const late = freshnessOf(viewOf('immediate', 'b', 'valid', null, AGO_5_MIN, 7, 8));
  t.deepEqual([late.kind, late.isLate], ['behind', true]);
  const timed = freshnessOf(viewOf('timer', 'b', 'valid', null, AGO_5_S, 7, 8));
  t.deepEqual([timed.kind, timed.isLate], ['behind', false]);
});

test('the base table of a view may be invisible to the user', (t) => {
  t.is(viewOf('immediate', null, 'valid', null, AGO_5_S, 7, 7).base, undefined);
});

test('durations are shown in their largest unit', (t) => {
  const spans = [0, 999, 1000, 59_999, 60_000, 3_600_000, 200_000_000, 9e11];
  t.deepEqual(spans.map(ageText), ['0 s', '0 s', '1 s', '59 s', '1 min', '1 h', '2 d', '10,416 d']);
});

test('the tree shows the state of views and can be filtered by it', (t) => {
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
    ['last refresh', '5 min ago', false],
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

test('jobs are parsed and filtered by state and text', (t) => {
  t.like(JOBS[0], { lastMs: 1.5, runs: 4, failures: 2, lastError: 'no room', nextRun: undefined });
  const names = (filter: JobFilter, search = ''): string[] =>
    filtered(JOBS, filter, search).map(({ kind, name }) => `${kind} ${name}`.trim());
  t.deepEqual(names('trouble'), ['refresh candles', 'refresh lost']);
  t.deepEqual(names('running'), ['refresh hourly']);
  t.deepEqual(names('resting'), ['expiry']);
  t.deepEqual(names('all', ' TRUNCATE '), ['refresh lost']);
  t.deepEqual(names('trouble', 'cand'), ['refresh candles']);
  t.is(filterOf('trouble'), 'trouble');
  t.is(filterOf('nonsense'), 'all');
});

const STATEMENT = `CREATE MATERIALIZED VIEW 'it''s AS (' WITH BASE 'trades' REFRESH EVERY 5m
 DEFERRED START '2026-01-01T00:00:00.000000Z' TIME ZONE 'Europe/Berlin'
 PERIOD (LENGTH 1d TIME ZONE 'Asia/Tokyo' DELAY 2h) AS (
SELECT ts, count() n FROM trades SAMPLE BY 1d
) PARTITION BY YEAR;`;

test('the definition of a view is parsed from its statement', (t) => {
  const definition = definitionOf(STATEMENT);
  t.deepEqual(definition, {
    query: 'SELECT ts, count() n FROM trades SAMPLE BY 1d',
    policy: {
      trigger: 'timer',
      every: { count: 5, unit: 'm' },
      isDeferred: true,
      start: '2026-01-01T00:00:00.000000Z',
      zone: 'Europe/Berlin',
      period: { kind: 'length', length: '1d', zone: 'Asia/Tokyo', delay: '2h' },
    },
  });
  t.is(
    definition && policyText(definition.policy),
    'timer: every 5 min in Europe/Berlin; not filled when created',
  );
  const other = definitionOf(
    'CREATE MATERIALIZED VIEW v WITH BASE b REFRESH MANUAL PERIOD (SAMPLE BY INTERVAL) ' +
      'AS (SELECT 1)',
  );
  t.like(other?.policy, { trigger: 'manual', every: undefined, period: { kind: 'bucket' } });
  t.is(definitionOf('CREATE TABLE t (x INT)'), undefined);
  t.is(definitionOf('CREATE MATERIALIZED VIEW'), undefined);
});

test('the ALTER statement contains the settings shown in the dialog', (t) => {
  const draft = draftOf(definitionOf(STATEMENT)?.policy);
  const statement = changeStatement("it's", draft);
  t.is(
    statement,
    `ALTER MATERIALIZED VIEW "it's" SET REFRESH EVERY 5m START '2026-01-01T00:00:00.000000Z' ` +
      `TIME ZONE 'Europe/Berlin' PERIOD (LENGTH 1d TIME ZONE 'Asia/Tokyo' DELAY 2h)`,
  );
  t.is(
    changeStatement('v', { ...draft, trigger: 'manual', period: 'bucket' }),
    'ALTER MATERIALIZED VIEW v SET REFRESH MANUAL PERIOD (SAMPLE BY INTERVAL)',
  );
  t.is(changeStatement('v', draftOf(undefined)), 'ALTER MATERIALIZED VIEW v SET REFRESH IMMEDIATE');
  t.is(
    rangeStatement('v', "2026'", ' 2027 '),
    `REFRESH MATERIALIZED VIEW v RANGE FROM '2026''' TO '2027'`,
  );
});

test('timer refreshes occur at fixed steps from the start, in local time', (t) => {
  const tick = (count: number, unit: string, start: string, now: string, in_?: string): string =>
    new Date(nextTick({ count, unit }, Date.parse(start), Date.parse(now), in_)).toISOString();
  t.is(tick(10, 'm', '2026-01-01T00:05Z', '2026-01-01T00:16Z'), '2026-01-01T00:25:00.000Z');
  t.is(tick(10, 'm', '2026-01-01T00:05Z', '2026-01-01T00:15Z'), '2026-01-01T00:25:00.000Z');
  t.is(tick(10, 'm', '2027-01-01T00:05Z', '2026-01-01T00:15Z'), '2027-01-01T00:05:00.000Z');
  t.is(tick(1, 'M', '2026-01-31T00:00Z', '2026-02-03T00:00Z'), '2026-02-28T00:00:00.000Z');
  t.is(tick(1, 'y', '2024-02-29T00:00Z', '2026-06-01T00:00Z'), '2027-02-28T00:00:00.000Z');
  // Midnight in Berlin, before and after the clock change in March.
  const berlin = ['2026-01-01T00:00+01:00', '2026-03-29T12:00Z', 'Europe/Berlin'] as const;
  t.is(tick(1, 'd', ...berlin), '2026-03-29T22:00:00.000Z');
  t.is(tick(1, 'd', berlin[0], '2026-03-28T12:00Z', berlin[2]), '2026-03-28T23:00:00.000Z');
  t.is(tick(1, 'd', '2026-01-01Z', '2026-01-01T12:00Z', 'Nowhere'), '2026-01-02T00:00:00.000Z');
});

test('there is advice for every invalidation reason', (t) => {
  t.regex(invalidAdvice('truncate operation'), /^Its base table was truncated\..*recomputes it/);
  t.regex(invalidAdvice('drop column operation'), /^A column .* dropped\..*drop it and create/);
  t.regex(invalidAdvice(undefined), /^The view keeps/);
});

test('an action is permitted by a grant on the view or on all tables', (t) => {
  const grants = ownGrants(
    answer(
      ['permission', 'table_name', 'column_name', 'grant_option', 'origin'],
      [
        ['REFRESH MATERIALIZED VIEW', 'candles', null, false, 'G'],
        ['DROP MATERIALIZED VIEW', null, null, false, 'G'],
        ['ALTER MATERIALIZED VIEW', 'candles', 'price', false, 'G'],
      ],
    ),
  );
  t.true(mayDo(grants, 'REFRESH MATERIALIZED VIEW', 'CANDLES'));
  t.false(mayDo(grants, 'REFRESH MATERIALIZED VIEW', 'hourly'));
  t.true(mayDo(grants, 'DROP MATERIALIZED VIEW', 'hourly'));
  t.false(
    mayDo(grants, 'ALTER MATERIALIZED VIEW', 'candles'),
    'a grant on a column is not a grant on the view',
  );
  const admin = [{ permission: 'DATABASE ADMIN', table: undefined, isOfColumn: false }];
  t.true(mayDo(admin, 'ALTER MATERIALIZED VIEW', 'candles'));
});
