/**
 * HTTP clients that occupy handed-off connections, disconnect midway, or lose their permissions.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { text } from 'node:stream/consumers';

import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { CertificateFolder } from '../tls/certificates.js';
import { until } from '../until.js';
import { get, handOff, handedOff, Repeater, run } from './repeating.js';

let server: TestServer;

test.before(async () => {
  const set = ['metrics.enabled=true', 'http.net.connection.timeout=10m'];
  server = await startTestServer({ set });
  await run(server, 'CREATE TABLE big AS (SELECT x FROM long_sequence(1000000))');
});

test.after.always(() => server.stop());

async function client(t: ExecutionContext, of: TestServer): Promise<Repeater> {
  const one = await Repeater.open(of);
  t.teardown(() => {
    one.close();
  });
  return one;
}

/** A query that takes minutes if it joins all rows. */
const cross = (x: number, y: number): Buffer =>
  get(`SELECT sum(a.x * b.x) FROM big a CROSS JOIN big b WHERE a.x <= ${x} AND b.x <= ${y}`);
const endless = (): Buffer => cross(1_000_000, 1_000_000);

async function running(of: TestServer): Promise<number> {
  const rows = await run(of, 'SELECT query FROM query_activity()');
  return rows.filter(([query]) => String(query).includes('CROSS')).length;
}

/**
 * A client with a long-running query. Its connection is handed off, unless the handoff just ended.
 */
async function busy(t: ExecutionContext, of = server): Promise<Repeater> {
  const one = await client(t, of);
  let x = 0;
  await handOff(one, of, () => cross((x = (x + 1) % 90), 2));
  const before = await running(of);
  one.send(endless());
  await until(async () => (await running(of)) > before, 'the query runs');
  return one;
}

const DISCONNECTS: Readonly<Record<string, (one: Repeater) => void>> = {
  'closes the socket': (one) => {
    one.close();
  },
  'resets the connection': (one) => {
    one.socket.resetAndDestroy();
  },
  'half-closes the connection': (one) => {
    one.socket.end();
  },
};

for (const [name, disconnect] of Object.entries(DISCONNECTS)) {
  test.serial(`a disconnected client cancels its query: ${name}`, async (t) => {
    disconnect(await busy(t));
    const began = Date.now();
    await until(async () => (await running(server)) === 0, 'the query has ended');
    t.true(Date.now() - began < 15_000);
  });
}

test.serial('long-running queries do not block other clients', async (t) => {
  const others = await Promise.all(Array.from({ length: 8 }, () => client(t, server)));
  for (const one of others) {
    await handOff(one, server, () => get('SELECT 1'));
  }
  await Promise.all([busy(t), busy(t), busy(t)]);
  for (const one of others) {
    const began = Date.now();
    t.regex((await one.exchange(get('SELECT 1'))) ?? '', /^HTTP\/1\.1 200 OK/);
    t.true(Date.now() - began < 5_000);
  }
});

test.serial(
  'a client that pauses reading uses no memory and later gets all responses',
  async (t) => {
    const one = await client(t, server);
    const rows = get('SELECT * FROM big LIMIT 2000');
    await handOff(one, server, () => rows);
    one.socket.pause();
    const memory = async (): Promise<number> => {
      const metrics = await (await fetch(`${server.url}/metrics`)).text();
      return Number(/^\w*resident_bytes (\d+)/m.exec(metrics)?.[1] ?? Number.NaN) / 2 ** 20;
    };
    const before = await memory();
    const count = 4_000;
    one.send(...Array.from({ length: count }, () => rows));
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    t.true((await memory()) - before < 60, 'rows are not generated before the client reads them');
    one.socket.resume();
    for (let at = 0; at < count; at += 1) {
      if (!(await one.answer())?.endsWith('"count":2000}')) {
        t.fail(`answer ${at}`);
        return;
      }
    }
  },
);

