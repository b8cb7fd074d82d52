/**
 * The outer rows of a sub-query, and the left side of a LEFT JOIN in the catalog, keep their order.
 * This holds with many scan chunks, small and large build sides, and below a LIMIT and filters.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rowsOf } from '../limits/client.js';

const ROWS = 100;
let server: TestServer;

test.before(async () => {
  server = await startTestServer({
    set: ['query.scan.part.rows=2', 'shared.query.worker.count=4'],
  });
  for (const statement of [
    'create table few (n int, k int)',
    'create table looked (k int, v int)',
    'create table many (v int)',
    `insert into few select x::int, (x % 7)::int from long_sequence(${ROWS})`,
    'insert into looked select (x % 5)::int, x::int from long_sequence(50)',
    'insert into many select (x % 50)::int + 1 from long_sequence(700)',
    `create table kinds (first serial, second varchar(40), third numeric(10, 2), fourth int,
      primary key (first))`,
  ]) {
    await rowsOf(server, statement);
  }
});

test.after.always(async () => {
  await server.stop();
});

const GREATEST = '(select max(v) from looked l where l.k = few.k)';
const ONLY = '(select v from looked l where l.v = few.n)';

/** A sub-query that joins on strings. No plan can predict that only a few rows will match. */
const WITH_TEXT = "(select 1 from many m where m.v || 'x' = few.n || 'x')";

/** Returns the first numbers from 1 that satisfy a condition, at most `maximum` of them. */
function numbers(isLeft: (n: number) => boolean = () => true, maximum = ROWS): number[] {
  return Array.from({ length: ROWS }, (_, index) => index + 1)
    .filter(isLeft)
    .slice(0, maximum);
}

for (const [query, expected] of [
  [`select n, ${GREATEST} from few`, numbers()],
  [`select n, ${GREATEST}, ${ONLY}, (select count() from looked) from few`, numbers()],
  [`select n, ${GREATEST} from few limit 3`, numbers(undefined, 3)],
  [`select n, ${GREATEST}, ${ONLY} from few limit 40`, numbers(undefined, 40)],
  [`select n from few where ${GREATEST} > 0`, numbers((n) => n % 7 < 5)],
  [`select n from (select n, ${ONLY} o from few) where o is null limit 5`, [51, 52, 53, 54, 55]],
  [`select n from few where exists ${WITH_TEXT}`, numbers((n) => n <= 50)],
  [`select n from few where not exists ${WITH_TEXT} or n = 3`, [3, ...numbers((n) => n > 50)]],
  [`select n from few where n || 'x' in (select v || 'x' from many)`, numbers((n) => n <= 50)],
  [
    `select n from (select * from few limit 60) few where not exists ${WITH_TEXT}`,
    numbers((n) => n > 50, 10),
  ],
  [
    `select n, ${GREATEST} from few union all select n + ${ROWS}, ${ONLY} from few`,
    [...numbers(), ...numbers().map((n) => n + ROWS)],
  ],
] as const) {
  test(`rows stay in order: ${query}`, async (t) => {
    const found = (await rowsOf(server, query)).map(([n]) => n);
    t.deepEqual(found, expected as number[]);
  });
}

/** The query that an object mapper uses to read a table's columns. */
const COLUMNS = `select c.column_name, pk.constraint_type,
    (select array_agg(e.enumlabel) from pg_catalog.pg_type t
      join pg_catalog.pg_enum e on t.oid = e.enumtypid where t.typname = c.udt_name),
    (select d.description from pg_catalog.pg_statio_all_tables st
      join pg_catalog.pg_description d on d.objoid = st.relid
      where c.ordinal_position = d.objsubid and c.table_name = st.relname)
  from information_schema.columns c left join
    (select tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type
      from information_schema.table_constraints tc
      join information_schema.key_column_usage cu on tc.table_schema = cu.table_schema
        and tc.table_name = cu.table_name and tc.constraint_name = cu.constraint_name
        and tc.constraint_type = 'PRIMARY KEY') pk
  on pk.table_schema = c.table_schema and pk.table_name = c.table_name
    and pk.column_name = c.column_name
  where c.table_name = 'kinds' and c.table_schema = 'public'`;

test('catalog columns are listed in table order', async (t) => {
  const found = (await rowsOf(server, COLUMNS)).map(([name, key]) => [name, key]);
  const names = ['first', 'second', 'third', 'fourth'];
  t.deepEqual(
    found,
    names.map((name, index) => [name, index === 0 ? 'PRIMARY KEY' : null]),
  );
});

test('a semi-join hashes its keys, or the outer rows if there are few of them', async (t) => {
  for (const [rows, holds] of [
    ['few', 'keys'],
    ['(select * from few limit 60) few', 'rows'],
  ] as const) {
    const query = `select n from ${rows} where exists ${WITH_TEXT}`;
    const plan = (await rowsOf(server, `explain ${query}`)).join('\n');
    t.regex(plan, new RegExp(`SemiJoinExec: Semi by ${holds},`), plan);
  }
});

/** Returns the joins in a plan that read the rows of `table` directly, as printed by EXPLAIN. */
async function joins(query: string): Promise<string[]> {
  const lines = (await rowsOf(server, `explain (physical) ${query}`)).map(([line]) => String(line));
  return lines.filter((line) => line.includes('LookupJoinExec')).map((line) => line.trim());
}

test('the join hashes the lookup side and streams the outer rows', async (t) => {
  for (const query of [`select n, ${GREATEST} from few`, COLUMNS]) {
    const [first = ''] = await joins(query);
    t.regex(first, /LookupJoinExec: Outer,/, query);
  }
});
