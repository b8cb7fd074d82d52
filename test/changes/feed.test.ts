/** GET /changes: which events are reported, in which order, and how a client resumes. */
import { once } from 'node:events';

import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, restart, rows, run } from '../scenario/statements.js';
import { Consumer, currentTxn, EventReader, type FeedRequest } from './event-reader.js';

const TABLE = `CREATE TABLE t (ts TIMESTAMP, s SYMBOL, x LONG) TIMESTAMP(ts)
  PARTITION BY DAY WAL`;
/** Makes an idle feed report its position every 100 ms. */
const SOON = 'changes.heartbeat=100ms';

async function start(t: ExecutionContext, ...set: readonly string[]): Promise<TestServer> {
  const server = await startTestServer({ set: [SOON, ...set] });
  t.teardown(() => server.stop());
  return server;
}

async function open(
  t: ExecutionContext,
  server: TestServer,
  request: FeedRequest = { table: 't' },
): Promise<EventReader> {
  const reader = await EventReader.open(server, request);
  t.teardown(() => {
    reader.close();
  });
  return reader;
}

async function same(t: ExecutionContext, server: TestServer, consumer: Consumer): Promise<void> {
  const shown = await rows(server, 't');
  t.deepEqual(consumer.rows, shown.map((row) => JSON.stringify(row)).sort());
}

const minute = (number: number): string =>
  new Date(1_700_000_000_000 + number * 60_000).toISOString();

test('appends are reported exactly once, in commit order', async (t) => {
  const server = await start(t);
  await run(server, TABLE);
  const reader = await open(t, server);
  t.is(reader.status, 200);
  t.like(reader.response.headers, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  });
  const columns = [
    { name: 'ts', type: 'TIMESTAMP' },
    { name: 's', type: 'SYMBOL' },
    { name: 'x', type: 'LONG' },
  ];
  t.deepEqual((await reader.next())?.data, { table: 't', columns, timestamp: 0 });
  const first = await reader.next();
  t.is(first?.name, 'position');
  const consumer = new Consumer();
  for (let x = 0; x < 200; x += 1) {
    // Some rows are late.
    const at = x % 7 === 0 ? 500 - x : 1_000 + x;
    await run(server, `INSERT INTO t VALUES ('${minute(at)}', 's${x % 3}', ${x})`);
  }
  await consumer.read(reader, await currentTxn(server, 't'));
  t.deepEqual(
    consumer.added.map((row) => row[2]),
    Array.from({ length: 200 }, (_, x) => x),
  );
  await same(t, server, consumer);
});

test('a feed resumes without duplicates after a disconnect, restart or kill', async (t) => {
  let server = await startTestServer({ set: [SOON] });
  t.teardown(() => server.stop());
  await run(server, TABLE);
  const consumer = new Consumer();
  let x = 0;
  const insert = async (count: number): Promise<void> => {
    for (const end = x + count; x < end; x += 1) {
      await run(
        server,
        `INSERT INTO t VALUES ('${minute(x)}', 'a', ${x}), ('${minute(x)}', 'b', ${x})`,
      );
    }
  };
  const read = async (): Promise<void> => {
    const { lastId } = consumer;
    const reader = await open(
      t,
      server,
      lastId === undefined ? { table: 't' } : { table: 't', lastId },
    );
    consumer.begin();
    await consumer.read(reader, await currentTxn(server, 't'));
    reader.close();
  };
  await read();
  await insert(20);
  await read();
  await insert(20);
  await read();
  t.is(consumer.added.length, 80, 'the rows are reported individually');
  await insert(20);
  server = await restart(server);
  await insert(20);
  await read();
  t.is(consumer.added.length, 160, 'the rows are read from the log');
  await same(t, server, consumer);
  await insert(20);
  const { root } = server;
  await server.stop();
  server = await startTestServer({ root, set: [SOON] });
  await insert(20);
  await read();
  await same(t, server, consumer);
  t.true(consumer.added.length < 240, 'after a checkpoint time ranges are reported');
});

