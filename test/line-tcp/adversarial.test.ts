/** Adversarial bytes and connections, and killed servers: complete lines must survive. */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { bytes, rows } from '../line/harness.js';
import { suiteSeed } from '../seed.js';
import { randomFrom } from '../sql/time-series/random-table.js';
import { residentBytes } from '../torture/process.js';
import { until } from '../until.js';
import { events, open, portOf, shows } from './harness.js';

/** Lines that contain every form of a value. */
const MESSAGE = bytes(
  'm,s=a\\ b,t=c f=1.5,i=42i,h=0x12i,b=t,v="x\\"y\nz",n=1t d==',
  [16],
  2.5,
  ',a==',
  [14, 10, 2, 1, 0, 0, 0, 2, 0, 0, 0],
  1.5,
  2.5,
  ',e==',
  [23, 2, 2, 0x30, 0x39],
  ' 1700000000000000000\n# comment\nm,s=c f=2,i=1i 1700000000000000t\n',
);

test('the server and other senders survive mutated bytes', async (t) => {
  const server = await startTestServer({
    set: ['line.tcp.commit.interval.default=20ms', 'line.tcp.disconnect.on.error=false'],
  });
  t.teardown(() => server.stop());
  const random = randomFrom(suiteSeed());
  const count = Number(process.env['COUNT'] ?? 2_000);
  const other = await open(server, t);
  for (let round = 0; round < count; round += 20) {
    const senders = await Promise.all(Array.from({ length: 20 }, () => open(server, t)));
    await Promise.all(
      senders.map(async (sender) => {
        const mutated = Buffer.from(MESSAGE);
        for (let change = 0; change <= random(4); change += 1) {
          mutated[random(mutated.length)] = random(256);
        }
        const cut = random(mutated.length);
        await sender.send(mutated.subarray(0, cut));
        await sender.send(mutated.subarray(cut));
        await sender.end();
      }),
    );
    await other.send(`other x=${round}i\n`);
  }
  await other.end();
  t.deepEqual(await rows(server, 'select count() from other'), [[count / 20]]);
  t.deepEqual(events(server, 'lines_lost'), []);
  t.is(server.process.exitCode, null);
});

test('random bytes or an endless line close the connection', async (t) => {
  const server = await startTestServer();
  t.teardown(() => server.stop());
  for (let round = 0; round < 20; round += 1) {
    const sender = await open(server, t);
    await sender.send(randomBytes(200_000));
    await sender.closed;
  }
  const endless = await open(server, t);
  const chunk = Buffer.alloc(1 << 16, 'a');
  for (let sent = 0; sent < 4_096 && !endless.isClosed; sent += 1) {
    await Promise.race([endless.send(chunk), endless.closed]);
  }
  t.true(endless.isClosed);
});

test('malformed lines are skipped, and lines may be sent byte by byte', async (t) => {
  const server = await startTestServer({
    set: ['line.tcp.disconnect.on.error=false', 'line.tcp.commit.interval.default=20ms'],
  });
  t.teardown(() => server.stop());
  const sender = await open(server, t);
  const lines = Array.from({ length: 6_000 }, (_, row) =>
    row % 20 === 0 ? `many x=zz,y="${'y'.repeat(row)}"\n` : `many x=${row}i\n`,
  );
  await sender.send(lines.join(''));
  sender.socket.setNoDelay(true);
  for (const byte of 'many x=-1i\n'.repeat(200)) {
    await sender.send(byte);
  }
  await sender.end();
  t.deepEqual(await rows(server, 'select count(), min(x) from many'), [[5_700 + 200, -1]]);
  t.is(events(server, 'lines_refused').length, 60, 'the number of log lines per minute is limited');
});

async function connectMany(server: TestServer, count: number): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  for (let from = 0; from < count; from += 100) {
    const more = Array.from({ length: 100 }, () => {
      const socket = connect({ host: '127.0.0.1', port: portOf(server) });
      socket.on('error', () => undefined);
      return socket;
    });
    await Promise.all(
      more.map((socket) => new Promise((resolve) => socket.once('connect', resolve))),
    );
    sockets.push(...more);
  }
  return sockets;
}

const MANY = 1_000;

