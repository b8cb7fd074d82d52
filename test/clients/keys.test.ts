/**
 * Keys and indexes as declared, altered and read back through the catalog, and the types of catalog
 * columns. The results are those of PostgreSQL 15, except where a comment says otherwise.
 */
import test, { type ExecutionContext } from 'ava';
import type pg from 'pg';

import { PASSWORD, portFor } from './harness.js';
import { pgClient } from '../pg-client.js';

interface Connected {
  /** Rows with cells joined by `,`, or SQLSTATE and message. */
  readonly ask: (text: string, values?: readonly unknown[]) => Promise<readonly string[] | string>;
  /** Type OID of each column. */
  readonly types: (text: string) => Promise<readonly number[]>;
  /** The first cell in binary format, as hexadecimal. */
  readonly binary: (text: string) => Promise<string>;
}

async function connected(t: ExecutionContext): Promise<Connected | null> {
  const port = await portFor(t);
  if (port === null) {
    return null;
  }
  const client = pgClient(`127.0.0.1:${port}`, { password: PASSWORD });
  // Leaves values unparsed.
  const raw = { getTypeParser: () => (value: string | Buffer) => value };
  const rows = async (query: object): Promise<pg.QueryArrayResult<unknown[]>> =>
    await client.query<unknown[]>({ rowMode: 'array', types: raw, ...query } as never);
  await client.connect();
  t.teardown(() => client.end());
  return {
    ask: async (text, values = []) => {
      try {
        return (await rows({ text, values })).rows.map((row) => row.join(','));
      } catch (error) {
        const { code, message } = error as pg.DatabaseError;
        return `${code} ${message}`;
      }
    },
    types: async (text) => (await rows({ text })).fields.map(({ dataTypeID }) => dataTypeID),
    binary: async (text) => {
      const result = await rows({ text, binary: true, queryMode: 'extended' });
      return Buffer.from((result.rows[0]?.[0] as Buffer | null) ?? []).toString('hex');
    },
  };
}

const DEFINITIONS =
  'SELECT conname, contype, pg_get_constraintdef(oid) FROM pg_constraint ' +
  'WHERE conrelid = $1::regclass ORDER BY conname';
const INDEXES =
  'SELECT indexname, indexdef FROM pg_indexes WHERE tablename = $1 ORDER BY indexname';

test('declared constraints are listed under the names that PostgreSQL generates', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { ask } = session;
  await ask('CREATE TABLE kp (id BIGSERIAL PRIMARY KEY, name VARCHAR(20) NOT NULL UNIQUE)');
  await ask(
    'CREATE TABLE kk (b INT, a INT, up INT, ' +
      'kp_id BIGINT REFERENCES kp(id) ON DELETE CASCADE ON UPDATE SET NULL, ' +
      'PRIMARY KEY (a, b), CONSTRAINT kk_two UNIQUE (b, kp_id), CHECK (a > 0), ' +
      'FOREIGN KEY (up, b) REFERENCES kk)',
  );
  await ask('CREATE INDEX ON kk (up DESC NULLS LAST)');
  await ask('CREATE UNIQUE INDEX IF NOT EXISTS "Kk Up" ON kk USING btree (up, b)');
  t.deepEqual(await ask(DEFINITIONS, ['kk']), [
    'kk_kp_id_fkey,f,FOREIGN KEY (kp_id) REFERENCES kp(id) ON UPDATE SET NULL ON DELETE CASCADE',
    'kk_pkey,p,PRIMARY KEY (a, b)',
    'kk_two,u,UNIQUE (b, kp_id)',
    'kk_up_b_fkey,f,FOREIGN KEY (up, b) REFERENCES kk(a, b)',
  ]);
  t.deepEqual(await ask(INDEXES, ['kk']), [
    // PostgreSQL also shows the order of the column.
    'Kk Up,CREATE UNIQUE INDEX "Kk Up" ON public.kk USING btree (up, b)',
    'kk_pkey,CREATE UNIQUE INDEX kk_pkey ON public.kk USING btree (a, b)',
    'kk_two,CREATE UNIQUE INDEX kk_two ON public.kk USING btree (b, kp_id)',
    'kk_up_idx,CREATE INDEX kk_up_idx ON public.kk USING btree (up)',
  ]);
  const used =
    'SELECT constraint_name, column_name, ordinal_position ' +
    "FROM information_schema.key_column_usage WHERE table_name = 'kk' ORDER BY 1, 3";
  t.deepEqual(await ask(used), [
    'kk_kp_id_fkey,kp_id,1',
    'kk_pkey,a,1',
    'kk_pkey,b,2',
    'kk_two,b,1',
    'kk_two,kp_id,2',
    'kk_up_b_fkey,up,1',
    'kk_up_b_fkey,b,2',
  ]);
  const referential =
    'SELECT constraint_name, unique_constraint_name, update_rule, delete_rule ' +
    'FROM information_schema.referential_constraints ORDER BY 1';
  t.deepEqual(await ask(referential), [
    'kk_kp_id_fkey,kp_pkey,SET NULL,CASCADE',
    'kk_up_b_fkey,kk_pkey,NO ACTION,NO ACTION',
  ]);
  // The generated DDL contains all of them.
  const [again] = await ask('SHOW CREATE TABLE kk');
  t.truthy(again);
  await ask('DROP TABLE kk');
  await ask(again ?? '');
  t.is((await ask(DEFINITIONS, ['kk'])).length, 4);
  await ask('DROP TABLE kk; DROP TABLE kp');
});

