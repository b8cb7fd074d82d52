import test from 'ava';
import type { Row } from '../src/api/answer.js';
import { tableEntries, type TableEntry } from '../src/model/schema.js';
import { treeRows } from '../src/schema/rows.js';
import { isKeyword } from '../src/sql/keywords.js';
import {
  liveAdvice,
  liveDefinitionOf,
  liveProgressOf,
  repairText,
  startText,
  suspendStatement,
} from '../src/views/live.js';
import { freshnessOf, freshnessText, lagText, type ViewFacts } from '../src/model/views.js';

function answer(names: string[], rows: Row[]): Parameters<typeof tableEntries>[0] {
  return { head: { columns: names.map((name) => ({ name, type: 'STRING' })) }, rows };
}

const COLUMNS = [
  'table_name',
  'table_type',
  'table_row_count',
  'live_base',
  'live_status',
  'live_reason',
  'lag_seqtxn',
  'lag_micros',
  'last_processed_seqtxn',
  'job_state',
  'asked_at',
];

function listed(name: string, ...view: Row): TableEntry {
  const row = [name, 'L', '5', ...view, '2026-11-26T12:00:00.000000Z'];
  const [entry] = tableEntries(answer(COLUMNS, [row]));
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

const ACTIVE = ['b', 'active', null, '0', '300000000', '7', 'waiting'] satisfies Row;

test('a live view is shown as active, seeding, invalid, suspended or lagging', (t) => {
  const described = (...view: Row): readonly unknown[] => {
    const facts = viewOf(...view);
    return [freshnessOf(facts).kind, freshnessText(facts), lagText(facts)];
  };
  t.deepEqual(described(...ACTIVE), [
    'current',
    'Active, up to date with its base table; refreshed 5 min ago',
    'none',
  ]);
  t.deepEqual(described('b', 'active', null, '3', '300000000', '7', 'waiting'), [
    'behind',
    'Active, behind by up to 3 transactions; refreshed 5 min ago',
    'up to 3 transactions',
  ]);
  // The interval between two refreshes does not count as lag.
  t.is(described('b', 'active', null, '3', '2000000', '7', 'waiting')[0], 'current');
  t.deepEqual(described('b', 'active', null, '1200', '2000000', '7', 'paused'), [
    'suspended',
    'Suspended, behind by up to 1,200 transactions; refreshed 2 s ago',
    'up to 1,200 transactions',
  ]);
  t.deepEqual(described('b', 'seeding', null, '7', null, null, 'running'), [
    'seeding',
    'Seeding; never refreshed',
    undefined,
  ]);
  t.is(described('b', 'seeding', null, '7', null, null, 'paused')[1], 'Suspended; never refreshed');
  t.deepEqual(described('b', 'invalid', 'drop table operation', '1', '2000000', '7', 'stopped'), [
    'invalid',
    'Invalid: drop table operation; refreshed 2 s ago',
    'up to 1 transaction',
  ]);
  t.is(viewOf(null, 'active', null, '0', '1', '7', null).base, undefined);
});

test('the schema tree groups live views and filters them by state', (t) => {
  const entries = [
    listed('good', ...ACTIVE),
    listed('bad', 'b', 'invalid', 'rename column operation', '1', '2000000', '7', 'stopped'),
    listed('still', 'b', 'active', null, '4', '2000000', '7', 'paused'),
  ];
  const rows = (opened: string[], filter = ''): ReturnType<typeof treeRows> =>
    treeRows(entries, new Map(), new Set(opened), new Set(), filter);
  t.like(rows([])[0], { kind: 'group', name: 'Live views', count: 3, invalid: 1 });
  const facts = rows(['still']).flatMap((row) =>
    row.kind === 'fact' ? [[row.name, row.text, row.isBad]] : [],
  );
  t.deepEqual(facts, [
    ['from', 'b', false],
    ['state', 'Suspended', false],
    ['lag', 'up to 4 transactions', false],
    ['last refresh', '2 s ago', false],
  ]);
  const found = (word: string): string[] =>
    rows([], word).flatMap((row) => (row.kind === 'table' ? row.table.name : []));
  t.deepEqual(found('suspended'), ['still']);
  t.deepEqual(found('invalid'), ['bad']);
});

test('the definition of a live view is parsed from its statement', (t) => {
  const query = 'SELECT ts, sum(x) OVER (ORDER BY ts) total FROM t';
  const written =
    "CREATE LIVE VIEW 'it''s AS (' FLUSH EVERY 250ms IN MEMORY 2m PARTITION BY HOUR START FROM " +
    `'2026-03-02T00:00:00.000000Z' AS (\n${query}\n);`;
  const definition = liveDefinitionOf(written);
  t.deepEqual(definition, {
    query,
    flushEvery: '250ms',
    inMemory: '2m',
    partitionBy: 'HOUR',
    startFrom: '2026-03-02T00:00:00.000000Z',
  });
  t.is(definition && startText(definition, undefined), '2026-03-02 00:00:00 UTC');
  const short = liveDefinitionOf(`CREATE LIVE VIEW v FLUSH EVERY 1s START FROM NOW AS (${query})`);
  t.like(short, { inMemory: '1s', partitionBy: undefined, startFrom: 'NOW' });
  const bound = '2026-03-02T09:00:00.000000Z';
  t.is(short && startText(short, bound), 'when it was created: 2026-03-02 09:00:00 UTC');
  const all = liveDefinitionOf(
    `CREATE LIVE VIEW v FLUSH EVERY 1s START FROM BEGINNING AS (${query})`,
  );
  t.is(all && startText(all, undefined), 'the beginning: all rows of its base table');
  t.is(liveDefinitionOf('CREATE VIEW v AS (SELECT 1)'), undefined);
  t.is(liveDefinitionOf('CREATE LIVE VIEW'), undefined);
});

test('the last repair of a live view is described in words', (t) => {
  const names = [
    'view_lower_bound_timestamp',
    'in_mem_bytes',
    'o3_boundary_replay_rows',
    'checkpoint_repair_in_progress',
    'checkpoint_repair_correction_timestamp',
    'checkpoint_repair_high_timestamp',
    'checkpoint_repair_failures',
    'checkpoint_repair_last_disposition',
    'checkpoint_repair_last_denial',
  ];
  const textOf = (row: Row): string => repairText(liveProgressOf(answer(names, [row]))?.repair);
  const [from, to] = ['2026-03-01T09:00:00.000000Z', '2026-03-01T10:00:00.000000Z'];
  t.is(
    textOf([null, '0', '0', false, null, null, '0', null, null]),
    'none since start: rows arrived in order',
  );
  t.is(
    textOf([null, '9', '1200', false, from, to, '0', 'localized rebuild', null]),
    'from 2026-03-01 09:00:00 to 2026-03-01 10:00:00, 1,200 rows',
  );
  t.is(
    textOf([null, '9', '4', true, from, null, '0', 'boundary rebuild', 'results depend on all']),
    'from 2026-03-01 09:00:00 to the end, in progress: results depend on all',
  );
  t.is(liveProgressOf(answer(names, [])), undefined);
});

test('there is advice for every invalidation reason', (t) => {
  t.regex(
    liveAdvice('drop column operation'),
    /dropped\. The view keeps.*Add a column.*resumes automatically/,
  );
  t.regex(liveAdvice('rename column operation'), /renamed\..*Rename it back/);
  t.regex(
    liveAdvice('column has a different type [column=x, type=FLOAT, expected=DOUBLE]'),
    /a different type\..*Restore its type/,
  );
  t.regex(liveAdvice('rename table operation'), /^Its base table was renamed\. /);
  t.regex(liveAdvice('drop table operation'), /dropped\..*drop it and create it again/);
  t.regex(
    liveAdvice("a different table has the base table's name [table=t]"),
    /another table now has its name\..*drop it and create it again/,
  );
  t.regex(
    liveAdvice('the base table was renamed, and a different table now has its name [table=t]'),
    /renamed, and another table.*Restore both names/,
  );
  t.regex(liveAdvice('full refresh of the base materialized view'), /fully refreshed\..*drop it/);
  t.regex(liveAdvice(undefined), /^The view keeps.*resumes automatically once/);
});

test('a live view can be suspended and resumed; its keywords are highlighted', (t) => {
  t.is(suspendStatement('my view', true), 'ALTER LIVE VIEW "my view" SUSPEND WAL');
  t.is(suspendStatement('v', false), 'ALTER LIVE VIEW v RESUME WAL');
  t.true(['live', 'FLUSH', 'Memory', 'beginning', 'anchor'].every(isKeyword));
});
