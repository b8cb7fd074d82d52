/** The official Rust client writing rows and reading results, with only the address changed. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';

import { run, skip, TOOLS } from '../clients/tools.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { columns, rows } from '../line/harness.js';

const CLIENT = join(TOOLS, 'bin', 'questdb-rs-client');
const POLARS = join(TOOLS, 'bin', 'questdb-rs-polars');

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
});
test.after.always(() => server.stop());

test('the client writes Arrow batches and reads results as Arrow', async (t) => {
  if (!existsSync(CLIENT)) {
    skip(t, 'the client is not built: node scripts/setup-tests.mjs');
    return;
  }
  const { port } = new URL(server.url);
  const args = [`ws::addr=127.0.0.1:${port};`, 'from_arrow', 'arrow'];
  const { stdout } = await run(CLIENT, args);
  const second = [
    ...['b', 'y', '', '-0.5', '0.5', '-2', '-8', 'false', '1970-01-01T00:00:00.000002Z'],
    ...['1970-01-01T00:00:00.002Z', '1970-01-03T00:00:00Z', '167772162', 'fe'.repeat(16), '0.001'],
    ...['[]', '2023-11-14T22:13:20.000000001Z'],
  ].join('|');
  t.deepEqual(stdout.trim().split('\n'), [
    ...['symbol Dictionary(UInt32, Utf8)', 'text_symbol Dictionary(UInt32, Utf8)', 'text Utf8'],
    ...['d Float64', 'f Float32', 'l Int64', 'i Int64', 'b Boolean', 'm Timestamp(µs, "UTC")'],
    ...['ms Timestamp(ms, "UTC")', 'day Timestamp(ms, "UTC")', 'ip UInt32'],
    ...['u FixedSizeBinary(16)', 'dec Decimal64(18, 3)', 'a List(Float64)'],
    'timestamp Timestamp(ns, "UTC")',
    'a|x|a "b"',
    [
      ...['ä', '1.5', '2.5', '1099511627776', '7', 'true', '1970-01-01T00:00:00.000001Z'],
      ...['1970-01-01T00:00:00.001Z', '1970-01-02T00:00:00Z', '167772161', '11'.repeat(16)],
      ...['-123.450', '[1.0, 2.0]', '2023-11-14T22:13:20Z'],
    ].join('|'),
    second,
    second,
    `${'null|'.repeat(7)}true|${'null|'.repeat(7)}2023-11-14T22:13:20.000000002Z`,
  ]);
  t.deepEqual(await columns(server, 'from_arrow'), [
    ...['symbol SYMBOL', 'text_symbol SYMBOL', 'text VARCHAR', 'd DOUBLE', 'f FLOAT', 'l LONG'],
    ...['i LONG', 'b BOOLEAN', 'm TIMESTAMP', 'ms DATE', 'day DATE', 'ip IPv4', 'u UUID'],
    ...['dec DECIMAL(18,3)', 'a DOUBLE[]', 'timestamp TIMESTAMP_NS'],
  ]);
});

test('the client writes Polars frames and reads results as frames', async (t) => {
  if (!existsSync(POLARS)) {
    skip(t, 'the client is not built: node scripts/setup-tests.mjs');
    return;
  }
  const { port } = new URL(server.url);
  const { stdout } = await run(POLARS, [`ws::addr=127.0.0.1:${port};`, 'from_polars']);
  const days = ['1970-01-02 00:00:00 UTC', '1970-01-03 00:00:00 UTC'];
  const start = '2023-11-14 22:13:20';
  t.deepEqual(stdout.trim().split('\n'), [
    ...['symbol cat', 'text str', 'd f64', 'f f32', 'l i64', 'i i64', 'b bool'],
    ...['day datetime[ms, UTC]', 'timestamp datetime[μs, UTC]', '"x"|"a "b"'],
    `ä"|1.5|2.5|1099511627776|7|true|${days[0]}|${start} UTC`,
    `"y"|""|-0.5|0.5|-2|-8|false|${days[1]}|${start}.000001 UTC`,
    `null|null|null|null|null|null|true|null|${start}.000002 UTC`,
  ]);
  t.deepEqual(await columns(server, 'from_polars'), [
    ...['symbol SYMBOL', 'text VARCHAR', 'd DOUBLE', 'f FLOAT', 'l LONG', 'i LONG', 'b BOOLEAN'],
    ...['day DATE', 'timestamp TIMESTAMP'],
  ]);
});

test('cancelled and timed-out queries end immediately', async (t) => {
  if (!existsSync(CLIENT)) {
    skip(t, 'the client is not built: node scripts/setup-tests.mjs');
    return;
  }
  const { port } = new URL(server.url);
  const { stdout } = await run(CLIENT, [`ws::addr=127.0.0.1:${port};`, 'none', 'stops']);
  t.deepEqual(stdout.trim().split('\n'), [
    ...['cancelled 0 0 true 1', 'cancelled 0 1 true 1', 'cancelled 0 20 true 1'],
    ...['cancelled 65536 0 true 1', 'cancelled 65536 1 true 1', 'cancelled 65536 20 true 1'],
    ...['late QueryTimeout 1', 'late QueryTimeout 1', 'late QueryTimeout 1'],
  ]);
});

test('rows of every type and a query with a parameter round-trip', async (t) => {
  if (!existsSync(CLIENT)) {
    skip(t, 'the client is not built: node scripts/setup-tests.mjs');
    return;
  }
  const { port } = new URL(server.url);
  const { stdout } = await run(CLIENT, [`ws::addr=127.0.0.1:${port};`, 'from_rust', '3']);
  t.deepEqual(stdout.trim().split('\n'), [
    'x y,=1|1.5|1|true|2us|1700000000000000001ns',
    'x y,=2|2.5|2|true|3us|1700000000000000002ns',
    'sent',
  ]);
  t.deepEqual(await columns(server, 'from_rust'), [
    ...['s SYMBOL', 'f DOUBLE', 'i LONG', 'b BOOLEAN', 'v VARCHAR', 'm TIMESTAMP', 'a DOUBLE[][]'],
    ...['d DECIMAL(18,3)', 'timestamp TIMESTAMP_NS'],
  ]);
  t.deepEqual(await rows(server, 'select v, a, d from from_rust where i = 1'), [
    [
      'a "quoted"\nline \\ 1',
      [
        [1, 1.5],
        [2.5, 3.5],
      ],
      '-123.450',
    ],
  ]);
});