test('updates, deletes and late rows are reported as time ranges', async (t) => {
  const server = await start(t);
  await run(
    server,
    TABLE,
    `INSERT INTO t VALUES ('${minute(0)}', 'a', 0), ('${minute(1)}', 'b', 1)`,
  );
  const reader = await open(t, server, { table: 't', from: 'start' });
  const consumer = new Consumer();
  const statements = [
    `INSERT INTO t VALUES ('${minute(2)}', 'c', 2), ('${minute(9_000)}', 'c', 3)`,
    "UPDATE t SET x = 7 WHERE s = 'a'",
    `INSERT INTO t SELECT dateadd('s', (x * 90)::int, '${minute(0)}'::timestamp), 'd', x
     FROM long_sequence(20000)`,
    "DELETE FROM t WHERE s = 'b'",
    'ALTER TABLE t ADD COLUMN y DOUBLE',
    `INSERT INTO t VALUES ('${minute(-5)}', 'late', 4, 2.5)`,
    'ALTER TABLE t ALTER COLUMN x TYPE VARCHAR',
    `INSERT INTO t VALUES ('${minute(-4)}', 'late', 'four', 2.5)`,
    'ALTER TABLE t DROP COLUMN y',
    'ALTER TABLE t RENAME COLUMN x TO z',
    `ALTER TABLE t DROP PARTITION LIST '${minute(9_000).slice(0, 10)}'`,
    'ALTER TABLE t DEDUP ENABLE UPSERT KEYS(ts, s)',
    `INSERT INTO t VALUES ('${minute(-5)}', 'late', 'again')`,
    `INSERT INTO t VALUES ('${minute(90_000)}', 'new', 'x'), ('${minute(90_000)}', 'new', 'y')`,
    'TRUNCATE TABLE t',
    `INSERT INTO t VALUES ('${minute(3)}', 'e', 'end')`,
  ];
  for (const statement of statements) {
    await run(server, statement);
    await consumer.read(reader, await currentTxn(server, 't'));
    const shown = await rows(server, 't');
    t.deepEqual(consumer.rows.length, shown.length, statement);
  }
  await same(t, server, consumer);
});

test('a feed accepts a filter, columns or a query and rejects invalid requests', async (t) => {
  const server = await start(t);
  await run(server, TABLE);
  const filtered = { table: 't', columns: 'x * 2 AS twice, ts', where: "s = 'a'" };
  const feeds = [
    await open(t, server, filtered),
    await open(t, server, { query: "SELECT x * 2 AS twice, ts FROM t WHERE s = 'a'" }),
  ];
  const text = `INSERT INTO t VALUES ('${minute(0)}', 'a', 1), ('${minute(1)}', 'b', 2)`;
  await run(server, text, `INSERT INTO t VALUES ('${minute(2)}', 'b', 3)`);
  for (const feed of feeds) {
    const schema = await feed.find('schema');
    t.deepEqual(
      schema.data.columns?.map(({ name }) => name),
      ['twice', 'ts'],
    );
    t.is(schema.data.timestamp, 1);
    t.deepEqual((await feed.find('rows')).data.dataset, [[2, minute(0).replace('Z', '000Z')]]);
    // Rows that the filter rejects also advance the position.
    t.is((await feed.find('position')).data.txn, await currentTxn(server, 't'));
  }
  const wrong: readonly (readonly [FeedRequest, number, RegExp, number?])[] = [
    [{}, 400, /missing parameter: table or query/],
    [{ table: 't', query: 'SELECT 1' }, 400, /either query/],
    [{ table: 'nope' }, 400, /does not exist/, 14],
    [{ table: 't', where: 'y > 1' }, 400, /Invalid column: y/, 24],
    [{ table: 't', columns: 'ts ts ts' }, 400, /./],
    [{ table: 't"; DROP TABLE t; --' }, 400, /does not exist/],
    [{ query: 'SELECT count() FROM t' }, 400, /cannot follow/],
    [{ query: 'SELECT * FROM t ORDER BY x' }, 400, /cannot follow/],
    [{ query: 'SELECT * FROM t LIMIT 1' }, 400, /cannot follow/],
    [{ query: 'SELECT * FROM t WHERE x IN (SELECT x FROM t)' }, 400, /cannot follow/],
    [{ query: 'SELECT * FROM t WHERE x > rnd_int()' }, 400, /cannot follow/],
    [{ query: 'SELECT * FROM t a JOIN t b ON (x)' }, 400, /cannot follow/],
    [{ query: 'SELECT 1' }, 400, /cannot follow/],
    [{ query: 'DROP TABLE t' }, 400, /change feeds/],
    [{ query: `INSERT INTO t VALUES ('${minute(0)}', 'a', 1)` }, 400, /change feeds/],
    [{ table: 't', from: 'yesterday' }, 400, /invalid 'from' value/],
    [{ table: 't', quoteLargeNum: 'perhaps' }, 400, /quoteLargeNum/],
    [{ table: 't', from: '1' }, 410, /from=start/],
    [{ table: 't', lastId: '99999' }, 410, /from=start/],
  ];
  for (const [request, status, message, position] of wrong) {
    const reader = await open(t, server, request);
    t.is(reader.status, status, JSON.stringify(request));
    const body = JSON.parse(reader.status === 200 ? '{}' : await reader.body()) as {
      error: string;
      position?: number;
    };
    const what = JSON.stringify(request);
    t.regex(body.error, message, what);
    t.true(position === undefined || body.position === position, `${what}: ${body.position ?? ''}`);
  }
  t.is((await rows(server, 't')).length, 3, 'no statement was executed');
});

test('large numbers are sent as strings with every digit', async (t) => {
  const server = await start(t);
  await run(server, TABLE);
  const reader = await open(t, server, { table: 't', quoteLargeNum: 'true' });
  await reader.find('position');
  await run(server, `INSERT INTO t VALUES ('${minute(0)}', 'a', 9007199254740993)`);
  const { data } = await reader.find('rows');
  t.is(data.dataset?.[0]?.[2], '9007199254740993');
});