test('constraints are dropped with their columns, and by name', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { ask } = session;
  await ask('CREATE TABLE kc (a INT PRIMARY KEY, b INT, c INT, d VARCHAR)');
  await ask('ALTER TABLE kc ADD CONSTRAINT kc_positive CHECK (a > 0)');
  await ask('CREATE INDEX kc_b ON kc (b); CREATE INDEX kc_lower ON kc (lower(d))');
  await ask('ALTER TABLE kc ADD CONSTRAINT kc_u UNIQUE (b, c)');
  t.is(
    await ask('CREATE INDEX kc_b ON kc (c)'),
    "42P07 'kc_b' already exists: choose another name",
  );
  t.deepEqual(await ask('CREATE INDEX IF NOT EXISTS kc_b ON kc (c)'), []);
  t.is(await ask('CREATE INDEX ON kc (missing)'), '42703 Invalid column: missing');
  t.is(
    await ask('ALTER TABLE kc ADD PRIMARY KEY (b)'),
    "22P02 multiple primary keys for table 'kc' are not allowed",
  );
  await ask('ALTER TABLE kc RENAME COLUMN b TO bb');
  const columns =
    "SELECT conname, conkey FROM pg_constraint WHERE conrelid = 'kc'::regclass ORDER BY 1";
  t.deepEqual(await ask(columns), ['kc_pkey,{1}', 'kc_u,{2,3}']);
  t.deepEqual(await ask(INDEXES, ['kc']), [
    'kc_b,CREATE INDEX kc_b ON public.kc USING btree (bb)',
    'kc_pkey,CREATE UNIQUE INDEX kc_pkey ON public.kc USING btree (a)',
    'kc_u,CREATE UNIQUE INDEX kc_u ON public.kc USING btree (bb, c)',
  ]);
  await ask('ALTER TABLE kc DROP COLUMN c');
  t.deepEqual(await ask(columns), ['kc_pkey,{1}']);
  for (const change of [
    'DROP INDEX kc_lower',
    'DROP INDEX CONCURRENTLY kc_b',
    'ALTER TABLE kc DROP CONSTRAINT kc_positive',
    'ALTER TABLE kc DROP CONSTRAINT kc_pkey CASCADE',
  ]) {
    t.deepEqual(await ask(change), [], change);
  }
  t.deepEqual(await ask(columns), []);
  t.is(await ask('DROP INDEX kc_b'), '42P01 index does not exist [index=kc_b]');
  t.deepEqual(await ask('DROP INDEX IF EXISTS kc_b'), []);
  t.is(
    await ask('ALTER TABLE kc DROP CONSTRAINT kc_pkey'),
    "42703 constraint 'kc_pkey' of table 'kc' does not exist",
  );
  t.deepEqual(await ask('ALTER TABLE kc DROP CONSTRAINT IF EXISTS kc_pkey'), []);
  await ask('DROP TABLE kc');
});

test('DEDUP UPSERT KEYS are listed as a key', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { ask } = session;
  const rest = 'TIMESTAMP(ts) PARTITION BY DAY WAL DEDUP UPSERT KEYS(ts, k)';
  await ask(`CREATE TABLE kd (ts TIMESTAMP, k SYMBOL NOT NULL, v INT) ${rest}`);
  await ask(`CREATE TABLE ke (ts TIMESTAMP, k SYMBOL, v INT) ${rest}`);
  t.deepEqual(await ask(DEFINITIONS, ['kd']), ['kd_pkey,p,PRIMARY KEY (ts, k)']);
  t.deepEqual(await ask(DEFINITIONS, ['ke']), ['ke_key,u,UNIQUE (ts, k)']);
  await ask('ALTER TABLE kd DEDUP DISABLE');
  t.deepEqual(await ask(DEFINITIONS, ['kd']), []);
  await ask('DROP TABLE kd; DROP TABLE ke');
});

