/**
 * Clients that try to tell the engine and the server apart, or that keep handed-off connections
 * busy.
 */
import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { CertificateFolder } from '../tls/certificates.js';
import { until } from '../until.js';
import { clientMessage, type RawClient } from './raw-client.js';
import {
  answers,
  bind,
  DESCRIBE,
  EXECUTE,
  FLUSH,
  handedOff,
  login,
  parse,
  run,
  shown,
  startBoth,
  SYNC,
} from './repeating.js';
import { pgClient } from '../pg-client.js';

let handingOff: TestServer;
let plain: TestServer;

test.before(async () => {
  [handingOff, plain] = await startBoth();
});

test.after.always(async () => {
  await Promise.all([handingOff, plain].map((server) => server.stop()));
});

async function client(t: ExecutionContext, server: TestServer): Promise<RawClient> {
  const one = await login(server);
  t.teardown(() => {
    one.close();
  });
  return one;
}

/** Executes until the connection is handed off, even after earlier handoffs were unprofitable. */
async function handOff(one: RawClient, messages: readonly Buffer[]): Promise<void> {
  for (let tries = 0; tries < 20; tries += 1) {
    await answers(one, Array.from({ length: 70 }, () => messages).flat());
    const before = await handedOff(handingOff);
    await answers(one, messages);
    await answers(one, messages);
    if ((await handedOff(handingOff)) > before) {
      return;
    }
  }
  throw new Error('the connection is not handed off');
}

const PORTAL = (type: string): Buffer => clientMessage(type, Buffer.from('P'), '');

/** Messages that a client may send between an Execute and its Sync. */
const AFTERWARDS: readonly (readonly [string, readonly Buffer[]])[] = [
  ['Describe', [DESCRIBE]],
  ['a second Execute', [EXECUTE]],
  ['a second Execute with a row limit', [clientMessage('E', '', 1)]],
  ['Close, then Describe', [PORTAL('C'), DESCRIBE]],
  ['Flush', [FLUSH, DESCRIBE]],
  ['Describe of another portal', [clientMessage('D', Buffer.from('P'), 'other')]],
  ['Describe of the statement', [clientMessage('D', Buffer.from('S'), 'n')]],
  ['Execute of another portal', [clientMessage('E', 'other', 0)]],
];

for (const [name, more] of AFTERWARDS) {
  test.serial(`handoffs do not change replies between Execute and Sync: ${name}`, async (t) => {
    const [a, b] = await Promise.all([client(t, handingOff), client(t, plain)]);
    const good = [bind('n', ['3']), EXECUTE, SYNC];
    for (const one of [a, b]) {
      await answers(one, [parse('n', 'SELECT x FROM long_sequence($1::long)'), SYNC]);
    }
    await handOff(a, good);
    for (const results of [[], [1]]) {
      const odd = [bind('n', ['2'], { results }), EXECUTE, ...more, SYNC];
      t.deepEqual(await answers(a, odd), await answers(b, odd));
      await answers(a, Array.from({ length: 70 }, () => odd.slice(0, 2).concat(SYNC)).flat());
      await handOff(a, [bind('n', ['3'], { results }), EXECUTE, SYNC]);
      t.deepEqual(await answers(a, odd), await answers(b, odd));
    }
  });
}

const LONG =
  'SELECT sum(a.x * b.x) FROM long_sequence($1::long) a CROSS JOIN long_sequence(20000) b';

/** Returns the ids of the long-running queries. */
async function longQueries(): Promise<number[]> {
  const rows = await run(handingOff, 'SELECT query_id, query FROM query_activity()');
  return rows.filter(([, text]) => String(text).includes('CROSS JOIN')).map(([id]) => Number(id));
}

/** Returns how many of the long-running queries run in handoffs. */
async function handoffQueries(): Promise<number> {
  return (await longQueries()).filter((id) => id >= 2 ** 48).length;
}

/** A client with a long-running handed-off query. */
async function busy(t: ExecutionContext): Promise<RawClient> {
  const one = await client(t, handingOff);
  await answers(one, [parse('l', LONG), SYNC]);
  await handOff(one, [bind('l', ['1']), EXECUTE, SYNC]);
  const before = await handoffQueries();
  one.send(bind('l', ['10000000']), EXECUTE, SYNC);
  await until(async () => (await handoffQueries()) > before, 'the query runs');
  return one;
}

const DISCONNECTS: Readonly<Record<string, (one: RawClient) => void>> = {
  'closes the socket': (one) => {
    one.close();
  },
  'resets the connection': (one) => {
    one.socket.resetAndDestroy();
  },
  'half-closes the connection, as a proxy does': (one) => {
    one.socket.end();
  },
  'after further messages': (one) => {
    const more = Array.from({ length: 100 }, () => [bind('l', ['10000000']), EXECUTE, SYNC]);
    one.socket.end(Buffer.concat(more.flat()));
  },
};

for (const [name, disconnect] of Object.entries(DISCONNECTS)) {
  test.serial(`a disconnected client cancels its query: ${name}`, async (t) => {
    const one = await busy(t);
    const began = Date.now();
    disconnect(one);
    await until(async () => (await longQueries()).length === 0, 'the query has ended');
    const took = Date.now() - began;
    t.true(took < 15_000, `${took} ms`);
  });
}