test('a feed ends when its table is dropped, renamed or altered', async (t) => {
  const server = await start(t);
  const ends = [
    ['DROP TABLE t', /does not exist/],
    ['RENAME TABLE t TO u', /does not exist/],
    ['ALTER TABLE t DROP COLUMN x', /Invalid column: x/],
    ['ALTER TABLE t RENAME COLUMN x TO y', /Invalid column: x/],
  ] as const;
  for (const [statement, message] of ends) {
    await run(server, 'DROP TABLE IF EXISTS t', 'DROP TABLE IF EXISTS u', TABLE);
    const reader = await open(t, server, { table: 't', where: 'x > 0' });
    await reader.find('position');
    await run(server, statement);
    const { data } = await reader.find('error');
    t.regex(data.error ?? '', message, statement);
    t.is(await reader.next(), null, 'the feed ends');
  }
  // A re-created table is a different table, even if it has the same name.
  await run(server, 'DROP TABLE t', TABLE);
  const reader = await open(t, server);
  const lastId = (await reader.find('position')).id ?? '';
  await run(server, 'DROP TABLE t', TABLE);
  t.is((await open(t, server, { table: 't', lastId })).status, 410);
});

test('a feed can follow a materialized view or a plain view of one table', async (t) => {
  const server = await start(t);
  await run(server, TABLE, "CREATE VIEW a AS (SELECT ts, x FROM t WHERE s = 'a')");
  const hourly = 'CREATE MATERIALIZED VIEW v AS (SELECT ts, sum(x) x FROM t SAMPLE BY 1h)';
  await run(server, hourly);
  const plain = await open(t, server, { table: 'a' });
  const reader = await open(t, server, { table: 'v', from: 'start' });
  await plain.find('position');
  const consumer = new Consumer();
  for (let x = 0; x < 30; x += 1) {
    await run(
      server,
      `INSERT INTO t VALUES ('${minute(x * 10)}', '${x % 2 === 0 ? 'a' : 'b'}', ${x})`,
    );
  }
  await run(server, 'UPDATE t SET x = 100 WHERE x = 3');
  const expected = await rows(server, 'SELECT ts, sum(x) x FROM t SAMPLE BY 1h');
  const expectedRows = expected.map((row) => JSON.stringify(row)).sort();
  while (JSON.stringify(consumer.rows) !== JSON.stringify(expectedRows)) {
    const event = await reader.next();
    t.not(event, null);
    if (event !== null) {
      consumer.take(event);
    }
  }
  t.is((await plain.find('rows')).data.dataset?.[0]?.[1], 0);
});

test('a large commit arrives in chunks; a reconnecting client gets the remainder', async (t) => {
  const server = await start(t);
  await run(server, TABLE);
  let reader = await open(t, server);
  await reader.find('position');
  await run(
    server,
    `INSERT INTO t SELECT dateadd('s', x::int, '${minute(0)}'::timestamp), 's' || (x % 10), x
     FROM long_sequence(100000)`,
  );
  const consumer = new Consumer();
  let connections = 0;
  while (consumer.added.length < 100_000) {
    const event = await reader.next();
    t.not(event, null);
    if (event !== null) {
      consumer.take(event);
      t.true((event.data.count ?? 0) < 50_000, 'no event is large');
    }
    if (event?.name === 'rows') {
      reader.close();
      reader = await open(t, server, { table: 't', lastId: consumer.lastId });
      consumer.begin();
      connections += 1;
    }
  }
  t.true(connections > 4, `${connections}`);
  t.is(consumer.added.length, 100_000);
  await same(t, server, consumer);
});

test('checkpoints and low memory change the events but not the resulting rows', async (t) => {
  let server = await startTestServer({ set: [SOON, 'changes.memory=16K'] });
  t.teardown(() => server.stop());
  await run(server, TABLE);
  const reader = await open(t, server);
  const [consumer, absent] = [new Consumer(), new Consumer()];
  const { id } = await reader.find('position');
  absent.lastId = id ?? '';
  for (let x = 0; x < 300; x += 1) {
    await run(server, `INSERT INTO t VALUES ('${minute((x * 37) % 300)}', 'a', ${x})`);
  }
  await consumer.read(reader, await currentTxn(server, 't'));
  await same(t, server, consumer);
  await absent.read(await open(t, server, { table: 't', from: absent.lastId }), consumer.txn);
  t.true(absent.added.length < 300, 'changes in memory were released');
  await same(t, server, absent);
  const { root } = server;
  server.process.kill('SIGTERM');
  await once(server.process, 'exit');
  server = await startTestServer({ root, set: [SOON] });
  await exec(server, `INSERT INTO t VALUES ('${minute(9)}', 'z', 1)`);
  await absent.read(
    await open(t, server, { table: 't', lastId: absent.lastId }),
    await currentTxn(server, 't'),
  );
  await same(t, server, absent);
});
