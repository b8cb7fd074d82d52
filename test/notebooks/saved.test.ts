/**
 * Notebooks saved on the server: versions, sharing, links, permissions, limits, concurrent saves.
 */
import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';

const LOGINS = ['acl.enabled=true', 'acl.admin.password=secret'];
const USERS = [
  ...['ann', 'ben', 'cy'].flatMap((name) => [
    `CREATE USER ${name} WITH PASSWORD 'p'`,
    `GRANT HTTP TO ${name}`,
  ]),
  'CREATE GROUP quants',
  'ADD USER cy TO quants',
];

type Body = Record<string, unknown> & { id?: string; error?: string; version?: number };

interface Answer {
  readonly status: number;
  readonly body: Body;
}

async function request(
  { url }: TestServer,
  user: string,
  method: string,
  path: string,
  body?: string | Buffer,
): Promise<Answer> {
  const login = user === 'admin' ? 'admin:secret' : `${user}:p`;
  const response = await fetch(`${url}/api/v1/${path}`, {
    method,
    headers: user === '' ? {} : { Authorization: `Basic ${btoa(login)}` },
    ...(body === undefined ? {} : { body: new Uint8Array(Buffer.from(body)) }),
  });
  const text = await response.text();
  try {
    return { status: response.status, body: JSON.parse(text) as Body };
  } catch {
    return { status: response.status, body: { error: text } };
  }
}

type Send = (user: string, method: string, path: string, body?: string | Buffer) => Promise<Answer>;

async function usersOn(
  t: ExecutionContext,
  set: readonly string[] = [],
  root?: string,
): Promise<{ server: TestServer; send: Send }> {
  const options = { set: [...LOGINS, ...set], ...(root === undefined ? {} : { root }) };
  const server = await startTestServer(options);
  t.teardown(() => server.stop());
  const login = { Authorization: `Basic ${btoa('admin:secret')}` };
  for (const statement of root === undefined ? USERS : []) {
    const query = encodeURIComponent(statement);
    const response = await fetch(`${server.url}/exec?query=${query}`, { headers: login });
    t.is(response.status, 200, `${statement}: ${await response.text()}`);
  }
  return { server, send: (...args) => request(server, ...args) };
}

async function created(send: Send, user: string, title: string, text: string): Promise<string> {
  const { body } = await send(user, 'POST', `notebooks?title=${encodeURIComponent(title)}`, text);
  return String(body.id);
}

test('a notebook is saved with its versions and survives a restart', async (t) => {
  const { server, send } = await usersOn(t);
  const id = await created(send, 'ann', 'Prices today', 'one');
  t.is((await send('ann', 'GET', `notebook?id=${id}`)).body['text'], 'one');
  const path = `notebook?id=${id}&title=Prices`;
  t.like(await send('ann', 'PUT', `${path}&version=1`, 'twö'), {
    status: 200,
    body: { version: 2, title: 'Prices', changedBy: 'ann', access: 'own', mine: true },
  });
  const same = await send('ann', 'PUT', `${path}&version=2`, 'twö');
  t.is(same.body.version, 2, 'saving unchanged text does not create a version');
  t.is((await send('ann', 'GET', `notebook?id=${id}&version=1`)).body['text'], 'one');
  server.process.kill('SIGKILL');
  await new Promise((resolve) => server.process.once('exit', resolve));
  const { send: later } = await usersOn(t, [], server.root);
  t.like((await later('ann', 'GET', `notebook?id=${id}`)).body, { text: 'twö', version: 2 });
  const versions = (await later('ann', 'GET', `notebook/versions?id=${id}`)).body;
  t.like(versions, { 0: { version: 1, title: 'Prices today' }, 1: { version: 2 } } as never);
  t.is((await later('ann', 'DELETE', `notebook?id=${id}`)).status, 200);
  t.is((await later('ann', 'GET', `notebook?id=${id}`)).status, 404);
  t.deepEqual((await later('ann', 'GET', 'notebooks')).body, [] as never);
});

