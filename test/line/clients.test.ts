/** Clients as their registries give them, with nothing of theirs changed but the address. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import test from 'ava';

import { credentials, exec, run as runAll, startAccessServer } from '../access/harness.js';
import { has, run, skip, TOOLS } from '../clients/tools.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { columns, rows, write } from './harness.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
});
test.after.always(() => server.stop());

const NODE_CLIENT = join(TOOLS, 'node', 'node_modules', '@questdb', 'nodejs-client');

function address(place: TestServer): string {
  return place.url.replace('http://', '');
}

/** What a program of Python printed. */
async function python(program: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await run('python3', ['-W', 'ignore', '-c', program, ...args]);
  return stdout.trim();
}

const SENDER = `
import sys, datetime, decimal, numpy
from questdb.ingress import Sender, TimestampNanos, TimestampMicros
conf, table = sys.argv[1:3]
version = int(sys.argv[3])
with Sender.from_conf(conf) as sender:
    for row in range(3):
        columns = {'f': row + 0.5, 'i': row, 'b': row > 0, 'v': 'a "quoted"\\nline \\\\ %d' % row,
                   'm': TimestampMicros(row + 1)}
        if version >= 2:
            columns['a'] = numpy.array([[row, 1.5], [2.5, 3.5]], dtype=numpy.float64)
        if version >= 3:
            columns['d'] = decimal.Decimal('-123.45')
        sender.row(table, symbols={'s': 'x y,=%d' % row}, columns=columns,
                   at=TimestampNanos(1700000000000000000 + row))
        sender.row(table + '_2', columns={'x': row}, at=TimestampNanos(1700000000000000000))
    sender.flush()
print('sent')
`;

for (const version of [1, 2, 3]) {
  test(`QuestDB's Python client, protocol version ${version}`, async (t) => {
    if (!(await has('python3', '-c', 'import questdb.ingress, numpy'))) {
      skip(t, 'the client is not installed');
      return;
    }
    const table = `python${version}`;
    const conf = `http::addr=${address(server)};protocol_version=${version};`;
    t.is(await python(SENDER, conf, table, String(version)), 'sent');
    t.deepEqual(await rows(server, `select s, f, i, b, v, m from ${table} order by i`), [
      ['x y,=0', 0.5, 0, false, 'a "quoted"\nline \\ 0', '1970-01-01T00:00:00.000001Z'],
      ['x y,=1', 1.5, 1, true, 'a "quoted"\nline \\ 1', '1970-01-01T00:00:00.000002Z'],
      ['x y,=2', 2.5, 2, true, 'a "quoted"\nline \\ 2', '1970-01-01T00:00:00.000003Z'],
    ]);
    t.deepEqual(await rows(server, `select count() from ${table}_2`), [[3]]);
    if (version >= 2) {
      t.deepEqual(await rows(server, `select a from ${table} where i = 1`), [
        [
          [
            [1, 1.5],
            [2.5, 3.5],
          ],
        ],
      ]);
    }
    if (version >= 3) {
      t.deepEqual(await rows(server, `select d from ${table} limit 1`), [['-123.450']]);
    }
  });
}

test("QuestDB's Python client agrees on a version, and shows refusals", async (t) => {
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
  t.regex(shown, /column 'x' of type DOUBLE takes no text 'text'/);
  t.regex(shown, /id: [0-9a-f]{12}-[0-9]+, code: invalid, line: 1/);
  t.deepEqual(await rows(server, 'select x from agreed'), [[1.5]]);
});

const NODE_PROGRAM = `
const { Sender } = await import(process.argv[1]);
const [, , conf, table, version] = process.argv;
const sender = await Sender.fromConfig(conf);
for (let row = 0; row < 3; row += 1) {
  sender.table(table).symbol('s', 'x y,=' + row).floatColumn('f', row + 0.5).intColumn('i', row)
    .booleanColumn('b', row > 0).stringColumn('v', 'a "quoted"\\nline ' + row);
  sender.timestampColumn('m', BigInt(row + 1), 'us');
  if (Number(version) >= 2) sender.arrayColumn('a', [[row, 1.5], [2.5, 3.5]]);
  if (Number(version) >= 3) sender.decimalColumnText('d', '-123.45');
  await sender.at(1700000000000000000n + BigInt(row), 'ns');
}
await sender.flush();
await sender.close();
console.log('sent');
`;

for (const version of [1, 2, 3]) {
  test(`QuestDB's Node.js client, protocol version ${version}`, async (t) => {
    if (!existsSync(NODE_CLIENT)) {
      skip(t, 'the client is not installed');
      return;
    }
    const table = `node${version}`;
    const conf = `http::addr=${address(server)};protocol_version=${version};auto_flush=off;`;
    const module = pathToFileURL(join(NODE_CLIENT, 'dist', 'es', 'index.mjs')).href;
    const args = ['--input-type=module', '-e', NODE_PROGRAM, module, conf, table, String(version)];
    const { stdout } = await run(process.execPath, args);
    t.is(stdout.trim(), 'sent');
    t.deepEqual(await rows(server, `select s, f, i, b, v, m from ${table} order by i`), [
      ['x y,=0', 0.5, 0, false, 'a "quoted"\nline 0', '1970-01-01T00:00:00.000001Z'],
      ['x y,=1', 1.5, 1, true, 'a "quoted"\nline 1', '1970-01-01T00:00:00.000002Z'],
      ['x y,=2', 2.5, 2, true, 'a "quoted"\nline 2', '1970-01-01T00:00:00.000003Z'],
    ]);
    const found = await columns(server, table);
    t.is(found.includes('a DOUBLE[][]'), version >= 2);
    t.is(found.includes('d DECIMAL(18,3)'), version >= 3);
  });
}

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

test("InfluxDB's Python client: token, gzip, raw line feeds within texts", async (t) => {
  if (!(await has('python3', '-c', 'import influxdb_client'))) {
    skip(t, 'the client is not installed');
    return;
  }
  const guarded = await startAccessServer();
  await runAll(guarded, 'CREATE SERVICE ACCOUNT feed', 'GRANT HTTP, CREATE TABLE TO feed');
  const text = "ALTER SERVICE ACCOUNT feed CREATE TOKEN TYPE REST WITH TTL '1d'";
  const made = (await exec(guarded, 'admin:quest', text)).dataset?.[0] ?? [];
  const token = String(made.find((cell) => String(cell).startsWith('tdm_')));
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

/** As `outputs.influxdb_v2` writes its metrics of the system. */
const HOST = 'host=web\\ 1';
const TIME = '1700000000000000000';
const TELEGRAF = [
  `cpu,cpu=cpu-total,${HOST} usage_user=3.0150753768844223,usage_idle=95.97 ${TIME}`,
  `mem,${HOST} total=16777216000i,available=8388608000i,used_percent=49.99 ${TIME}`,
  `disk,device=C:,fstype=NTFS,${HOST},path=\\\\C: free=10i,inodes_total=0i ${TIME}`,
  `system,${HOST} uptime_format="14 days, 19:44",load1=0.07 ${TIME}`,
  '',
].join('\n');

test("Telegraf's lines", async (t) => {
  const path = '/api/v2/write?bucket=b&org=o';
  const { status, text } = await write(server, TELEGRAF, {}, path);
  t.is(status, 204, text);
  t.deepEqual(await rows(server, 'select host, path, free from disk'), [['web 1', '\\C:', 10]]);
  t.deepEqual(await rows(server, 'select uptime_format from system'), [['14 days, 19:44']]);
});
