/** How the server handles a handed-off connection, tested with a simulated engine. */
import test from 'ava';

import type { HandoffResult, Handoff, ResultStream } from '../../ts/engine/types.js';
import { until } from '../until.js';
import { start } from './harness.js';
import { errorFields, RawClient } from './raw-client.js';
import { answers, bind, EXECUTE, parse, SYNC } from './repeating.js';

const NOTHING = Buffer.alloc(0);
const BACK: HandoffResult = {
  bytes: NOTHING,
  unsent: NOTHING,
  last: null,
  error: null,
  reply: null,
  micros: new Uint32Array(),
};

/** A handoff that the test itself ends. */
class HandedOff {
  readonly revokes: boolean[] = [];
  end: (back: HandoffResult) => void = () => undefined;
  readonly handoff: Handoff = {
    ended: new Promise((resolve) => {
      this.end = resolve;
    }),
    revoke: (gently) => {
      this.revokes.push(gently);
    },
  };
}

/** Makes the engine refuse handoffs; returns the number of attempts. */
function refusals(engine: Awaited<ReturnType<typeof start>>['engine']): () => number {
  let count = 0;
  engine.handOff = () => {
    count += 1;
    throw new Error('too many open files');
  };
  return () => count;
}

function longReply(): { stream: ResultStream; cancelled: () => number } {
  let count = 0;
  const stream: ResultStream = {
    next: () => Promise.resolve(null),
    summary: () => ({ rowsReturned: 0, rowsTotal: 0, rowsAffected: 0, executeNanos: 0 }),
    cancel: () => {
      count += 1;
    },
  };
  return { stream, cancelled: () => count };
}

const ECHO = [bind('e', ['5']), EXECUTE, SYNC];

test('an interrupt stops the rows of a handoff; statement durations are recorded', async (t) => {
  const seconds: number[] = [];
  const observer = { observe: (one: number): void => void seconds.push(one) };
  const { engine, server, port } = await start({ handsOff: true }, null, observer);
  const handoffs: HandedOff[] = [];
  engine.handOff = () => {
    const handedOff = new HandedOff();
    handoffs.push(handedOff);
    return handedOff.handoff;
  };
  const client = await RawClient.login(port);
  await answers(client, [parse('e', 'echo $1'), SYNC]);
  for (let round = 0; round < 3; round += 1) {
    await answers(client, ECHO);
  }
  await until(() => handoffs.length === 1, 'the connection is handed off');
  const [handedOff] = handoffs;
  server.interrupt();
  t.deepEqual(handedOff?.revokes, [false]);
  const before = seconds.length;
  const { stream, cancelled } = longReply();
  const reply = { chunk: null, summary: null, stream };
  handedOff?.end({ ...BACK, last: 0, reply, micros: Uint32Array.of(1_000, 2_000, 3_000) });
  const all = await client.until('never');
  t.is(errorFields(all.at(-1))['C'], '57P01');
  t.is(cancelled(), 1);
  t.deepEqual(seconds.slice(before), [0.001, 0.002]);
  await server.close();
});

test('handoffs are attempted less often while the engine refuses them', async (t) => {
  const { engine, server, port } = await start({ handsOff: true });
  const requests = refusals(engine);
  const client = await RawClient.login(port);
  await answers(client, [parse('e', 'echo $1'), SYNC]);
  const first = await answers(client, ECHO);
  for (let round = 0; round < 100; round += 1) {
    t.deepEqual(await answers(client, ECHO), first);
  }
  t.true(requests() > 2 && requests() < 8, `${requests()} times`);
  client.close();
  await server.close();
});

test('statements with long names are not handed off', async (t) => {
  const { engine, server, port } = await start({ handsOff: true });
  const requests = refusals(engine);
  const client = await RawClient.login(port);
  const long = 'n'.repeat(20_000);
  await answers(client, [parse(long, 'echo $1'), parse('e', 'echo $1'), SYNC]);
  for (let round = 0; round < 10; round += 1) {
    await answers(client, [bind(long, ['5']), EXECUTE, SYNC]);
  }
  t.is(requests(), 0);
  for (let round = 0; round < 10; round += 1) {
    await answers(client, ECHO);
  }
  t.true(requests() > 0);
  client.close();
  await server.close();
});
