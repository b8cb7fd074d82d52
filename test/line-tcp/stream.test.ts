/** Lines over TCP: commits, malformed lines, and how connections end. */
import { setTimeout as sleep } from 'node:timers/promises';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { bytes, columns, rows } from '../line/harness.js';
import { until } from '../until.js';
import { events, open, sendAll, shows } from './harness.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['line.tcp.commit.interval.default=200ms'] });
});
test.after.always(() => server.stop());

test('lines are committed while the connection stays open', async (t) => {
  const sender = await open(server, t);
  await sender.send('staying,s=a x=1i 1000\nstaying,s=b x=2i 2000\n');
  await shows(server, 'select s, x from staying', [
    ['a', 1],
    ['b', 2],
  ]);
  await sender.send('staying,s=c x=3i 3000\n');
  await shows(server, 'select count() from staying', [[3]]);
  t.false(sender.isClosed);
});

test('closing a connection commits complete lines and discards a partial line', async (t) => {
  await sendAll(server, 'ended x=1i 1\nended x=2i 2\nended x=3');
  t.deepEqual(await rows(server, 'select x from ended'), [[1], [2]]);
  await sendAll(server, 'ended x=4i 4');
  t.deepEqual(await rows(server, 'select count() from ended'), [[2]]);
});

/** Binary values that contain line feeds, spaces, commas and quotes. */
const GOLDEN = bytes(
  'cut,s=a\\ b f==',
  [16, 0x0a, 0x20, 0x2c, 0x22, 0x0a, 0x0a, 0x0a, 0x40],
  ',a==',
  [14, 10, 1, 2, 0, 0, 0],
  1.5,
  2.5,
  ',v="two\nlines\\"",i=1i 1000000t\ncut,s=c i=2i 2000000000n\n',
);

test('a stream may be split at any byte', async (t) => {
  for (let at = 1; at < GOLDEN.length; at += 1) {
    const sender = await open(server, t);
    await sender.send(GOLDEN.subarray(0, at));
    // At some offsets, waits until the complete lines are committed.
    if (at % 20 === 0) {
      await sleep(250);
    }
    await sender.send(GOLDEN.subarray(at));
    await sender.end();
  }
  const each = GOLDEN.length - 1;
  t.deepEqual(await rows(server, 'select s, v, i, count() from cut order by i'), [
    ['a b', 'two\nlines"', 1, each],
    ['c', null, 2, each],
  ]);
  t.true((await columns(server, 'cut')).includes('a DOUBLE[]'));
});

test('a malformed line closes the connection, and earlier lines are written', async (t) => {
  const sender = await open(server, t);
  await sender.send('wrong x=1i 1\nwrong x=2i 2\nwrong x=zz 3\nwrong x=4i 4\n');
  await sender.closed;
  t.deepEqual(await rows(server, 'select x from wrong'), [[1], [2]]);
  const [event] = events(server, 'lines_refused').filter(({ message }) =>
    String(message).includes("'zz'"),
  );
  t.like(event, { component: 'line_tcp', line: 3, address: '127.0.0.1' });
});

test("line numbers continue across a connection's commits", async (t) => {
  const sender = await open(server, t);
  await sender.send('# a comment\n\ncounted x=1i 1\n');
  await shows(server, 'select count() from counted', [[1]]);
  await sender.send('counted x="a\nb" 2\n');
  await sender.closed;
  const [event] = events(server, 'lines_refused').filter(({ message }) =>
    String(message).includes("column 'x' of type LONG"),
  );
  t.is(event?.['line'], 4);
});

test('HTTP requests, TLS handshakes and endless lines close the connection', async (t) => {
  const wrong = [
    'POST /exec HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nbrowser x=1i 1\n',
    'GET /?x="1 HTTP/1.1\r\nHost: a\r\n\r\n"=1i\nbrowser x=1i 1\n',
    Buffer.from([0x16, 3, 1, 0, 10, 1, 0, 0, 0x0a]),
    'x'.repeat(100_000),
    `endless x="${'y'.repeat(100_000)}`,
  ];
  for (const message of wrong) {
    const sender = await open(server, t);
    await sender.send(message);
    await sender.closed;
  }
  const found = await rows(
    server,
    "select count() from tables() where table_name in ('browser', 'endless')",
  );
  t.deepEqual(found, [[0]]);
  t.true(
    events(server, 'lines_refused').some(({ message }) =>
      String(message).includes('the line is longer than 32768 bytes'),
    ),
  );
});