test('a conflicting save is refused and names the user who saved first', async (t) => {
  const { send } = await usersOn(t);
  const id = await created(send, 'ann', 'Shared', 'base');
  const shares = JSON.stringify({ shares: [{ name: 'ben', access: 'write' }], link: false });
  t.is((await send('ann', 'PUT', `notebook/access?id=${id}`, shares)).status, 200);
  const path = `notebook?id=${id}&title=Shared&version=1`;
  const both = await Promise.all([
    send('ann', 'PUT', path, 'of ann'),
    send('ben', 'PUT', path, 'of ben'),
  ]);
  t.deepEqual(both.map(({ status }) => status).sort(), [200, 409]);
  const isFirst = both[0].status === 200;
  const [winner, loser] = isFirst ? (['ann', 'ben'] as const) : (['ben', 'ann'] as const);
  const refused = both.find(({ status }) => status === 409);
  t.like(refused?.body['now'], { version: 2, changedBy: winner });
  t.regex(refused?.body.error ?? '', new RegExp(`version 2 was saved by '${winner}'`));
  t.is((await send(loser, 'GET', `notebook?id=${id}`)).body['text'], `of ${winner}`);
  const again = await send(winner, 'PUT', path, `of ${winner}`);
  t.like(
    again,
    { status: 200, body: { version: 2 } },
    'the save is repeated after a lost response',
  );
});

test('exactly one of a hundred concurrent saves of a version succeeds', async (t) => {
  const { send } = await usersOn(t);
  const id = await created(send, 'ann', 'Race', 'base');
  const path = `notebook?id=${id}&title=Race&version=1`;
  const texts = Array.from({ length: 100 }, (_, index) => `text ${index}`);
  const answers = await Promise.all(texts.map((text) => send('ann', 'PUT', path, text)));
  const won = answers.flatMap(({ status }, index) => (status === 200 ? [texts[index]] : []));
  t.is(won.length, 1);
  t.is((await send('ann', 'GET', `notebook?id=${id}`)).body['text'], won[0]);
});

test('users without access learn nothing about a notebook; readers cannot write', async (t) => {
  const { server, send } = await usersOn(t);
  const id = await created(send, 'ann', 'Mine', 'secret');
  const put = `notebook?id=${id}&title=Mine&version=1`;
  const calls: [string, string, string?][] = [
    ['GET', `notebook?id=${id}`],
    ['GET', `notebook?id=${id}&version=1`],
    ['GET', `notebook/versions?id=${id}`],
    ['PUT', put, 'x'],
    ['PUT', `notebook/access?id=${id}`, '{"shares":[],"link":true}'],
    ['DELETE', `notebook?id=${id}`],
  ];
  const statuses = async (user: string): Promise<number[]> => {
    const all: number[] = [];
    for (const call of calls) {
      all.push((await send(user, ...call)).status);
    }
    return all;
  };
  t.deepEqual(await statuses('ben'), [404, 404, 404, 404, 404, 404]);
  t.deepEqual(await statuses(''), [401, 401, 401, 401, 401, 401]);
  const read = { shares: [{ name: 'quants', access: 'read' }], link: false };
  await send('ann', 'PUT', `notebook/access?id=${id}`, JSON.stringify(read));
  t.deepEqual(await statuses('cy'), [200, 403, 403, 403, 403, 403], 'the group grants access');
  t.like(await send('cy', 'GET', 'notebooks'), { body: { 0: { access: 'read', mine: false } } });
  t.deepEqual(await statuses('ben'), [404, 404, 404, 404, 404, 404]);
  const login = { Authorization: `Basic ${btoa('admin:secret')}` };
  const out = encodeURIComponent('REMOVE USER cy FROM quants');
  await fetch(`${server.url}/exec?query=${out}`, { headers: login });
  t.deepEqual(await statuses('cy'), [404, 404, 404, 404, 404, 404], 'the user left the group');
  t.like(await send('admin', 'GET', `notebook?id=${id}`), { body: { access: 'own', mine: false } });
});