test('object IDs, names and arrays have the types of PostgreSQL', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { ask, types, binary } = session;
  await ask('CREATE TABLE ky (a INT, b INT, PRIMARY KEY (b, a))');
  const here = "WHERE conrelid = 'ky'::regclass";
  const [name, char, oid, int2s, names] = [19, 18, 26, 1005, 1003];
  t.deepEqual(await types(`SELECT oid, conname, contype, conkey FROM pg_constraint ${here}`), [
    oid,
    name,
    char,
    int2s,
  ]);
  // Types are preserved through sub-queries, joins, unions and grouping.
  t.deepEqual(
    await types(
      'SELECT relname, o FROM (SELECT oid o, relname FROM pg_class) c JOIN pg_index ON true',
    ),
    [name, oid],
  );
  t.deepEqual(
    await types('SELECT relname FROM pg_class UNION ALL SELECT attname FROM pg_attribute'),
    [name],
  );
  t.deepEqual(await types('SELECT relkind, count(*) FROM pg_class GROUP BY relkind'), [char, 20]);
  t.deepEqual(await types('SELECT relname::text, relkind::varchar FROM pg_class'), [1043, 1043]);
  t.deepEqual(await types('SELECT array_agg(attname) FROM pg_attribute'), [names]);
  t.deepEqual(await types('SELECT ARRAY(SELECT attname::text FROM pg_attribute)'), [1009]);
  const vector = "FROM pg_index WHERE indrelid = 'ky'::regclass";
  t.deepEqual(await types(`SELECT indkey, indclass ${vector}`), [22, 30]);
  // Vectors are indexed from 0.
  t.deepEqual(await ask(`SELECT indkey, indkey[0], indkey[1], indkey[2] ${vector}`), ['2 1,2,1,']);
  t.deepEqual(await ask(`SELECT generate_subscripts(indkey, 1) AS n ${vector} ORDER BY n`), [
    '0',
    '1',
  ]);
  t.deepEqual(await ask(`SELECT conkey, conkey[1], pg_typeof(conkey) FROM pg_constraint ${here}`), [
    '{2,1},2,smallint[]',
  ]);
  t.deepEqual(await ask(`SELECT conname FROM pg_constraint ${here} AND conkey = '{2,1}'`), [
    'ky_pkey',
  ]);
  t.is(
    await binary(`SELECT conkey FROM pg_constraint ${here}`),
    '00000001' +
      '00000000' +
      '00000015' +
      '00000002' +
      '00000001' +
      '000000020002' +
      '000000020001',
  );
  t.is(
    await binary(`SELECT indkey ${vector}`),
    '00000001' +
      '00000000' +
      '00000015' +
      '00000002' +
      '00000000' +
      '000000020002' +
      '000000020001',
  );
  const attributes = "FROM pg_attribute WHERE attrelid = 'ky'::regclass";
  t.is(
    await binary(`SELECT array_agg(attname ORDER BY attnum DESC) ${attributes}`),
    '00000001' + '00000000' + '00000013' + '00000002' + '00000001' + '0000000162' + '0000000161',
  );
  const property = 'SELECT pg_index_column_has_property(indexrelid, $1, $2)';
  t.deepEqual(await ask(`${property} ${vector}`, [1, 'asc']), ['t']);
  t.deepEqual(await ask(`${property} ${vector}`, [1, 'desc']), ['f']);
  t.deepEqual(await ask(`SELECT pg_index_has_property(indexrelid, 'clusterable') ${vector}`), [
    't',
  ]);
  t.is(await binary("SELECT array_agg(attname) FROM pg_attribute WHERE attname = 'none'"), '');
  await ask('DROP TABLE ky');
});

test('timestamp precision and time zone are listed as declared', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { ask } = session;
  await ask(
    'CREATE TABLE kt (a TIMESTAMP(3), b TIMESTAMP(0) WITH TIME ZONE, c TIMESTAMPTZ, d TIMESTAMP)',
  );
  const columns =
    'SELECT attname, atttypid, atttypmod, format_type(atttypid, atttypmod) FROM pg_attribute ' +
    "WHERE attrelid = 'kt'::regclass AND attnum > 0 ORDER BY attnum";
  t.deepEqual(await ask(columns), [
    'a,1114,3,timestamp(3) without time zone',
    'b,1184,0,timestamp(0) with time zone',
    'c,1184,-1,timestamp with time zone',
    'd,1114,-1,timestamp without time zone',
  ]);
  const information =
    'SELECT column_name, data_type, udt_name, datetime_precision FROM ' +
    "information_schema.columns WHERE table_name = 'kt' ORDER BY ordinal_position";
  const listed = [
    'a,timestamp without time zone,timestamp,3',
    'b,timestamp with time zone,timestamptz,0',
    'c,timestamp with time zone,timestamptz,6',
    'd,timestamp without time zone,timestamp,6',
  ];
  t.deepEqual(await ask(information), listed);
  await ask('ALTER TABLE kt ALTER COLUMN a TYPE TIMESTAMP WITH TIME ZONE');
  await ask('ALTER TABLE kt ALTER COLUMN b TYPE TIMESTAMP(6)');
  t.deepEqual((await ask(information)).slice(0, 2), [
    'a,timestamp with time zone,timestamptz,6',
    'b,timestamp without time zone,timestamp,6',
  ]);
  // The result columns are timestamps without time zone.
  t.deepEqual(await session.types('SELECT a, b, c, d FROM kt'), Array<number>(4).fill(1114));
});

