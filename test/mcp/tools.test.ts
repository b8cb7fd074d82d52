/** The tools, called with the SDK's client over standard input and over HTTP. */
import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { answer, exec, failure, WAYS } from './harness.js';

const TABLES = [
  'CREATE TABLE trades (ts TIMESTAMP, symbol SYMBOL, price DOUBLE, size LONG) ' +
    'TIMESTAMP(ts) PARTITION BY DAY',
  "INSERT INTO trades VALUES ('2026-03-02T09:00:00Z', 'GOLD', 50.5, 9007199254740993), " +
    "('2026-03-02T10:00:00Z', 'IRON', 8.0, 20), ('2026-03-03T09:00:00Z', 'GOLD', 51.0, 30)",
  "CREATE VIEW gold AS (SELECT * FROM trades WHERE symbol = 'GOLD')",
];

for (const [way, connect] of WAYS) {
  test(`over ${way}, schemas, samples, queries and plans are available`, async (t) => {
    const server = await startTestServer();
    t.teardown(() => server.stop());
    await exec(server.url, ...TABLES);
    const client = await connect(server.url);
    t.teardown(() => client.close());

    t.like(client.getServerVersion(), { name: 'tidemark' });
    const { tools } = await client.listTools();
    t.deepEqual(tools.map(({ name }) => name).sort(), [
      'check_query',
      'describe_table',
      'explain',
      'list_tables',
      'query',
      'read_doc',
      'sample_table',
      'search_docs',
    ]);
    t.true(tools.every(({ annotations }) => annotations?.readOnlyHint === true));
    t.true(tools.every(({ outputSchema }) => outputSchema !== undefined));

    t.like(await answer(client, 'list_tables'), {
      total: 2,
      tables: [
        { name: 'gold', kind: 'view', rows: null },
        { name: 'trades', kind: 'table', designated_timestamp: 'ts', rows: 3 },
      ],
    });
    const described = await answer(client, 'describe_table', { table: 'trades' });
    t.like(described, { kind: 'table', partition_by: 'DAY', rows: 3 });
    t.like((described['columns'] as object[])[0], { name: 'ts', designated: true });
    t.regex(String(described['ddl']), /^CREATE TABLE 'trades'/);
    t.like(await answer(client, 'describe_table', { table: 'gold' }), { kind: 'view' });

    t.deepEqual((await answer(client, 'sample_table', { table: 'trades', rows: 1 }))['rows'], [
      ['2026-03-03T09:00:00.000000Z', 'GOLD', 51, 30],
    ]);
    t.like(
      await answer(client, 'query', {
        sql: 'SELECT symbol, price, size FROM trades WHERE symbol = $1 AND price > $2',
        parameters: ['GOLD', 50],
        limit: 1,
        count: true,
      }),
      {
        columns: [
          { name: 'symbol', type: 'SYMBOL' },
          { name: 'price', type: 'DOUBLE' },
          { name: 'size', type: 'LONG' },
        ],
        rows: [['GOLD', 50.5, '9007199254740993']],
        has_more: true,
        next_offset: 1,
        total_rows: 2,
      },
    );
    const plan = await answer(client, 'explain', {
      sql: "SELECT * FROM trades WHERE ts IN '2026-03-02'",
    });
    t.regex(String(plan['plan']), /TableScanExec: trades/);
    const refused = await failure(client, 'query', { sql: 'SELECT nothing\nFROM trades' });
    t.deepEqual(refused.split('\n').slice(1, 4), [
      'position: 7 (line 1, column 8)',
      '  SELECT nothing',
      '         ^',
    ]);
    t.regex(
      refused,
      /^ColumnNotFound: .*nothing[^]*\nhint: list the columns of the table with describe_table/,
    );
  });
}
