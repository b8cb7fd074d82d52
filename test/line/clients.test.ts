/**
 * Clients as published in their package registries, with only the address changed. These tests
 * cover client-specific behaviour; `line-tcp/clients.test.ts` covers behaviour that all clients
 * share, including over HTTP.
 */
import test from 'ava';

import { credentials, exec, run as runAll, startAccessServer } from '../access/harness.js';
import { has, run, skip } from '../clients/tools.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { rows, write } from './harness.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
});
test.after.always(() => server.stop());

function address(target: TestServer): string {
  return target.url.replace('http://', '');
}

/** Returns the output of a Python program. */
async function python(program: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await run('python3', ['-W', 'ignore', '-c', program, ...args]);
  return stdout.trim();
}

test("QuestDB's Python client negotiates a version and reports refusals", async (t) => {
  if (!(await has('python3', '-c', 'import questdb.ingress'))) {
    skip(t, 'the client is not installed');
    return;
  }
  const program = `
import sys
from questdb.ingress import Sender, ServerTimestamp, IngressError
with Sender.from_conf(sys.argv[1]) as sender:
    sender.row('agreed', columns={'x': 1.5}, at=ServerTimestamp)
    sender.flush()
    sender.row('agreed', columns={'x': 'text'}, at=ServerTimestamp)
    try:
        sender.flush()
    except IngressError as error:
        print(error)
`;
  const shown = await python(program, `http::addr=${address(server)};`);
  t.regex(shown, /column 'x' of type DOUBLE does not accept string 'text'/);
  t.regex(shown, /id: [0-9a-f]{12}-[0-9]+, code: invalid, line: 1/);
  t.deepEqual(await rows(server, 'select x from agreed'), [[1.5]]);
});

test("QuestDB's Python client flushes automatically by rows, bytes or time", async (t) => {
  if (!(await has('python3', '-c', 'import questdb.ingress'))) {
    skip(t, 'the client is not installed');
    return;
  }
  // The rows are queried while the sender is still open, so the sender itself must have flushed
  // them.
  const program = `
import sys, json, time, urllib.parse, urllib.request
from questdb.ingress import Sender, TimestampNanos
off = 'auto_flush_rows=off;auto_flush_bytes=off;auto_flush_interval=off;'
seen = []
for name, conf in (('rows', 'auto_flush_rows=100;auto_flush_interval=off;'),
                   ('bytes', 'auto_flush_rows=off;auto_flush_bytes=2000;auto_flush_interval=off;'),
                   ('interval', 'auto_flush_rows=off;auto_flush_interval=50;'), ('off', off)):
    with Sender.from_conf(f'http::addr={sys.argv[1]};{conf}') as sender:
        for n in range(250):
            sender.row('auto_' + name, columns={'n': n}, at=TimestampNanos(1 + n))
        if name == 'interval':
            time.sleep(0.1)
            sender.row('auto_' + name, columns={'n': 250}, at=TimestampNanos(251))
        query = urllib.parse.urlencode({'query': f'select count() from auto_{name}'})
        try:
            with urllib.request.urlopen(f'http://{sys.argv[1]}/exec?{query}') as answer:
                seen.append(json.load(answer)['dataset'][0][0])
        except urllib.error.HTTPError as error:
            seen.append(error.code)
        sender.flush()
print(json.dumps(seen))
`;
  const [byRows, byBytes, byTime, off] = JSON.parse(
    await python(program, address(server)),
  ) as number[];
  t.is(byRows, 200);
  t.true(byBytes !== undefined && byBytes > 0 && byBytes < 250, String(byBytes));
  t.is(byTime, 251);
  t.is(off, 400);
  for (const name of ['rows', 'bytes', 'interval', 'off']) {
    const all = name === 'interval' ? 251 : 250;
    const counts = await rows(server, `select count(), count_distinct(n) from auto_${name}`);
    t.deepEqual(counts, [[all, all]], name);
  }
});

const INFLUX = `
import sys
from influxdb_client import InfluxDBClient, Point, WritePrecision
from influxdb_client.client.write_api import SYNCHRONOUS
with InfluxDBClient(url=sys.argv[1], token=sys.argv[2], org='o', enable_gzip=True) as client:
    api = client.write_api(write_options=SYNCHRONOUS)
    points = [Point('influx').tag('host', 'a b,%d' % row).field('f', row + 0.5).field('i', row)
              .field('b', row > 0).field('v', 'two\\nlines "%d" \\\\x' % row)
              .time(1700000000000 + row, WritePrecision.MS) for row in range(3)]
    api.write(bucket='b', record=points, write_precision=WritePrecision.MS)
print('sent')
`;

test("InfluxDB's Python client works with token, gzip and line feeds in strings", async (t) => {
  if (!(await has('python3', '-c', 'import influxdb_client'))) {
    skip(t, 'the client is not installed');
    return;
  }
  const guarded = await startAccessServer();
  await runAll(guarded, 'CREATE SERVICE ACCOUNT feed', 'GRANT HTTP, CREATE TABLE TO feed');
  const text = "ALTER SERVICE ACCOUNT feed CREATE TOKEN TYPE REST WITH TTL '1d'";
  const created = (await exec(guarded, 'admin:quest', text)).dataset?.[0] ?? [];
  const token = String(created.find((cell) => String(cell).startsWith('tdm_')));
  t.is(await python(INFLUX, guarded.url, token), 'sent');
  const answer = await exec(
    guarded,
    'admin:quest',
    'select host, f, i, b, v, timestamp from influx',
  );
  t.deepEqual(answer.dataset, [
    ['a b,0', 0.5, 0, false, 'two\nlines "0" \\x', '2023-11-14T22:13:20.000000Z'],
    ['a b,1', 1.5, 1, true, 'two\nlines "1" \\x', '2023-11-14T22:13:20.001000Z'],
    ['a b,2', 2.5, 2, true, 'two\nlines "2" \\x', '2023-11-14T22:13:20.002000Z'],
  ]);
  t.is((await write(guarded, 'influx f=1', credentials('feed:wrong'))).status, 401);
  await guarded.stop();
});

/** The format in which `outputs.influxdb_v2` writes system metrics. */
const HOST = 'host=web\\ 1';
const TIME = '1700000000000000000';
const TELEGRAF = [
  `cpu,cpu=cpu-total,${HOST} usage_user=3.0150753768844223,usage_idle=95.97 ${TIME}`,
  `mem,${HOST} total=16777216000i,available=8388608000i,used_percent=49.99 ${TIME}`,
  `disk,device=C:,fstype=NTFS,${HOST},path=\\\\C: free=10i,inodes_total=0i ${TIME}`,
  `system,${HOST} uptime_format="14 days, 19:44",load1=0.07 ${TIME}`,
  '',
].join('\n');

test('lines sent by Telegraf are written', async (t) => {
  const path = '/api/v2/write?bucket=b&org=o';
  const { status, text } = await write(server, TELEGRAF, {}, path);
  t.is(status, 204, text);
  t.deepEqual(await rows(server, 'select host, path, free from disk'), [['web 1', '\\C:', 10]]);
  t.deepEqual(await rows(server, 'select uptime_format from system'), [['14 days, 19:44']]);
});