test('a thousand senders that are idle mid-line use at most 64 MiB', async (t) => {
  const server = await startTestServer({
    set: ['line.tcp.net.connection.limit=5000', 'line.tcp.commit.interval.default=50ms'],
  });
  t.teardown(() => server.stop());
  const warm = await open(server, t);
  await warm.send('idle x=0i\n');
  await warm.end();
  const before = residentBytes(server);
  const sockets = await connectMany(server, MANY);
  t.teardown(() => {
    for (const socket of sockets) {
      socket.destroy();
    }
  });
  for (const [at, socket] of sockets.entries()) {
    socket.write(`idle x=${at + 1}i\nidle x=`);
  }
  await shows(server, 'select count() from idle', [[MANY + 1]]);
  const cost = residentBytes(server) - before;
  t.log(`${(cost / 1024 ** 2).toFixed(1)} MiB`);
  t.true(cost <= 64 * 1024 ** 2, `${cost} bytes`);
  t.true(sockets.every(({ destroyed }) => !destroyed));
});

test("the senders' total input buffer is limited, and every row arrives", async (t) => {
  const server = await startTestServer({ set: ['line.tcp.max.open.size=256K'] });
  t.teardown(() => server.stop());
  const line = `bounded,s=${'y'.repeat(200)} x=1i\n`;
  const senders = await Promise.all(Array.from({ length: 20 }, () => open(server, t)));
  await Promise.all(
    senders.map(async (sender) => {
      for (let part = 0; part < 20; part += 1) {
        await sender.send(line.repeat(500));
      }
      await sender.end();
    }),
  );
  t.deepEqual(await rows(server, 'select count() from bounded'), [[20 * 20 * 500]]);
});

test('aborted connections write only their complete lines, in order', async (t) => {
  const server = await startTestServer({ set: ['line.tcp.commit.interval.default=10ms'] });
  t.teardown(() => server.stop());
  for (let sender = 0; sender < 30; sender += 1) {
    const { socket } = await open(server, t);
    const lines = Array.from(
      { length: 2_000 },
      (_, row) => `cuts,s=${sender} x=${row}i,y=${row}i\n`,
    );
    socket.write(lines.join(''), () => socket.resetAndDestroy());
    await new Promise((resolve) => socket.once('close', resolve));
  }
  await until(async () => {
    const text = await fetch(`${server.url}/health`).then((answer) => answer.text());
    return text.includes('Healthy');
  }, 'the server is alive');
  await open(server, t).then(async (last) => {
    await last.send('cuts,s=last x=0i,y=0i\n');
    await last.end();
  });
  const found = await rows(server, 'select s, count(), max(x), count(y) from cuts');
  for (const [sender, count, maximum, complete] of found) {
    t.is(count, Number(maximum) + 1, `sender ${String(sender)}`);
    t.is(complete, count);
  }
});

test('after kill -9, visible rows survive, and no sender has a gap in its rows', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-kill-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  let minimum = 0;
  for (let round = 0; round < 3; round += 1) {
    const server = await startTestServer({ root, set: ['line.tcp.commit.interval.default=10ms'] });
    const sender = await open(server, t);
    let row = minimum;
    const sending = (async (): Promise<void> => {
      while (!sender.isClosed) {
        const lines = Array.from({ length: 500 }, (_, at) => `kills x=${row + at}i,r=${round}i\n`);
        row += lines.length;
        await Promise.race([sender.send(lines.join('')), sender.closed]);
      }
    })();
    let seen = 0;
    await until(async () => {
      const answer = await rows(server, 'select count() from kills').catch(() => [[0]]);
      seen = Number(answer[0]?.[0]);
      return seen >= minimum + 2_000;
    }, 'rows arrive');
    server.process.kill('SIGKILL');
    await sending;
    const again = await startTestServer({ root });
    const [found = []] = await rows(again, 'select count(), max(x), count_distinct(x) from kills');
    await again.stop();
    const [count = 0, maximum = 0, distinct = 0] = found.map(Number);
    t.true(count >= seen, `${count} of ${seen}`);
    t.deepEqual([count, distinct], [maximum + 1, maximum + 1]);
    minimum = count;
  }
});