/** The query with which drizzle-kit reads table columns: table and column names come from rows. */
const SERIALS = `SELECT a.attname, CASE
    WHEN a.atttypid = ANY ('{int,int8,int2}'::regtype[]) AND EXISTS (
      SELECT FROM pg_attrdef ad WHERE ad.adrelid = a.attrelid AND ad.adnum = a.attnum
        AND pg_get_expr(ad.adbin, ad.adrelid) = 'nextval('''
          || pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)::regclass
          || '''::regclass)')
    THEN CASE a.atttypid WHEN 'int'::regtype THEN 'serial' WHEN 'int8'::regtype THEN 'bigserial' END
    ELSE format_type(a.atttypid, a.atttypmod) END,
    pg_get_serial_sequence('"public"."kq_all"', a.attname)::regclass::text
  FROM pg_attribute a WHERE a.attrelid = 'kq_all'::regclass AND a.attnum > 0 ORDER BY a.attnum`;

test('serial columns, string types and key indexes are listed as declared', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { ask } = session;
  await ask(
    `CREATE TABLE kq_all
      (id SERIAL PRIMARY KEY, big BIGSERIAL, n INT, t TEXT, v VARCHAR, w VARCHAR(9))`,
  );
  t.deepEqual(await ask(SERIALS), [
    'id,serial,kq_all_id_seq',
    'big,bigserial,kq_all_big_seq',
    'n,integer,',
    't,text,',
    'v,character varying,',
    'w,character varying(9),',
  ]);
  const types = `SELECT data_type, udt_name FROM information_schema.columns
    WHERE table_name = 'kq_all' AND column_name IN ('t', 'v') ORDER BY ordinal_position`;
  t.deepEqual(await ask(types), ['text,text', 'character varying,varchar']);
  await ask('ALTER TABLE kq_all ADD COLUMN more TEXT');
  await ask('ALTER TABLE kq_all ALTER COLUMN t TYPE VARCHAR');
  await ask('ALTER TABLE kq_all ALTER COLUMN v TYPE TEXT');
  const now = `SELECT column_name, data_type FROM information_schema.columns
    WHERE table_name = 'kq_all' AND column_name IN ('t', 'v', 'more') ORDER BY ordinal_position`;
  t.deepEqual(await ask(now), ['t,character varying', 'v,text', 'more,text']);
  const counted = `SELECT indexrelname, relname, schemaname FROM pg_stat_user_indexes
    WHERE relname = 'kq_all'`;
  t.deepEqual(await ask(counted), ['kq_all_pkey,kq_all,public']);
});

test('catalog arrays are converted to strings', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const asked = `SELECT array_to_string('{}', ','), array_to_string('{a,"b c",NULL,d}', ' - '),
    array_to_string('{a,NULL}', '-', '?'),
    array_to_string(ARRAY(SELECT typname FROM pg_type WHERE oid IN (20, 23) ORDER BY oid), '+')`;
  t.deepEqual(await session.ask(asked), [',a - b c - d,a-?,int8+int4']);
});

test('numbers compared with a NUMERIC keep all their digits', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { ask } = session;
  await ask('CREATE TABLE kq_price (n INT, p NUMERIC(10, 2))');
  await ask('INSERT INTO kq_price VALUES (1, 1.5), (2, -0.1), (3, 20), (4, NULL)');
  for (const [condition, found] of [
    ['p = 1.5', ['1']],
    ['1.5 = p', ['1']],
    ['p < 1.51 AND p > -0.11', ['1', '2']],
    ['p = -0.1', ['2']],
    ['p <> 1.5 AND p IS NOT NULL', ['2', '3']],
    ['p >= 2e1', ['3']],
    ['p BETWEEN -0.5 AND 1.5', ['1', '2']],
  ] as const) {
    const rows = await ask(`SELECT n FROM kq_price WHERE ${condition} ORDER BY n`);
    t.deepEqual(rows, found as unknown as string[], condition);
  }
  t.deepEqual(await ask("SELECT '1.5'::numeric = 1.5, 1.1::numeric(3, 1) = 1.1"), ['t,t']);
});