test('a user re-created under an old name does not inherit notebooks', async (t) => {
  const { server, send } = await usersOn(t);
  const run = async (query: string): Promise<number> => {
    const login = { Authorization: `Basic ${btoa('admin:secret')}` };
    const address = `${server.url}/exec?query=${encodeURIComponent(query)}`;
    return (await fetch(address, { headers: login })).status;
  };
  const id = await created(send, 'ann', 'Mine', 'secret');
  const shares = { shares: [{ name: 'ben', access: 'write' }], link: false };
  await send('ann', 'PUT', `notebook/access?id=${id}`, JSON.stringify(shares));
  t.is((await send('ben', 'GET', `notebook?id=${id}`)).status, 200);
  for (const name of ['ann', 'ben']) {
    t.is(await run(`DROP USER ${name}`), 200);
    t.is(await run(`CREATE USER ${name} WITH PASSWORD 'p'`), 200);
    t.is(await run(`GRANT HTTP TO ${name}`), 200);
    t.is((await send(name, 'GET', `notebook?id=${id}`)).status, 404);
  }
});

test('a shared link lets logged-in users read a notebook until it is revoked', async (t) => {
  const { send } = await usersOn(t);
  const id = await created(send, 'ann', 'Linked', 'text');
  const access = `notebook/access?id=${id}`;
  const made = await send('ann', 'PUT', access, '{"shares":[],"link":true}');
  const link = String(made.body['link']);
  t.regex(link, /^[\w-]{32}$/);
  t.like(await send('ben', 'POST', 'notebook/linked', link), {
    status: 200,
    body: { text: 'text', access: 'read', owner: 'ann' },
  });
  t.false('link' in (await send('ben', 'POST', 'notebook/linked', link)).body);
  t.is((await send('', 'POST', 'notebook/linked', link)).status, 401);
  t.is((await send('ben', 'GET', `notebook?id=${id}`)).status, 404, 'access requires the link');
  await send('ann', 'PUT', access, '{"shares":[],"link":false}');
  t.is((await send('ben', 'POST', 'notebook/linked', link)).status, 404);
  const other = await send('ann', 'PUT', access, '{"shares":[],"link":true}');
  t.not(other.body['link'], link);
});

test('sharing cannot be used to probe user names without LIST USERS', async (t) => {
  const { send } = await usersOn(t);
  const id = await created(send, 'ann', 'Mine', 'x');
  const share = async (user: string, name: string): Promise<Answer> => {
    const body = JSON.stringify({ shares: [{ name, access: 'read' }], link: false });
    return await send(user, 'PUT', `notebook/access?id=${id}`, body);
  };
  const [known, unknown] = [await share('ann', 'ben'), await share('ann', 'nobody')];
  const [a, b] = [known, unknown].map(({ body }) => JSON.stringify(body));
  t.is(a?.replaceAll('ben', 'nobody'), b);
  t.like(await share('admin', 'nobody'), { status: 400 });
});

test('the size, count, versions and total bytes of notebooks are limited', async (t) => {
  const { send } = await usersOn(t, [
    'notebooks.max.size=64K',
    'notebooks.max.count=3',
    'notebooks.max.versions=3',
    'notebooks.max.user.size=100K',
    'notebooks.max.total.size=130K',
  ]);
  const noise = (length: number): string =>
    Buffer.from(Array.from({ length }, () => Math.floor(Math.random() * 256))).toString('base64');
  t.is((await send('ann', 'POST', 'notebooks?title=a', 'x'.repeat(65_537))).status, 413);
  const id = await created(send, 'ann', 'a', noise(40_000));
  const full = await send('ann', 'POST', 'notebooks?title=b', noise(48_000));
  t.is(full.status, 201);
  t.like(await send('ann', 'POST', 'notebooks?title=c', noise(20_000)), { status: 507 });
  t.like(await send('ben', 'POST', 'notebooks?title=c', noise(45_000)), { status: 507 });
  await send('ann', 'DELETE', `notebook?id=${full.body.id ?? ''}`);
  t.is((await send('ben', 'POST', 'notebooks?title=c', noise(45_000))).status, 201);
  for (const version of [1, 2, 3, 4]) {
    const saved = await send(
      'ann',
      'PUT',
      `notebook?id=${id}&title=a&version=${version}`,
      `${version}`,
    );
    t.is(saved.status, 200);
  }
  const versions = (await send('ann', 'GET', `notebook/versions?id=${id}`)).body;
  t.like(versions, { 0: { version: 3 }, 1: { version: 4 }, 2: { version: 5 }, length: 3 } as never);
  t.is((await send('ann', 'GET', `notebook?id=${id}&version=1`)).status, 404);
  t.is((await send('ann', 'POST', 'notebooks?title=x', 'x')).status, 201);
  t.is((await send('ann', 'POST', 'notebooks?title=y', 'y')).status, 201);
  t.like(await send('ann', 'POST', 'notebooks?title=z', 'z'), { status: 507 });
});

