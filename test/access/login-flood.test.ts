/** Floods of wrong passwords: which logins are checked and which are refused. */
import { EventEmitter, once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { availableParallelism } from 'node:os';

import test from 'ava';

import { CallerDisconnected, HashPool, LoginsBusy, MAX_WAITING } from '../../ts/auth/hash-pool.js';
import { HashQueue, type Waiting } from '../../ts/auth/hash-queue.js';
import type { TestServer } from '../golden/server.js';
import { until } from '../until.js';
import { ADMIN, credentials, exec, run, startAccessServer } from './harness.js';
import { pgClient } from '../pg-client.js';

const ROUNDS = 100_000;
const SOCKETS = 50;
const TRIES = 40;
/**
 * Maximum number of password checks that may complete before a queued check. Each thread may
 * complete three: one that was already running when the login was sent, one that started before the
 * server read the login, and one that runs at the same time.
 */
const MAX_BEFORE_NEXT = 3 * availableParallelism();

// ---- queue order ----

interface Item extends Waiting {
  readonly name: string;
}

const connections = new Map<string, object>();

/**
 * Parses `address/connection/number`, optionally followed by the connection's number of failures:
 * `address/connection/number/2`.
 */
function item(name: string): Item {
  const [address = '', connection = '', , failures = '0'] = name.split('/');
  const key = `${address}/${connection}`;
  connections.set(key, connections.get(key) ?? {});
  return { name, address, connection: connections.get(key) ?? {}, failures: Number(failures) };
}

function queue(maximum: number, ...names: readonly string[]): HashQueue<Item> {
  const created = new HashQueue<Item>(maximum);
  for (const name of names) {
    created.push(item(name));
  }
  return created;
}

function order(waiting: HashQueue<Item>): string[] {
  const all: string[] = [];
  for (let next = waiting.shift(); next !== null; next = waiting.shift()) {
    all.push(next.name);
  }
  return all;
}

test('the login queue is fair between addresses, then between connections', (t) => {
  const flood = ['a/1/1', 'a/1/2', 'a/1/3', 'a/2/1', 'a/2/2'];
  t.deepEqual(order(queue(10, ...flood)), ['a/2/1', 'a/2/2', 'a/1/1', 'a/1/2', 'a/1/3']);
  const equal = ['a/1/1', 'a/2/1', 'a/3/1', 'a/4/1'];
  t.deepEqual(order(queue(10, ...equal)), ['a/1/1', 'a/4/1', 'a/2/1', 'a/3/1']);
  const waiting = queue(10, ...flood);
  t.is(waiting.shift()?.name, 'a/2/1');
  waiting.push(item('b/1/1'));
  t.is(waiting.shift()?.name, 'b/1/1', 'the other address sent one request');
  waiting.push(item('a/3/1'));
  waiting.push(item('b/1/2'));
  t.is(waiting.shift()?.name, 'b/1/2');
  t.is(waiting.shift()?.name, 'a/3/1', 'the other connection of the first address is served next');
  t.is(waiting.size, 4);
});

test('logged-in connections are served first and connections with failed logins last', (t) => {
  const flood = ['a/1/1/1', 'a/2/1/3', 'a/3/1/2', 'a/4/1/4'];
  const others = ['a/8/1', 'a/9/1', 'a/9/2', 'a/7/1/-1', 'a/7/2/-1'];
  t.deepEqual(order(queue(20, ...flood, ...others)), [
    'a/7/1/-1',
    'a/7/2/-1',
    'a/8/1',
    'a/9/1',
    'a/9/2',
    'a/1/1/1',
    'a/3/1/2',
    'a/2/1/3',
    'a/4/1/4',
  ]);
  const full = queue(3, 'a/8/1', 'a/1/1/1', 'a/7/1/-1');
  t.is(full.push(item('a/9/1'))?.name, 'a/1/1/1', 'a full queue drops it too');
});

test('a full queue drops a request from the address with the most requests', (t) => {
  const waiting = queue(4, 'a/1/1', 'a/1/2', 'a/1/3', 'a/2/1');
  t.is(waiting.push(item('a/3/1'))?.name, 'a/1/3');
  t.is(waiting.push(item('b/1/1'))?.name, 'a/1/2');
  t.is(
    waiting.push(item('a/1/9'))?.name,
    'a/1/9',
    'the new request is dropped if it is the last in order',
  );
  t.is(waiting.size, 4);
  t.deepEqual(order(waiting).sort(), ['a/1/1', 'a/2/1', 'a/3/1', 'b/1/1']);
});

test('the queue does not keep state for served requests', (t) => {
  const waiting = queue(2);
  for (let round = 0; round < 5_000; round += 1) {
    waiting.push({ name: String(round), address: `a${round % 7}`, connection: {}, failures: 0 });
  }
  t.is(waiting.size, 2);
  t.is(order(waiting).length, 2);
  t.is(waiting.size, 0);
});

class Connection extends EventEmitter {
  destroyed = false;
}

test('hash requests of closed connections are skipped; the hash queue is bounded', async (t) => {
  const pool = new HashPool(1);
  const request = { password: 'p', salt: Buffer.alloc(16), iterations: 200_000, keyBytes: 32 };
  const open = new Connection();
  const closing = new Connection();
  const first = pool.hash(request, { address: '127.0.0.1', connection: open });
  const late = Array.from({ length: MAX_WAITING + 5 }, () =>
    pool.hash(request, { address: '127.0.0.1', connection: closing }),
  );
  const ends = Promise.allSettled(late);
  closing.emit('close');
  const last = pool.hash(request, { address: '127.0.0.1', connection: open });
  const names = (await ends).map((end) =>
    end.status === 'rejected' && end.reason instanceof Error ? end.reason.name : 'hashed',
  );
  t.is(names.filter((name) => name === LoginsBusy.name).length, 5);
  t.is(names.filter((name) => name === CallerDisconnected.name).length, MAX_WAITING);
  t.deepEqual(await first, await last);
  closing.destroyed = true;
  await t.throwsAsync(pool.hash(request, { address: '127.0.0.1', connection: closing }), {
    instanceOf: CallerDisconnected,
  });
});

// ---- with a real server ----

/**
 * Immediately sends `TRIES` bad logins on each of `SOCKETS` connections, and counts the responses.
 */
class Flood {
  readonly sockets: Socket[] = [];
  text = '';

  async begin(server: TestServer, round: number): Promise<void> {
    const { port } = new URL(server.url);
    for (let index = 0; index < SOCKETS; index += 1) {
      const socket = connect(Number(port), '127.0.0.1');
      socket.on('error', () => undefined);
      socket.setEncoding('latin1').on('data', (chunk: string) => {
        this.text += chunk;
      });
      await once(socket, 'connect');
      this.sockets.push(socket);
      const requests = Array.from({ length: TRIES }, (_, attempt) => {
        const { authorization = '' } = credentials(`x${round}_${index}_${attempt}:p`);
        return (
          'GET /exec?query=select+1 HTTP/1.1\r\nHost: localhost\r\n' +
          `Authorization: ${authorization}\r\n\r\n`
        );
      });
      socket.write(requests.join(''));
    }
  }

  count(status: number): number {
    return this.text.split(`HTTP/1.1 ${status} `).length - 1;
  }

  end(): void {
    for (const socket of this.sockets) {
      socket.destroy();
    }
  }
}

let server: TestServer;

test.before(async () => {
  server = await startAccessServer(undefined, `acl.password.hash.iteration.count=${ROUNDS}`);
  await run(
    server,
    "CREATE USER ann WITH PASSWORD 'a'",
    "CREATE USER bob WITH PASSWORD 'b'",
    "CREATE USER eve WITH PASSWORD 'e'",
    "CREATE USER dan WITH PASSWORD 'd'",
    ...['ann', 'bob', 'eve', 'dan'].map((name) => `GRANT HTTP, PGWIRE TO ${name}`),
  );
});

test.after.always(() => server.stop());

test.serial('during 2,000 bad logins, logged-in connections are served first', async (t) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const login = async (who: string): Promise<number | undefined> => {
    const request = get(`${server.url}/exec?query=SELECT+1`, {
      agent,
      headers: credentials(who),
    });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.resume();
    await once(response, 'end');
    return response.statusCode;
  };
  t.is(await login('ann:a'), 200);
  const flood = new Flood();
  await flood.begin(server, 3);
  await until(() => flood.count(401) > 0, 'the flood is being checked');
  for (const who of ['bob:b', 'eve:e', 'dan:d']) {
    const before = flood.count(401);
    t.is(await login(who), 200);
    const checked = flood.count(401) - before;
    t.true(checked <= MAX_BEFORE_NEXT, `${checked} logins were checked before ${who}`);
  }
  agent.destroy();
  flood.end();
});

