/** Views of all kinds, including materialized and live ones, as seen by tools. */
import test from 'ava';

import { until } from '../until.js';
import { answerOf, has, PASSWORD, portFor, program, skip } from './harness.js';
import { pgClient } from '../pg-client.js';

const STATEMENTS = [
  'CREATE TABLE vw_log (ts TIMESTAMP, pump SYMBOL, flow DOUBLE) TIMESTAMP(ts) PARTITION BY DAY WAL',
  "INSERT INTO vw_log VALUES ('2026-03-01T07:00Z', 'a', 4.0), ('2026-03-01T08:00Z', 'a', 2.0)",
  'CREATE VIEW vw_plain AS (SELECT pump, count() n FROM vw_log)',
  'CREATE MATERIALIZED VIEW vw_hours AS (SELECT ts, max(flow) hi FROM vw_log SAMPLE BY 1h)',
  `CREATE LIVE VIEW vw_live FLUSH EVERY 500ms START FROM BEGINNING AS (
    SELECT ts, pump, sum(flow) OVER d AS total FROM vw_log
    WINDOW d AS (PARTITION BY pump ORDER BY ts ANCHOR DAILY '06:00'))`,
];

const CATALOG: readonly (readonly [string, readonly string[]])[] = [
  [
    "SELECT relname, relkind FROM pg_class WHERE relname LIKE 'vw\\_%' ORDER BY relname",
    ['vw_hours,m', 'vw_live,m', 'vw_log,r', 'vw_plain,v'],
  ],
  [
    `SELECT table_name, table_type, is_insertable_into FROM information_schema.tables
      WHERE table_name LIKE 'vw\\_%' ORDER BY table_name`,
    ['vw_hours,VIEW,NO', 'vw_live,VIEW,NO', 'vw_log,BASE TABLE,YES', 'vw_plain,VIEW,NO'],
  ],
  [
    "SELECT matviewname, ispopulated FROM pg_matviews WHERE matviewname LIKE 'vw\\_%' ORDER BY 1",
    ['vw_hours,true', 'vw_live,true'],
  ],
  [
    `SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute
      WHERE attrelid = 'vw_live'::regclass AND attnum > 0 ORDER BY attnum`,
    [
      'ts,timestamp without time zone,true',
      'pump,character varying,false',
      'total,double precision,false',
    ],
  ],
  ["SELECT left(pg_get_viewdef('vw_live'::regclass, true), 15)", ['SELECT ts, pump']],
];

test.serial('the catalog, SQLAlchemy and Alembic list all kinds of views', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const client = pgClient(`127.0.0.1:${port}`, { password: PASSWORD });
  await client.connect();
  t.teardown(() => client.end());
  const rows = async (text: string): Promise<string[]> => {
    const result = await client.query<unknown[]>({ text, rowMode: 'array' });
    return result.rows.map((row) => row.join(','));
  };
  for (const statement of STATEMENTS) {
    await rows(statement);
  }
  await until(
    async () => (await rows('SELECT max(total) FROM vw_live'))[0] === '6',
    'the view is filled',
  );
  for (const [text, expected] of CATALOG) {
    t.deepEqual(await rows(text), expected as string[], text);
  }
  await rows('ANALYZE vw_log');
  if (!(await has('python3', '-c', 'import alembic, sqlalchemy, psycopg'))) {
    skip(t, 'alembic is not installed: node scripts/setup-tests.mjs');
    return;
  }
  t.deepEqual(await answerOf('python3', [program('views.py'), String(port)]), {
    names: [['vw_log'], ['vw_plain'], ['vw_hours', 'vw_live']],
    columns: {
      vw_plain: ['pump VARCHAR', 'n BIGINT'],
      vw_hours: ['ts TIMESTAMP', 'hi DOUBLE PRECISION'],
      vw_live: ['ts TIMESTAMP', 'pump VARCHAR', 'total DOUBLE PRECISION'],
    },
    definitions: ['SELECT pump, count()', 'SELECT ts, max(flow)', 'SELECT ts, pump, sum'],
    reflected: [['vw_hours', 'vw_live', 'vw_log', 'vw_plain'], 6],
    autogenerate: [[], []],
  });
});