test('invalid titles, contents and shares are refused with a reason', async (t) => {
  const { send } = await usersOn(t);
  const id = await created(send, 'ann', 'a', 'x');
  const title = (text: string): string => `notebooks?title=${encodeURIComponent(text)}`;
  const cases: [string, string, string | Buffer | undefined, RegExp][] = [
    ['POST', 'notebooks', 'x', /missing title/],
    ['POST', title('  '), 'x', /invalid title/],
    ['POST', title('a\nb'), 'x', /invalid title/],
    ['POST', title('a\u202Eb'), 'x', /invalid title/],
    ['POST', title('a'.repeat(81)), 'x', /1 to 80 characters/],
    ['POST', 'notebooks?title=%FF', 'x', /missing title/],
    ['POST', title('a'), Buffer.from([0xff, 0xfe, 0x41]), /not valid UTF-8/],
    ['PUT', `notebook?id=${id}&title=a`, 'x', /missing version/],
    ['PUT', `notebook?id=${id}&title=a&version=-1`, 'x', /invalid version '-1'/],
    ['GET', 'notebook', undefined, /missing id/],
    ['PUT', `notebook/access?id=${id}`, '{"shares":{}}', /expected \{"shares"/],
    ['PUT', `notebook/access?id=${id}`, '{"shares":[null],"link":true}', /expected \{"shares"/],
    ['PUT', `notebook/access?id=${id}`, 'x', /expected \{"shares"/],
    [
      'PUT',
      `notebook/access?id=${id}`,
      JSON.stringify({
        shares: Array.from({ length: 101 }, (_, index) => ({ name: `u${index}`, access: 'read' })),
        link: false,
      }),
      /too many shares \[limit=100\]/,
    ],
  ];
  for (const [method, path, body, expected] of cases) {
    const { status, body: answer } = await send('ann', method, path, body);
    t.is(status, 400, path);
    t.regex(answer.error ?? '', expected);
  }
  t.is((await send('ann', 'GET', 'notebook?id=constructor')).status, 404);
  const odd = '\u0000<script>\u202E\ud83d\ude00\r\n'.repeat(100);
  const kept = await created(send, 'ann', 'odd', odd);
  t.is((await send('ann', 'GET', `notebook?id=${kept}`)).body['text'], odd);
});

test('a server without logins, or with notebooks disabled, does not save notebooks', async (t) => {
  for (const set of [[], [...LOGINS, 'notebooks.enabled=false']]) {
    const server = await startTestServer({ set });
    t.teardown(() => server.stop());
    const { status } = await request(server, 'admin', 'GET', 'notebooks');
    t.is(status, 404);
    const { config } = (await (await fetch(`${server.url}/settings`)).json()) as { config: object };
    t.false('notebooks.kept' in config);
  }
  const reading = await startTestServer({ set: [...LOGINS, 'http.security.readonly=true'] });
  t.teardown(() => reading.stop());
  t.is((await request(reading, 'admin', 'POST', 'notebooks?title=a', 'x')).status, 403);
  t.is((await request(reading, 'admin', 'GET', 'notebooks')).status, 200);
});
