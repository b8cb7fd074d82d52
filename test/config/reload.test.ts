/** Reloading the configuration of a running server. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import test, { type ExecutionContext } from 'ava';

import { ConfigError, KEYS, loadConfig } from '../../ts/config/index.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { pgClient } from '../pg-client.js';

const WAIT_MS = 60_000;

function folderWith(conf: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-reload-'));
  writeFileSync(join(folder, 'server.conf'), conf);
  return folder;
}

test('a reload applies only reloadable keys; an invalid file changes nothing', (t) => {
  const folder = folderWith('pg.user=one\nquery.timeout=1s\npg.net.connection.limit=5\n');
  const file = join(folder, 'server.conf');
  const config = loadConfig({ file, environment: { QDB_PG_NET_CONNECTION_LIMIT: '7' } });
  t.deepEqual(config.reload(), { applied: [], waiting: [] });

  writeFileSync(file, 'pg.user=two\nquery.timeout=2s\npg.net.connection.limit=9\n');
  t.deepEqual(config.reload(), { applied: ['pg.user'], waiting: ['query.timeout'] });
  t.is(config.get(KEYS.pgUser), 'two');
  t.is(config.get(KEYS.queryTimeout), 1_000);
  t.is(config.get(KEYS.pgConnections), 7, 'the environment still overrides the file');
  t.is(config.parameters().find(({ name }) => name === 'pg.user')?.value, 'two');

  writeFileSync(file, 'pg.user=three\nquery.timeout=soon\n');
  t.throws(() => config.reload(), { instanceOf: ConfigError, message: /query\.timeout/ });
  writeFileSync(file, 'pg.user=three\n');
  const refuse = (next: { get: typeof config.get }): void => {
    throw new Error(`no ${next.get(KEYS.pgUser)}`);
  };
  t.throws(() => config.reload(refuse), { message: 'no three' });
  t.is(config.get(KEYS.pgUser), 'two');

  writeFileSync(file, '');
  t.deepEqual(config.reload().applied, ['pg.user']);
  t.is(config.get(KEYS.pgUser), 'admin', 'a removed line restores the default');
  rmSync(folder, { recursive: true });
});

/** Requests a reload and waits until the log contains its result. */
async function reload(t: ExecutionContext, server: TestServer): Promise<string> {
  const before = server.log().length;
  server.process.kill('SIGHUP');
  const end = Date.now() + WAIT_MS;
  for (;;) {
    const line = /^.*"configuration_(?:reloaded|refused)".*$/m.exec(server.log().slice(before));
    if (line !== null) {
      return line[0];
    }
    if (Date.now() > end) {
      t.fail(server.log());
      return '';
    }
    await sleep(20);
  }
}

