/** Which clients are busy-polled, and for how long, on a simulated clock. */
import test from 'ava';

import { BusyPoll, SOON_MS } from '../../ts/sockets/busy-poll.js';

/** An event loop with a simulated clock that iterates on request. */
class TestLoop {
  time = 0;
  iterations = 0;
  waiting: (() => void) | null = null;

  now = (): number => this.time;

  next = (round: () => void): void => {
    this.waiting = round;
  };

  /**
   * Iterates until no poll wants to continue, with `stepMs` per iteration; returns the number of
   * iterations.
   */
  run(stepMs: number): number {
    let iterations = 0;
    for (let round = this.waiting; round !== null && iterations < 1_000; round = this.waiting) {
      this.waiting = null;
      this.time += stepMs;
      round();
      iterations += 1;
    }
    return iterations;
  }
}

test('the event loop busy-polls briefly for a client that sends again immediately', (t) => {
  const loop = new TestLoop();
  const pace = new BusyPoll(loop).paceOf({});
  pace.received();
  pace.answered();
  t.is(loop.run(0.01), 0, 'it is unknown whether the client sends again');
  loop.time += SOON_MS / 2;
  pace.received();
  loop.time += 5;
  pace.answered();
  const iterations = loop.run(SOON_MS / 10);
  t.true(iterations >= 10 && iterations <= 12, `polling took ${iterations} iterations`);
  t.is(loop.waiting, null, 'polling has stopped');
});

test('busy polling stops for a slow client until it is fast again', (t) => {
  const loop = new TestLoop();
  const pace = new BusyPoll(loop).paceOf({});
  pace.received();
  pace.answered();
  for (const [pause, isWaitedFor] of [
    [SOON_MS * 2, false],
    [SOON_MS / 2, true],
    [SOON_MS * 3, false],
    [10_000, false],
    [0, true],
  ] as const) {
    loop.time += pause;
    pace.received();
    pace.answered();
    t.is(loop.waiting !== null, isWaitedFor, `after a pause of ${pause} ms`);
    loop.time += SOON_MS;
    loop.run(0);
    loop.time -= SOON_MS;
  }
});

test('connections share the busy-poll slots but have separate pacing', (t) => {
  const loop = new TestLoop();
  const poll = new BusyPoll(loop);
  const socket = {};
  const quick = poll.paceOf(socket);
  const slow = poll.paceOf({});
  t.is(poll.paceOf(socket), quick, 'the pace of a socket is reused');
  t.not(quick, slow);
  for (let round = 0; round < 3; round += 1) {
    quick.received();
    quick.answered();
    loop.time += SOON_MS / 2;
  }
  const turn = loop.waiting;
  quick.received();
  quick.answered();
  t.is(loop.waiting, turn, 'only one poll is scheduled');
  loop.run(SOON_MS);
  slow.received();
  slow.answered();
  t.is(loop.waiting, null);
});
