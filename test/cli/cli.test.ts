/** The command line: output, startup, refusals and exit. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { emptyFolder, isOneLine, run, serve } from './run.js';

test('version and help are printed', async (t) => {
  for (const word of ['version', '--version']) {
    const { code, out } = await run(word);
    t.is(code, 0);
    t.regex(out, /^tidemark \d+\.\d+\.\d+\n$/);
  }
  for (const word of ['help', '--help']) {
    const { code, out } = await run(word);
    t.is(code, 0);
    t.regex(out, /^usage: tidemark/);
  }
});

test('incorrect usage exits with code 64 and prints one line', async (t) => {
  for (const args of [['dance'], ['serve', 'twice'], ['--nonsense']]) {
    const { code, err } = await run(...args);
    t.is(code, 64);
    t.true(isOneLine(err), err);
  }
});

test('a server responds once ready and exits with code 0 on a signal', async (t) => {
  const server = await startTestServer();
  const response = await fetch(`${server.url}/exec?query=select%201`);
  t.is(response.status, 200);
  const started = Date.now();
  t.is(await server.stop(), 0);
  t.true(Date.now() - started < 5000);
});

test('huge pages are disabled because zeroing them delays commits', async (t) => {
  const server = await startTestServer();
  t.teardown(() => server.stop());
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8');
  t.regex(status, /^THP_enabled:\s+0$/m);
});

test('demo data is created once and kept', async (t) => {
  const root = emptyFolder();
  for (const round of [1, 2]) {
    const server = await startTestServer({ root, args: ['--demo'] });
    const query = encodeURIComponent('select count() from trades');
    const response = await fetch(`${server.url}/exec?query=${query}`);
    const body = (await response.json()) as { dataset: number[][] };
    t.deepEqual(body.dataset, [[100_000]], `round ${round}`);
    await server.stop();
  }
});

test('a corrupt manifest is refused with a one-line message', async (t) => {
  const root = emptyFolder();
  const server = await startTestServer({ root });
  const create = encodeURIComponent('create table t (x int)');
  await fetch(`${server.url}/exec?query=${create}`);
  await server.stop();
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' });
  for (const name of files.filter((file) => /manifest/i.test(file))) {
    writeFileSync(join(root, name), Buffer.alloc(4096, 0x5a));
  }
  const { code, err } = await serve(root);
  t.not(code, 0);
  t.true(isOneLine(err), err);
});

test('a non-local bind address requires a login', async (t) => {
  const wide = [
    ['http.bind.to=0.0.0.0:0'],
    ['http.bind.to=[::]:0'],
    ['http.bind.to=192.0.2.1:0'],
    ['http.bind.to=0.0.0.0:0', 'http.user=x'],
    ['pg.net.bind.to=0.0.0.0:0'],
    ['pg.net.bind.to=0.0.0.0:0', 'http.user=x', 'http.password=y'],
    ['pg.net.bind.to=0.0.0.0:0', 'pg.password=z', 'pg.readonly.user.enabled=true'],
  ];
  for (const settings of wide) {
    const root = join(emptyFolder(), 'root');
    const { code, err } = await serve(root, ...settings.flatMap((item) => ['--set', item]));
    t.is(code, 78, settings.join());
    t.true(isOneLine(err), err);
    t.false(existsSync(root), 'no directory is created');
  }
});

test('a non-local address is allowed with a login or an explicit override', async (t) => {
  const open = [
    ['http.bind.to=0.0.0.0:0', 'http.user=x', 'http.password=y'],
    ['http.bind.to=0.0.0.0:0', 'security.insecure.public=true'],
    ['pg.net.bind.to=0.0.0.0:0', 'pg.password=z'],
  ];
  for (const set of open) {
    const server = await startTestServer({ set });
    t.is(await server.stop(), 0);
  }
});

test('an invalid configuration exits with code 78 and prints one line', async (t) => {
  const { code, err } = await serve(emptyFolder(), '--set', 'query.timeout=soon');
  t.is(code, 78);
  t.true(isOneLine(err), err);
  t.regex(err, /query\.timeout \(--set\)/);
  const missing = await serve(emptyFolder(), '--config', '/does/not/exist.conf');
  t.is(missing.code, 78);
});

test('server.conf in the root directory is read', async (t) => {
  const root = emptyFolder();
  mkdirSync(join(root, 'conf'));
  writeFileSync(join(root, 'conf', 'server.conf'), 'http.user=joe\nhttp.password=secret\n');
  const server = await startTestServer({ root });
  t.is((await fetch(`${server.url}/exec?query=select%201`)).status, 401);
  const headers = { Authorization: `Basic ${btoa('joe:secret')}` };
  t.is((await fetch(`${server.url}/exec?query=select%201`, { headers })).status, 200);
  await server.stop();
});

test('check reports no problems in an intact root directory', async (t) => {
  const root = emptyFolder();
  const server = await startTestServer({ root, args: ['--demo'] });
  await server.stop();
  const { code, out } = await run('check', '--root', root);
  t.is(code, 0);
  t.is(out, 'no problems\n');
});

test('the minimal HTTP port serves health and metrics', async (t) => {
  const blocker = createServer();
  const port = await new Promise<number>((resolve) => {
    blocker.listen(0, '127.0.0.1', () => {
      const address = blocker.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
      blocker.close();
    });
  });
  const server = await startTestServer({
    set: ['http.min.enabled=true', `http.min.bind.to=127.0.0.1:${port}`, 'metrics.enabled=true'],
  });
  const text = async (path: string): Promise<string> =>
    await (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  t.is(await text('/anything'), 'Status: Healthy');
  t.regex(await text('/metrics'), /^# TYPE tidemark_/m);
  await server.stop();
});