async function canLogIn(server: TestServer, user: string, password: string): Promise<boolean> {
  const client = pgClient(server.pg, { user, password });
  try {
    await client.connect();
    await client.query('select 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function exec(server: TestServer, text: string): Promise<string> {
  const answer = await fetch(`${server.url}/exec?query=${encodeURIComponent(text)}`);
  return await answer.text();
}

/** Returns the response status for a request whose head is `bytes` bytes long. */
async function statusOfHead(server: TestServer, bytes: number): Promise<number | undefined> {
  return await new Promise((resolve, reject) => {
    const headers = { 'X-Filler': 'x'.repeat(bytes) };
    const pending = request(`${server.url}/exec?query=select%201`, { headers, agent: false });
    pending.once('response', (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    pending.once('error', reject);
    pending.end();
  });
}

test('SIGHUP applies passwords and limits to new connections', async (t) => {
  const folder = folderWith('');
  const secret = join(folder, 'password');
  writeFileSync(secret, 'first\n');
  const head = `http.text.analysis.max.lines=3\npg.password.file=${secret}\n`;
  const file = join(folder, 'server.conf');
  writeFileSync(file, head);
  const server = await startTestServer({ args: ['--config', file] });
  t.teardown(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });
  t.true(await canLogIn(server, 'admin', 'first'));
  t.is(await statusOfHead(server, 8_000), 200);

  writeFileSync(secret, 'second\n');
  const more = 'http.request.header.buffer.size=4K\npg.readonly.user.enabled=true\n';
  writeFileSync(file, `${head}${more}query.timeout=5s\n`);
  t.regex(
    await reload(t, server),
    /"applied":\[[^\]]*"pg\.password"[^\]]*\],"waiting":\["query\.timeout"\]/,
  );
  t.false(await canLogIn(server, 'admin', 'first'));
  t.true(await canLogIn(server, 'admin', 'second'));
  t.true(await canLogIn(server, 'user', 'quest'));
  t.is(await statusOfHead(server, 8_000), 431);
  t.is(await statusOfHead(server, 1_000), 200);

  rmSync(secret);
  t.regex(await reload(t, server), /configuration_refused.*no such file/);
  t.true(await canLogIn(server, 'admin', 'second'), 'the old value remains in effect');
  t.false(server.log().includes('second'), 'no secret is in the log');

  const text = "(show parameters) where property_path = 'http.request.header.buffer.size'";
  t.true((await exec(server, text)).includes('"4K"'));

  const form = new FormData();
  form.append('data', new Blob(['x,y\n1,2\n3,4\n5,late\n']), 'x.csv');
  const answer = await fetch(`${server.url}/imp?fmt=json&name=lines&atomicity=skipCol`, {
    method: 'POST',
    body: form,
  });
  const { columns } = (await answer.json()) as { columns: { type: string }[] };
  t.deepEqual(
    columns.map(({ type }) => type),
    ['INT', 'INT'],
    'the fourth line is not sampled',
  );
});

test('reload_config() and reload_tls() can be called from SQL', async (t) => {
  const folder = folderWith('pg.readonly.user.enabled=true\n');
  const file = join(folder, 'server.conf');
  const server = await startTestServer({ args: ['--config', file] });
  t.teardown(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });
  const call = async (user: string, password: string, text: string): Promise<unknown[]> => {
    const client = pgClient(server.pg, { user, password });
    await client.connect();
    try {
      const rows: unknown[] = [];
      // Prepares once and executes twice, because the setting in effect at execution time applies.
      for (let round = 0; round < 2; round += 1) {
        const { rows: answered } = await client.query<object>({ name: 'reload', text });
        rows.push(...answered);
      }
      return rows;
    } finally {
      await client.end();
    }
  };
  writeFileSync(file, 'pg.readonly.user.enabled=true\npg.password=new\n');
  const done = { reload_config: true };
  t.deepEqual(await call('admin', 'quest', 'SELECT reload_config()'), [done, done]);
  t.true(await canLogIn(server, 'admin', 'new'));
  await t.throwsAsync(call('user', 'quest', 'select reload_config();'), { message: /read-only/ });
  t.regex(await exec(server, 'select RELOAD_TLS();'), /"name":"reload_tls".*\[\[true\]\]/);

  writeFileSync(file, 'pg.net.connection.limit=many\n');
  const refused = await exec(server, 'select reload_config()');
  t.regex(refused, /"query":"select reload_config\(\)".*"BOOLEAN".*\[\[false\]\]/);
  t.true(await canLogIn(server, 'admin', 'new'));
});

test('SHOW PARAMETERS marks the reloadable keys', async (t) => {
  const server = await startTestServer();
  try {
    const query = encodeURIComponent('SELECT property_path, reloadable FROM (SHOW PARAMETERS)');
    const response = await fetch(`${server.url}/exec?query=${query}`);
    const { dataset } = (await response.json()) as { dataset: [string, boolean][] };
    const keys = loadConfig({}).parameters();
    t.deepEqual(new Map(dataset), new Map(keys.map(({ name, reloadable }) => [name, reloadable])));
    t.true(new Map(dataset).get('pg.user'));
    t.false(new Map(dataset).get('query.timeout'));
  } finally {
    await server.stop();
  }
});
