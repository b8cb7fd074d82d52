/** Before authentication, known and unknown user names get the same responses. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { clientMessage, RawClient, startup } from '../pgwire/raw-client.js';
import { ADMIN, exec, run } from './harness.js';

interface Shown {
  readonly salt: string;
  readonly iterations: number;
}

/** Returns the salt and iteration count from the server's first SCRAM message. */
async function shown(server: TestServer, user: string): Promise<Shown> {
  const client = await RawClient.open(Number(server.pg.split(':')[1]));
  client.send(startup(user));
  await client.next();
  const first = Buffer.from('n,,n=,r=abcdefghijklmnop');
  client.send(clientMessage('p', 'SCRAM-SHA-256', first.length, first));
  const answer = (await client.next())?.body.toString('latin1') ?? '';
  client.close();
  const [, salt = '', iterations = ''] = /,s=([^,]*),i=(\d+)/.exec(answer) ?? [];
  return { salt, iterations: Number(iterations) };
}

async function folder(t: ExecutionContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'tidemark-names-'));
  t.teardown(() => rm(path, { recursive: true, force: true }));
  return path;
}

const NAMES = ['admin', 'ann', 'bob', 'nobody', 'noone', 'x'];

test('salts and iteration counts do not reveal whether a user exists', async (t) => {
  const root = await folder(t);
  const start = (rounds: number): Promise<TestServer> =>
    startTestServer({
      root,
      set: ['acl.enabled=true', `acl.password.hash.iteration.count=${rounds}`],
    });
  const all = (server: TestServer): Promise<Shown[]> =>
    Promise.all(NAMES.map((name) => shown(server, name)));

  let server = await start(5_000);
  await run(
    server,
    "CREATE USER ann WITH PASSWORD 'a'",
    "CREATE USER bob WITH PASSWORD 'b'",
    'GRANT HTTP TO ann',
  );
  const before = await all(server);
  t.deepEqual([...new Set(before.map(({ iterations }) => iterations))], [5_000]);
  t.is(new Set(before.map(({ salt }) => salt)).size, NAMES.length);
  await server.stop();

  server = await start(6_000);
  t.deepEqual(
    await all(server),
    before,
    'the responses are unchanged after a restart with a different iteration count',
  );
  t.is((await exec(server, 'ann:a', 'SELECT 1')).status, 200);
  t.is((await exec(server, ADMIN, 'SELECT 1')).status, 200);

  await run(server, "ALTER USER ann WITH PASSWORD 'c'", "CREATE USER eve WITH PASSWORD 'e'");
  const after = await all(server);
  const salts = (list: readonly Shown[]): string[] => list.map(({ salt }) => salt);
  t.deepEqual(salts(after), salts(before), 'a new password keeps the salt');
  t.is(after[1]?.iterations, 6_000);
  // Two of the three users have the new iteration count. Unknown names may imitate any of the
  // three.
  const rounds = await Promise.all(
    Array.from({ length: 60 }, async (_, index) => (await shown(server, `no${index}`)).iterations),
  );
  const fresh = rounds.filter((iterations) => iterations === 6_000).length;
  t.true(fresh > 20 && fresh < 55, `${fresh} of 60`);
  t.is(rounds.filter((iterations) => iterations === 5_000).length, 60 - fresh);
  await run(server, 'DROP USER eve');
  t.deepEqual((await shown(server, 'eve')).salt, (await shown(server, 'eve')).salt);
  await server.stop();
});

test('a configuration reload does not reveal the user set in server.conf', async (t) => {
  const file = join(await folder(t), 'server.conf');
  await writeFile(file, 'pg.password=one\n');
  const server = await startTestServer({ args: ['--config', file] });
  t.teardown(() => server.stop());
  const before = [await shown(server, 'admin'), await shown(server, 'nobody')];
  await writeFile(file, 'pg.password=two\n');
  const reload = `${server.url}/exec?query=${encodeURIComponent('SELECT reload_config()')}`;
  t.true((await (await fetch(reload)).text()).includes('true'));
  t.deepEqual([await shown(server, 'admin'), await shown(server, 'nobody')], before);
});
