/** `tidemark status` and `tidemark check`: states, figures, exit codes and JSON. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';

import type { ServerStatus } from '../../ts/server-status.js';
import { exitCode, startTestServer, type TestServer } from '../golden/server.js';
import { CertificateFolder } from '../tls/certificates.js';
import { emptyFolder, messageOf, run } from './run.js';

interface Report {
  readonly state: string;
  readonly pid?: number;
  readonly server?: { readonly version: string; readonly addresses: Record<string, string> };
  readonly figures?: ServerStatus;
}

async function report(root: string): Promise<Report & { readonly code: number | null }> {
  const { code, out } = await run('status', '--root', root, '--json');
  return { ...(JSON.parse(out) as Report), code };
}

async function exec(server: TestServer, query: string): Promise<string> {
  const answer = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  return await answer.text();
}

test('status reports the addresses and figures of a running server', async (t) => {
  const server = await startTestServer({ set: ['http.min.enabled=true', 'http.min.bind.to=0'] });
  const { root } = server;
  await exec(server, 'CREATE TABLE t AS (SELECT x FROM long_sequence(1000))');
  t.is(statSync(join(root, 'server.json')).mode & 0o777, 0o600);
  const { code, state, pid, server: shown, figures } = await report(root);
  t.is(code, 0);
  t.is(state, 'running');
  t.is(pid, server.process.pid);
  t.is(`http://${shown?.addresses['http'] ?? ''}`, server.url);
  t.is(shown?.addresses['pg'], server.pg);
  t.is(shown?.addresses['line'], server.line());
  t.is(figures?.tables, 1);
  t.is(figures?.rows, 1000);
  t.true((figures?.diskFreeBytes ?? 0) > 0 && (figures?.residentBytes ?? 0) > 0);
  t.deepEqual(figures?.damages, []);
  const { out } = await run('status', '--root', root);
  t.regex(out, new RegExp(`^the server is running \\[pid=${server.process.pid ?? 0}\\]\n`));
  t.regex(out, /^tables +1, 1000 rows, /m);
  await server.stop();
});

test('the status endpoint requires its token even if no login is configured', async (t) => {
  const server = await startTestServer();
  const url = `${server.url}/api/v1/status`;
  t.is((await fetch(url)).status, 401);
  for (const Authorization of ['Bearer x', 'Bearer ', 'Basic YWRtaW46cXVlc3Q=']) {
    t.is((await fetch(url, { headers: { Authorization } })).status, 401, Authorization);
  }
  await server.stop();
});

test('status works for a server with a login, TLS and a custom base path', async (t) => {
  const certificates = new CertificateFolder();
  t.teardown(() => {
    certificates.remove();
  });
  certificates.make('server');
  const server = await startTestServer({
    set: [
      ...['http.user=joe', 'http.password=secret', 'http.context.web.console=/db'],
      ...certificates.settings('server'),
    ],
  });
  const { code, state, figures } = await report(server.root);
  t.is(code, 0);
  t.is(state, 'running');
  t.is(figures?.tables, 0);
  await server.stop();
});

test('status reports only the addresses if HTTP is disabled', async (t) => {
  const server = await startTestServer({ set: ['http.enabled=false'] });
  const { code, state, server: shown, figures } = await report(server.root);
  t.is(code, 0);
  t.is(state, 'running');
  t.is(shown?.addresses['http'], 'off');
  t.is(figures, undefined);
  await server.stop();
});

test('status reports a stopped or killed server as not running', async (t) => {
  const root = emptyFolder();
  const missing = await report(join(root, 'nothing'));
  t.deepEqual([missing.code, missing.state], [3, 'stopped']);
  const server = await startTestServer({ root });
  await server.stop();
  t.false(existsSync(join(root, 'server.json')));
  t.is((await report(root)).code, 3);
  const second = await startTestServer({ root });
  second.process.kill('SIGKILL');
  await exitCode(second.process);
  t.true(existsSync(join(root, 'server.json')));
  const { code, out } = await run('status', '--root', root);
  t.is(code, 3);
  t.regex(out, /^no server is running\n/);
});

test('status reports an unresponsive server within seconds', async (t) => {
  const server = await startTestServer();
  server.process.kill('SIGSTOP');
  const { code, out } = await run('status', '--root', server.root);
  server.process.kill('SIGCONT');
  t.is(code, 4);
  t.regex(out, /^a process uses the root directory, but \S+ does not answer: no response within/);
  await server.stop();
});

test('damaged tables are reported by status and by check', async (t) => {
  const root = emptyFolder();
  const server = await startTestServer({ root });
  await exec(server, 'CREATE TABLE t AS (SELECT x FROM long_sequence(10000))');
  await server.stop();
  const intact = await run('check', '--root', root, '--json');
  t.is(intact.code, 0);
  t.deepEqual(JSON.parse(intact.out), { root, damages: [] });

  const folder = join(root, 'db', 't', '1');
  const segment = readdirSync(folder).find((name) => name.endsWith('.seg')) ?? '';
  const bytes = readFileSync(join(folder, segment));
  const middle = Math.floor(bytes.length / 2);
  bytes.fill(0x5a, middle, middle + 64);
  writeFileSync(join(folder, segment), bytes);
  const checked = await run('check', '--root', root);
  t.is(checked.code, 1);
  t.regex(checked.out, /^table 't': db\/t\/1\/.*\n1 problem\n$/);
  const json = await run('check', '--root', root, '--json');
  t.is(json.code, 1);
  const { damages } = JSON.parse(json.out) as { damages: { table: string }[] };
  t.deepEqual(
    damages.map(({ table }) => table),
    ['t'],
  );

  const second = await startTestServer({ root });
  t.regex(await exec(second, 'SELECT sum(x) FROM t'), /damaged/);
  const { code, state, figures } = await report(root);
  t.is(code, 1);
  t.is(state, 'damaged');
  t.is(figures?.damages[0]?.table, 't');
  await second.stop();
});

test('check refuses a directory without a database', async (t) => {
  const folder = emptyFolder();
  const ended = await run('check', '--root', folder);
  t.is(ended.code, 1);
  t.is(messageOf(ended), `tidemark: the root directory '${folder}' does not contain a database`);
});