test('a large stream is committed in batches', async (t) => {
  const sender = await open(server, t);
  const line = (row: number): string =>
    `large,s=s${row % 7},t=t${row % 11} a=${row}i,b=${row / 2} ${row + 1}000\n`;
  for (let from = 0; from < 200_000; from += 10_000) {
    await sender.send(Array.from({ length: 10_000 }, (_, at) => line(from + at)).join(''));
  }
  await sender.end();
  t.deepEqual(await rows(server, 'select count(), sum(a), count_distinct(s) from large'), [
    [200_000, (200_000 * 199_999) / 2, 7],
  ]);
});

test('/settings describes both line protocol transports to clients', async (t) => {
  const answer = await fetch(`${server.url}/settings`);
  const { config } = (await answer.json()) as { config: Record<string, unknown> };
  t.deepEqual(config['ilp.proto.transports'], ['http', 'tcp']);
});

test('malformed lines are skipped if the connection is configured to stay open', async (t) => {
  const lenient = await startTestServer({
    set: [
      'line.tcp.disconnect.on.error=false',
      'line.tcp.commit.interval.default=100ms',
      'line.tcp.timestamp=ms',
      'line.tcp.max.measurement.size=200',
      'line.log.message.on.error=false',
    ],
  });
  t.teardown(() => lenient.stop());
  const sender = await open(lenient, t);
  await sender.send('lax x=1i 1\nlax x=zz 2\nlax x=3i 3\nlax x=');
  await shows(lenient, 'select x, timestamp from lax', [
    [1, '1970-01-01T00:00:00.001000Z'],
    [3, '1970-01-01T00:00:00.003000Z'],
  ]);
  await sender.send(`"${'y'.repeat(1000)}`);
  await until(() => events(lenient, 'lines_refused').length === 2, 'the long line is refused');
  await sender.send(`${'y'.repeat(1000)}\nlax x=5i 5\n`);
  await shows(lenient, 'select x from lax', [[1], [3], [5]]);
  t.false(sender.isClosed);
  t.deepEqual(
    events(lenient, 'lines_refused').map(({ line, message }) => [line, message]),
    [
      [2, undefined],
      [4, undefined],
    ],
  );
});

test('idle and excess connections are closed; shutdown commits the received rows', async (t) => {
  const small = await startTestServer({
    set: [
      'line.tcp.net.connection.timeout=2s',
      'line.tcp.net.connection.limit=3',
      'line.tcp.commit.interval.default=1h',
    ],
  });
  const silent = await open(small, t);
  await silent.send('silent x=1i 1\nsilent x');
  await silent.closed;
  t.deepEqual(await rows(small, 'select x from silent'), [[1]]);
  const senders = await Promise.all([1, 2, 3, 4, 5].map(() => open(small, t)));
  await until(
    () => senders.filter(({ isClosed }) => isClosed).length >= 2,
    'two senders are refused',
  );
  t.true(events(small, 'connection_refused').length >= 2);
  await Promise.all(senders.map(({ closed }) => closed));
  // The server notices disconnects a little later. Until then it refuses connections.
  let last = await open(small, t);
  await until(async () => {
    await sleep(100);
    last = last.isClosed ? await open(small, t) : last;
    return !last.isClosed;
  }, 'a connection is free again');
  await last.send('silent x=2i 2\n');
  // The first row is committed immediately, because its connection had not committed anything for a
  // whole interval. The next row has to wait until the interval has passed.
  await shows(small, 'select x from silent', [[1], [2]]);
  await last.send('silent x=3i 3\n');
  await sleep(100);
  const { root } = small;
  const { process: child } = small;
  child.kill('SIGTERM');
  await last.closed;
  await until(() => child.exitCode !== null, 'the server stops');
  t.is(child.exitCode, 0);
  const again = await startTestServer({ root });
  t.teardown(() => again.stop());
  t.deepEqual(await rows(again, 'select x from silent'), [[1], [2], [3]]);
});

test('failed writes are retried, and lost lines are reported at shutdown', async (t) => {
  const full = await startTestServer({
    set: ['disk.watermark=900T', 'line.tcp.commit.interval.default=20ms'],
  });
  const sender = await open(full, t);
  await sender.send('full x=1i 1\n');
  await sleep(500);
  t.false(sender.isClosed);
  t.deepEqual(events(full, 'lines_lost'), []);
  t.is(await full.stop(), 0);
  await sender.closed;
  t.like(events(full, 'lines_lost')[0], { code: 'DiskFull', level: 'error' });
});
