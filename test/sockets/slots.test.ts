/**
 * Connection slots: which connections keep their slot, which yield it, and how each connection
 * ends. Uses real sockets without a protocol.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, Socket } from 'node:net';

import test, { type ExecutionContext } from 'ava';

import { machineOf, plainAddress } from '../../ts/config/index.js';
import { type Slot, slotOf, type SlotLimits, Slots } from '../../ts/sockets/index.js';
import { until } from '../until.js';

const LIMITS: SlotLimits = { all: 8, perAddress: 8, withoutLogin: 4, stallMs: 60_000 };

interface Place {
  readonly slots: Slots;
  readonly admitted: Slot[];
  readonly client: () => Promise<Socket>;
}

/** `accepted` simulates how a protocol handles a connection. */
async function listen(
  t: ExecutionContext,
  limits: Partial<SlotLimits> = {},
  accepted: (socket: Socket, slot: Slot) => void = () => undefined,
  allowHalfOpen = false,
): Promise<Place> {
  const slots = new Slots(() => ({ ...LIMITS, ...limits }));
  const admitted: Slot[] = [];
  const server: Server = createServer({ allowHalfOpen }, (socket) => {
    socket.on('error', () => undefined).resume();
    const slot = slots.admit(socket);
    if (slot !== null) {
      admitted.push(slot);
      accepted(socket, slot);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  t.teardown(() => {
    slots.cutAll();
    server.close();
  });
  const client = async (): Promise<Socket> => {
    const before = admitted.length;
    // The client does not close its side when the server closes.
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined).resume();
    await once(socket, 'connect');
    await until(
      () => admitted.length > before || socket.destroyed,
      'the connection is admitted or closed',
    );
    return socket;
  };
  return { slots, admitted, client };
}

/** All ways a protocol or a client ends a connection without closing it. */
const ENDS: Readonly<Record<string, (socket: Socket, client: Socket) => void>> = {
  end: (socket) => socket.end(),
  'end with data': (socket) => socket.end('go away'),
  destroySoon: (socket) => {
    socket.destroySoon();
  },
  'end with data that the client does not read': (socket, client) => {
    client.pause();
    socket.end(Buffer.alloc(16 * 1024 * 1024));
  },
  'delayed end': (socket) => {
    socket.write('first');
    setTimeout(() => socket.end(), 50);
  },
  'half-close by the client': (_socket, client) => client.end(),
};

for (const [name, end] of Object.entries(ENDS)) {
  test(`a disconnected client's slot is freed: ${name}`, async (t) => {
    let served: Socket | undefined;
    const { slots, client } = await listen(t, {}, (socket) => {
      served = socket;
    });
    const asking = await client();
    t.is(slots.size, 1);
    const started = performance.now();
    end(served as unknown as Socket, asking);
    await until(
      () => served?.destroyed === true && slots.size === 0,
      'the server has closed the connection',
    );
    t.true(performance.now() - started < 10_000);
    asking.destroy();
  });
}

test('a client that does not read is closed at the limit', async (t) => {
  let served: Socket | undefined;
  const { slots, client } = await listen(t, { stallMs: 500 }, (socket, slot) => {
    served = socket;
    slot.enter();
    socket.write(Buffer.alloc(16 * 1024 * 1024));
  });
  const asking = await client();
  asking.pause();
  await until(
    () => served?.destroyed === true && slots.size === 0,
    'the server has closed the connection',
  );
  t.pass();
  asking.destroy();
});

test('new connections evict idle unauthenticated ones, but never logged-in ones', async (t) => {
  const displaced: Slot[] = [];
  const { slots, admitted, client } = await listen(t, {}, (_socket, slot) => {
    const displace = slot.displace;
    slot.displace = () => {
      displaced.push(slot);
      displace();
    };
  });
  const members = [await client(), await client()];
  for (const slot of admitted) {
    slot.enter();
  }
  for (let round = 0; round < 40; round += 1) {
    await client();
    t.is(admitted.at(-1)?.refusal, null, 'the new connection is accepted');
    await new Promise((resolve) => setTimeout(resolve, 30));
    t.true(slots.size <= LIMITS.all, 'the limit is never exceeded');
  }
  t.is(displaced.length, 40 - (LIMITS.all - members.length));
  t.deepEqual(
    displaced,
    admitted.slice(2, 2 + displaced.length),
    'the oldest connections are evicted first',
  );
  t.true(members.every((socket) => !socket.destroyed));
});

test('a fraction of the connections is reserved for logged-in clients', async (t) => {
  const { slots, client } = await listen(t, { all: 100, withoutLogin: 4 });
  for (let round = 0; round < 12; round += 1) {
    await client();
  }
  t.is(slots.size, 12, 'no connection is idle yet');
  await new Promise((resolve) => setTimeout(resolve, 800));
  for (let round = 0; round < 12; round += 1) {
    await client();
  }
  t.is(slots.size, 12, 'each new connection evicts an idle one');
});

test('active unauthenticated connections cannot exceed their fraction of slots', async (t) => {
  const { admitted, client } = await listen(t, { all: 4, withoutLogin: 2 });
  const lively = async (): Promise<Slot | undefined> => {
    (await client()).write('x');
    return admitted.at(-1);
  };
  for (let round = 0; round < 12; round += 1) {
    t.is((await lively())?.refusal, null, `round ${round}`);
  }
  for (const slot of admitted.slice(-3)) {
    slot.enter();
  }
  t.is((await lively())?.refusal, 'too many connections [limit=4]');
});

test('a connection that is sending a response is not evicted', async (t) => {
  let finish = (): void => undefined;
  const work = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const { admitted, client } = await listen(t, { all: 2, withoutLogin: 2 }, (_socket, slot) => {
    void slot.during(() => work);
  });
  await client();
  await client();
  await new Promise((resolve) => setTimeout(resolve, 300));
  await client();
  t.is(admitted[2]?.refusal, 'too many connections [limit=2]');
  finish();
  await new Promise((resolve) => setTimeout(resolve, 50));
  await client();
  t.is(admitted[3]?.refusal, null);
});

test('a refused connection is closed', async (t) => {
  const { slots, admitted, client } = await listen(t, { all: 1 }, (_socket, slot) => {
    slot.enter();
  });
  await client();
  const refused = await client();
  t.not(admitted[1]?.refusal, null);
  t.is(slots.size, 1);
  await until(() => refused.readableEnded || refused.destroyed, 'the connection is closed');
});

test('a slot can be looked up by any socket of its connection', async (t) => {
  const other = new Socket();
  let served: Socket | undefined;
  const { admitted, client } = await listen(t, {}, (socket, slot) => {
    served = socket;
    slot.carry(other);
  });
  await client();
  t.is(slotOf(served as unknown as Socket), admitted[0]);
  t.is(slotOf(other), admitted[0]);
});

test('a client is identified by its IPv4 address or IPv6 /64 network', (t) => {
  t.is(plainAddress('::ffff:10.0.0.1'), '10.0.0.1');
  t.is(plainAddress('::1'), '::1');
  t.is(machineOf('10.0.0.1'), '10.0.0.1');
  t.is(machineOf('::1'), '::1');
  t.is(machineOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64');
  t.is(machineOf('2001:db8:1:2::9'), '2001:db8:1:2::/64');
  t.is(machineOf('2001:db8::9'), '2001:db8:0:0::/64');
  t.is(machineOf('fe80::1%eth0'), 'fe80:0:0:0::/64');
  t.is(machineOf('2001:db8:1:2:ffff::'), '2001:db8:1:2::/64');
});