test.serial(
  'during 2,000 bad logins, a valid new login is served next and DDL is not delayed',
  async (t) => {
    const flood = new Flood();
    await flood.begin(server, 1);
    await until(() => flood.count(401) > 0, 'the flood is being checked');
    const before = flood.count(401);
    const table = exec(server, ADMIN, 'CREATE TABLE beside (i INT)');
    t.is((await exec(server, 'ann:a', 'SELECT 1')).status, 200);
    const checked = flood.count(401) - before;
    // At most one check per connection, plus the checks already in flight.
    t.true(checked <= SOCKETS + 14, `${checked} logins were checked before it`);
    t.is((await table).status, 200);

    const { pg: address } = server;
    const client = pgClient(address, { user: 'bob', password: 'b' });
    await client.connect();
    await client.end();
    const all = SOCKETS * TRIES;
    await until(() => flood.count(401) + flood.count(503) === all, 'all requests are answered');
    t.true(flood.count(401) <= 3 * MAX_WAITING, `${flood.count(401)} logins were checked`);
    t.regex(flood.text, /HTTP\/1\.1 503 [^]*Retry-After: 1[^]*too many concurrent logins/);
    flood.end();
  },
);

test.serial('concurrent requests with the same credentials are checked once', async (t) => {
  const statuses = await Promise.all(
    Array.from({ length: 2 * MAX_WAITING }, async () => {
      return (await exec(server, 'ann:a ', 'SELECT 1')).status;
    }),
  );
  const seen = new Set(statuses);
  t.deepEqual([...seen].sort(), [401, 429], 'a wrong password gets 401 or 429, never 503');
});
