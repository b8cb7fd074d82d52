/**
 * kill -9 and aborted connections during ingestion. In each commit mode, every acknowledged group
 * exists and no group exists only in part. `ROUNDS=N` kills more often.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { WebSocketClient } from '../http/websocket-client.js';
import { rows } from '../line/harness.js';
import { until } from '../until.js';
import { answer, FLAG, message, row, STATUS } from './messages.js';

const ROUNDS = Number(process.env['ROUNDS'] ?? 2);
const CLIENTS = 3;
/** Maximum number of groups that a client has in flight. */
const AHEAD = 8;

/** Sends groups to two tables until its connection ends; returns the acknowledged groups. */
async function send(server: TestServer, first: number, known: Set<number>): Promise<void> {
  const client = await WebSocketClient.open(Number(new URL(server.url).port), '/write/v4', {});
  const groups: number[] = [];
  let group = first;
  for (;;) {
    while (groups.length < AHEAD) {
      group += CLIENTS;
      client.send(message(FLAG.defer, 1, row('one_side', group)));
      client.send(message(0, 1, row('other_side', group)));
      groups.push(group);
    }
    const { status } = (await answer(client)) ?? {};
    if (status !== STATUS.ok) {
      return;
    }
    known.add(groups.shift() ?? -1);
  }
}

/** A client whose message is cut off midway. */
async function cut(server: TestServer): Promise<void> {
  const client = await WebSocketClient.open(Number(new URL(server.url).port), '/write/v4', {});
  client.send(message(FLAG.defer, 1, row('one_side', -1)));
  client.socket.write(Buffer.from([0x82, 0xfe, 0x10, 0x00, 1, 2, 3, 4, 5]));
  await sleep(20);
  client.socket.destroy();
}

for (const mode of ['sync', 'async', 'nosync']) {
  test.serial(`acknowledged groups survive kill -9 in ${mode} mode`, async (t) => {
    const root = await mkdtemp(join(tmpdir(), 'tidemark-qwp-kills-'));
    t.teardown(() => rm(root, { recursive: true, force: true }));
    const known = new Set<number>();
    const set = [`cairo.commit.mode=${mode}`];
    for (let round = 0; round < ROUNDS; round += 1) {
      const server = await startTestServer({ root, set });
      const before = known.size;
      const clients = Array.from({ length: CLIENTS }, (_, at) =>
        send(server, at + round * 1_000_000, known).catch(() => undefined),
      );
      await cut(server);
      await until(() => known.size >= before + 60, '60 groups');
      const closed = once(server.process, 'close');
      server.process.kill('SIGKILL');
      await Promise.all([...clients, closed]);
    }
    const server = await startTestServer({ root, set });
    const [left = [], right = []] = await Promise.all(
      ['one_side', 'other_side'].map(async (table) => {
        const found = await rows(server, `select x from ${table} order by x`);
        return found.flat() as number[];
      }),
    );
    await server.stop();
    t.deepEqual(left, right, 'each group is in both tables or in neither');
    t.is(new Set(left).size, left.length, 'no group exists twice');
    const lost = [...known].filter((group) => !left.includes(group));
    t.deepEqual(lost, [], 'every acknowledged group exists');
    t.true(left.length <= known.size + ROUNDS * CLIENTS * AHEAD);
  });
}