test.serial('an idle connection is closed; a busy connection is not', async (t) => {
  const quick = await startTestServer({
    set: ['metrics.enabled=true', 'http.net.connection.timeout=1500ms'],
  });
  t.teardown(() => quick.stop());
  const one = await client(t, quick);
  await handOff(one, quick, () => get('SELECT 1'));
  const until = Date.now() + 5_000;
  while (Date.now() < until) {
    t.truthy(await one.exchange(get('SELECT 1')));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const began = Date.now();
  t.is(await one.answer(), null);
  t.true(Date.now() - began > 1_000);
});

test.serial('an incomplete request times out', async (t) => {
  const quick = await startTestServer({
    set: ['metrics.enabled=true', 'http.header.timeout=1s'],
  });
  t.teardown(() => quick.stop());
  const one = await client(t, quick);
  const complete = get('SELECT 1');
  await handOff(one, quick, () => complete);
  one.send(complete.subarray(0, -3));
  t.regex((await one.answer()) ?? '', /^HTTP\/1\.1 408/);
});

test.serial('server shutdown completes running requests and closes idle connections', async (t) => {
  const own = await startTestServer({ set: ['metrics.enabled=true'] });
  await run(own, 'CREATE TABLE big AS (SELECT x FROM long_sequence(4000))');
  const idle = await client(t, own);
  await handOff(idle, own, () => get('SELECT 1'));
  const one = await client(t, own);
  let x = 0;
  const quick = (maximum: number): Buffer =>
    get(
      'SELECT sum(a.x * b.x * c.x) FROM big a CROSS JOIN big b CROSS JOIN long_sequence(20) c ' +
        `WHERE a.x <= ${maximum}`,
    );
  await handOff(one, own, () => quick((x = (x + 1) % 3)));
  await handOff(idle, own, () => get('SELECT 1'));
  one.send(quick(4_000));
  const stopped = own.stop();
  t.regex((await one.answer()) ?? '', /^HTTP\/1\.1 (?:200|503|4\d\d) /);
  t.is(await idle.answer(), null);
  t.is(await stopped, 0);
});

test.serial('server shutdown cancels a long-running query', async (t) => {
  const own = await startTestServer({ set: ['metrics.enabled=true'] });
  await run(own, 'CREATE TABLE big AS (SELECT x FROM long_sequence(1000000))');
  const one = await busy(t, own);
  const began = Date.now();
  const stopped = own.stop();
  const answer = await one.answer();
  t.regex(answer ?? '', /shutting down/);
  t.is(await stopped, 0);
  t.true(Date.now() - began < 30_000);
});

const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

test.serial('changes to rights, passwords and users apply from the next request', async (t) => {
  const acl = await startTestServer({ set: ['acl.enabled=true', 'metrics.enabled=true'] });
  t.teardown(() => acl.stop());
  const admin = { authorization: basic('admin', 'quest') };
  for (const statement of [
    'CREATE TABLE secrets (a int)',
    "CREATE USER ada WITH PASSWORD 'passw0rd-of-ada'",
    'GRANT HTTP TO ada',
    'GRANT SELECT ON secrets TO ada',
  ]) {
    await run(acl, statement, admin);
  }
  const one = await client(t, acl);
  const headers = [`Authorization: ${basic('ada', 'passw0rd-of-ada')}`];
  let x = 0;
  const nextRequest = (): Buffer => get(`SELECT a FROM secrets WHERE a > ${(x += 1)}`, { headers });
  const changes: readonly (readonly [string, string, RegExp])[] = [
    ['REVOKE SELECT ON secrets FROM ada', 'GRANT SELECT ON secrets TO ada', / 403 /],
    ['REVOKE HTTP FROM ada', 'GRANT HTTP TO ada', / 40[13] /],
    ['ALTER USER ada DISABLE', 'ALTER USER ada ENABLE', / 401 /],
    [
      "ALTER USER ada WITH PASSWORD 'another-passw0rd'",
      "ALTER USER ada WITH PASSWORD 'passw0rd-of-ada'",
      / 401 /,
    ],
  ];
  for (const [revokes, restores, refused] of changes) {
    await handOff(one, acl, nextRequest, admin);
    await run(acl, revokes, admin);
    t.regex((await one.exchange(nextRequest()))?.split('\r\n')[0] ?? '', refused, revokes);
    await run(acl, restores, admin);
    t.regex((await one.exchange(nextRequest())) ?? '', /^HTTP\/1\.1 200 OK/, restores);
  }
  // A request with other credentials belongs to another user.
  await handOff(one, acl, nextRequest, admin);
  const other = get('SELECT a FROM secrets WHERE a > 5', {
    headers: [`Authorization: ${basic('ada', 'wrong')}`],
  });
  t.regex((await one.exchange(other)) ?? '', /^HTTP\/1\.1 401 /);
  t.regex((await one.exchange(get('SELECT a FROM secrets WHERE a > 5'))) ?? '', /^HTTP\/1\.1 401 /);
});

test.serial('connections whose login can expire are not handed off', async (t) => {
  const acl = await startTestServer({ set: ['acl.enabled=true', 'metrics.enabled=true'] });
  t.teardown(() => acl.stop());
  const admin = { authorization: basic('admin', 'quest') };
  await run(acl, "CREATE USER ada WITH PASSWORD 'passw0rd-of-ada'", admin);
  await run(acl, 'GRANT HTTP TO ada', admin);
  const rows = await run(acl, "ALTER USER ada CREATE TOKEN TYPE REST WITH TTL '1h'", admin);
  const token = rows.flat().find((cell) => String(cell).startsWith('tdm_'));
  const url = `${acl.url}/exec?query=SELECT+1&session=true`;
  const signedIn = await fetch(url, { headers: admin });
  const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
  const before = await handedOff(acl, admin);
  for (const headers of [
    [`Authorization: Bearer ${String(token)}`],
    [`Cookie: ${cookie}`, 'Sec-Fetch-Site: same-origin'],
  ]) {
    const one = await client(t, acl);
    for (let round = 0; round < 40; round += 1) {
      t.regex((await one.exchange(get('SELECT 1', { headers }))) ?? '', /^HTTP\/1\.1 200 OK/);
    }
  }
  t.is(await handedOff(acl, admin), before);
});

test.serial('encrypted connections are not handed off', async (t) => {
  const folder = new CertificateFolder();
  folder.make('server');
  const set = [...folder.settings('server'), 'metrics.enabled=true'];
  const own = await startTestServer({ set });
  t.teardown(async () => {
    await own.stop();
    folder.remove();
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  const address = new URL(`${own.url.replace('http:', 'https:')}/exec?query=SELECT+1`);
  const send = async (path: string): Promise<string> => {
    const request = httpsRequest(new URL(path, address), { agent }).end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return await text(response);
  };
  for (let round = 0; round < 40; round += 1) {
    t.regex(await send(address.href), /"count":1/);
  }
  t.regex(await send('/metrics'), /fast_path_statements_total 0$/m);
  agent.destroy();
});

test.serial('unusual headers get the same responses with and without handoffs', async (t) => {
  const kinds: readonly (readonly string[])[] = [
    ['X-Long: '.padEnd(6_000, 'x')],
    ['X-Long: '.padEnd(20_000, 'x')],
    Array.from({ length: 150 }, (_, at) => `X-${at}: ${at}`),
    ['X-Odd: \u00ff'],
    ['X-Empty:', 'X-Tab:\tx\t', 'X-Twice: 1', 'X-Twice: 2'],
    ['Content-Length: 0'],
    ['Connection: keep-alive, x'],
    ['X-Question: GET /exec?query=SELECT+1 HTTP/1.1'],
  ];
  for (const headers of kinds) {
    const one = await client(t, server);
    const request = Buffer.from(get('SELECT 1', { headers }).toString('utf8'), 'latin1');
    let first: string | null = null;
    for (let round = 0; round < 40; round += 1) {
      const answer = await one.exchange(request);
      first ??= answer;
      t.is(answer, first, headers[0]);
    }
  }
});