test.serial('long-running queries do not block other clients', async (t) => {
  const others = await Promise.all(Array.from({ length: 8 }, () => client(t, handingOff)));
  const good = [bind('n', ['3']), EXECUTE, SYNC];
  for (const one of others) {
    await answers(one, [parse('n', 'SELECT x FROM long_sequence($1::long)'), SYNC]);
    await handOff(one, good);
  }
  await Promise.all([busy(t), busy(t), busy(t)]);
  for (const one of others) {
    const began = Date.now();
    await answers(one, good);
    t.true(Date.now() - began < 5_000);
  }
});

test.serial('a client that half-closes its connection gets the complete response', async (t) => {
  const ends = [];
  for (const server of [handingOff, plain]) {
    const one = await client(t, server);
    await answers(one, [parse('n', 'SELECT x FROM long_sequence($1::long)'), SYNC]);
    const good = [bind('n', ['3']), EXECUTE, SYNC];
    await (server === handingOff ? handOff(one, good) : answers(one, good));
    one.socket.end(Buffer.concat([...good, ...good, ...good.slice(0, 2)]));
    ends.push((await one.until('never')).map(shown));
  }
  const [a = [], b = []] = ends;
  t.is(a.filter((message) => message.startsWith('Z')).length, 2);
  t.deepEqual(a.slice(0, b.length), b);
});

test.serial('handoffs do not change replies for names and parameters of any length', async (t) => {
  const [a, b] = await Promise.all([client(t, handingOff), client(t, plain)]);
  const name = 'n'.repeat(64 * 1024);
  const list = Array.from({ length: 2_000 }, (_, index) => `$${index + 1}::varchar`).join(', ');
  for (const one of [a, b]) {
    await answers(one, [
      parse(name, 'SELECT length($1::varchar) n'),
      parse('many', `SELECT concat(${list}) all`),
      parse('short', 'SELECT length($1::varchar) n'),
      SYNC,
    ]);
  }
  const many = Array.from({ length: 2_000 }, (_, index) => `${index}`);
  const rounds = [
    [bind(name, ['a']), EXECUTE, SYNC],
    [bind('many', many), EXECUTE, SYNC],
    [bind('short', ['ü'.repeat(3_000_000)]), EXECUTE, SYNC],
    [bind('short', ['x'.repeat(100_000)]), EXECUTE, SYNC],
    [bind('short', ['x']), EXECUTE, SYNC],
  ];
  for (const messages of rounds) {
    for (let round = 0; round < 6; round += 1) {
      t.deepEqual(await answers(a, messages), await answers(b, messages));
    }
  }
});

test.serial('statements answered by the server process are not handed off', async (t) => {
  const acl = await startTestServer({
    set: ['acl.enabled=true', 'pg.auth.method=cleartext'],
  });
  t.teardown(() => acl.stop());
  const one = await client(t, acl);
  await answers(one, [clientMessage('Q', "CREATE USER ada WITH PASSWORD 'passw0rd-of-ada'")]);
  const texts = {
    s: 'SHOW PARAMETERS',
    u: 'SHOW USERS',
    k: "ALTER USER ada CREATE TOKEN TYPE REST WITH TTL '1h'",
  };
  for (const [name, text] of Object.entries(texts)) {
    await answers(one, [parse(name, text), SYNC]);
    for (let round = 0; round < 8; round += 1) {
      const [bound] = await answers(one, [bind(name, []), EXECUTE, SYNC]);
      t.is(bound, '2 ');
    }
  }
  t.notRegex(acl.log(), /handoff_failed/);
});

test.serial('encrypted connections are not handed off', async (t) => {
  const folder = new CertificateFolder();
  folder.make('server');
  const set = [...folder.settings('server'), 'metrics.enabled=true'];
  const server = await startTestServer({ set });
  const ssl = { rejectUnauthorized: false };
  const one = pgClient(server.pg, { ssl });
  t.teardown(async () => {
    await one.end();
    await server.stop();
    folder.remove();
  });
  await one.connect();
  for (let round = 0; round < 20; round += 1) {
    const query = { name: 'n', text: 'SELECT x FROM long_sequence($1::long)', values: [2] };
    t.is((await one.query(query)).rows.length, 2);
  }
  t.notRegex(server.log(), /handoff_failed/);
});

test.serial('a table may be re-created between two executions', async (t) => {
  const [a, b] = await Promise.all([client(t, handingOff), client(t, plain)]);
  const both = async (statement: string): Promise<void> => {
    await Promise.all([run(handingOff, statement), run(plain, statement)]);
  };
  const same = async (messages: readonly Buffer[]): Promise<void> => {
    t.deepEqual(await answers(a, messages), await answers(b, messages));
  };
  await both('CREATE TABLE again (a int, b varchar)');
  await both("INSERT INTO again VALUES (1, 'x')");
  const good = [bind('g', ['0']), EXECUTE, SYNC];
  await same([parse('g', 'SELECT * FROM again WHERE a > $1::int'), SYNC]);
  for (const columns of ['a int, b varchar', 'b varchar, a int', 'a long, b varchar', 'a int']) {
    await both('DROP TABLE again');
    await both(`CREATE TABLE again (${columns})`);
    await same(good);
    await both('INSERT INTO again (a) VALUES (7)');
    await same(good);
    await both('DROP TABLE again');
    await both('CREATE TABLE again (a int, b varchar)');
    await both("INSERT INTO again VALUES (1, 'x')");
    for (let round = 0; round < 10; round += 1) {
      await same(good);
    }
  }
});
