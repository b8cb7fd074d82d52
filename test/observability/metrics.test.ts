/** Metrics of a running server, each of which must be documented. */
import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { WebSocketClient } from '../http/websocket-client.js';
import { open as openLines, shows } from '../line-tcp/harness.js';
import { rows, write } from '../line/harness.js';
import { answer, FLAG, message, row } from '../qwp/messages.js';
import { ReadClient } from '../qwp/read-client.js';
import { until } from '../until.js';
import { pgClient } from '../pg-client.js';

const LABEL = '\\w+="[\\w.+]+"';
const LINE = new RegExp(
  '^(# HELP \\w+ .+|# TYPE \\w+ (counter|gauge|histogram)|' +
    `\\w+(\\{${LABEL}(,${LABEL})*\\})? -?[0-9.e+-]+)$`,
);

test('rows, bytes, commits, errors and connections are counted per protocol', async (t) => {
  const server = await startTestServer({
    set: ['metrics.enabled=true', 'line.tcp.commit.interval.default=20ms'],
  });
  t.teardown(() => server.stop());
  const figures = async (): Promise<Map<string, number>> => {
    const answer = await fetch(`${server.url}/metrics`);
    t.is(answer.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    const lines = (await answer.text()).split('\n').filter((line) => line !== '');
    t.deepEqual(
      lines.filter((line) => !LINE.test(line)),
      [],
    );
    const samples = lines.filter((line) => !line.startsWith('#'));
    const names = new Set(
      samples.map((line) => /^\w+?(?=(_bucket|_sum|_count)?[{ ])/.exec(line)?.[0]),
    );
    t.deepEqual(
      [...names].filter((name) => !lines.some((line) => line.startsWith(`# HELP ${name ?? ''} `))),
      [],
    );
    return new Map(
      samples.map((line) => {
        const [name = '', value] = line.split(' ');
        return [name, Number(value)];
      }),
    );
  };
  const of = (all: Map<string, number>, protocol: string): (number | undefined)[] =>
    ['rows', 'bytes', 'commits', 'errors'].map((what) =>
      all.get(`tidemark_ingest_${what}_total{protocol="${protocol}"}`),
    );
  const before = await figures();
  t.deepEqual(
    [of(before, 'line_http'), of(before, 'line_tcp')],
    [Array(4).fill(0), Array(4).fill(0)],
  );
  t.is((await write(server, 'm x=1i 1\nm x=2i 2')).status, 204);
  t.is((await write(server, 'm x=zz')).status, 400);
  const sender = await openLines(server, t);
  await sender.send('m x=3i 3\n');
  await shows(server, 'select count() from m', [[3]]);
  const wrong = await openLines(server, t);
  await wrong.send('m x=zz 4\n');
  await wrong.closed;
  const client = pgClient(server.pg);
  await client.connect();
  const after = await figures();
  t.deepEqual(of(after, 'line_http'), [2, 17, 1, 1]);
  t.deepEqual(of(after, 'line_tcp'), [1, 18, 1, 1]);
  t.is(after.get('tidemark_connections{protocol="pgwire"}'), 1);
  t.is(after.get('tidemark_connections{protocol="line_tcp"}'), 1);
  t.true((after.get('tidemark_connections{protocol="http"}') ?? 0) >= 1);
  t.false(after.has('tidemark_connections{protocol="http_min"}'), 'the port is not open');
  t.is(after.get('tidemark_rows_written_total'), 3);
  t.true((after.get('process_resident_memory_bytes') ?? 0) > 1_000_000);
  t.true((after.get('tidemark_storage_free_bytes') ?? 0) > 0);
  await client.end();
  await sender.end();
  await until(
    async () => (await figures()).get('tidemark_connections{protocol="line_tcp"}') === 0,
    'the connection is closed',
  );
});

/** Returns the samples of `/metrics`. */
async function samples(server: TestServer): Promise<Map<string, number>> {
  const text = await fetch(`${server.url}/metrics`).then((response) => response.text());
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

/** Returns the histogram count for a protocol; checks that the histogram is valid. */
function counted(t: ExecutionContext, all: Map<string, number>, name: string, of: string): number {
  const prefix = `tidemark_${name}_bucket{protocol="${of}",le="`;
  const buckets = [...all].filter(([key]) => key.startsWith(prefix)).map(([, value]) => value);
  t.is(buckets.length, 16);
  t.deepEqual(
    buckets,
    buckets.toSorted((one, other) => one - other),
  );
  const count = all.get(`tidemark_${name}_count{protocol="${of}"}`) ?? NaN;
  t.is(buckets.at(-1), count);
  t.is((all.get(`tidemark_${name}_sum{protocol="${of}"}`) ?? 0) > 0, count > 0);
  return count;
}

test('durations of statements, commits and requests are measured per protocol', async (t) => {
  const server = await startTestServer({
    set: ['metrics.enabled=true', 'line.tcp.commit.interval.default=20ms'],
  });
  t.teardown(() => server.stop());
  const port = Number(new URL(server.url).port);
  // Over HTTP two executions succeed and one fails at run time. A statement that cannot be parsed
  // or bound is not executed.
  await rows(server, 'select x from long_sequence(3)');
  await rows(server, 'create table made (x int)');
  const late = "select case when x > 2 then 'no' else '1' end::decimal(9,2) from long_sequence(3)";
  await t.throwsAsync(rows(server, late));
  await t.throwsAsync(rows(server, 'select nothing'));
  const reader = await ReadClient.open(port);
  t.is((await reader.query(1, 'select 1')).last.kind, 'end');
  reader.request(2, 'select x from long_sequence(9000000000)', { credit: 1 });
  t.is((await reader.next())?.kind, 'batch');
  reader.close();
  const client = pgClient(server.pg);
  await client.connect();
  await client.query('select 1');
  await client.query('select $1::int', [1]);
  await client.end();
  t.is((await write(server, 'm x=1i 1\nm x=2i 2')).status, 204);
  t.is((await write(server, 'm x=zz')).status, 400);
  const sender = await openLines(server, t);
  await sender.send('m x=3i 3\n');
  await sender.end();
  const writer = await WebSocketClient.open(port, '/write/v4');
  writer.send(message(0, 1, row('one', 1)));
  writer.send(message(FLAG.defer, 1, row('one', 2)));
  writer.send(message(0, 1, row('one', 3)));
  await answer(writer);
  await answer(writer);
  writer.socket.destroy();
  await until(async () => {
    const found = await samples(server);
    return found.get('tidemark_statement_seconds_count{protocol="qwp"}') === 2;
  }, "the disconnected client's query has ended");
  const all = await samples(server);
  t.is(counted(t, all, 'statement_seconds', 'qwp'), 2);
  t.is(counted(t, all, 'statement_seconds', 'http'), 3);
  t.is(counted(t, all, 'statement_seconds', 'pgwire'), 2);
  t.is(counted(t, all, 'ingest_commit_seconds', 'line_http'), 1);
  t.is(counted(t, all, 'ingest_commit_seconds', 'line_tcp'), 1);
  t.is(counted(t, all, 'ingest_commit_seconds', 'qwp'), 2);
  t.is(counted(t, all, 'ingest_request_seconds', 'line_http'), 2);
  t.is(counted(t, all, 'ingest_request_seconds', 'qwp'), 2);
  t.false([...all.keys()].some((key) => /request_seconds.*line_tcp/.test(key)));
});

test('every engine metric is documented', async (t) => {
  const server = await startTestServer({ set: ['metrics.enabled=true'] });
  t.teardown(() => server.stop());
  const text = await fetch(`${server.url}/metrics`).then((answer) => answer.text());
  const { openDatabase } = await import('../../ts/engine/index.js');
  const { mkdtemp, rm } = await import('node:fs/promises');
  const root = await mkdtemp('/tmp/tidemark-metrics-');
  const database = await openDatabase({ root });
  const names = Object.keys(database.metrics());
  await database.close();
  await rm(root, { recursive: true });
  t.true(names.length > 10);
  t.deepEqual(
    names.filter((name) => !text.includes(`# HELP tidemark_${name} `)),
    [],
  );
});

test('a stopping server reports that it is not ready', async (t) => {
  const server = await startTestServer();
  t.is((await fetch(`${server.url}/ready`)).status, 200);
  const slow = rows(server, 'select count() from long_sequence(3000000000) where x % 7 = 3');
  const isSlow = slow.then(
    () => 'done',
    () => 'stopped',
  );
  await until(async () => {
    const found = await rows(server, 'select count() from query_activity()');
    return Number(found[0]?.[0]) >= 2;
  }, 'a statement is running');
  server.process.kill('SIGTERM');
  const ready = async (): Promise<number> => {
    const headers = { connection: 'close' };
    return await fetch(`${server.url}/ready`, { headers }).then(({ status }) => status);
  };
  await until(async () => (await ready().catch(() => 0)) === 503, 'the server is not ready');
  await isSlow;
  await server.stop();
});
