/** Telegraf with the configuration of `docs/connect/telegraf.md`. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';

import { ADMIN, exec, rows, run as runAll, startAccessServer } from '../access/harness.js';
import { freePort } from '../free-port.js';
import type { TestServer } from '../golden/server.js';
import { until } from '../until.js';
import { Daemon } from './daemon.js';
import { adapt, blocksOf } from './pages.js';
import { has, run, skip } from './tools.js';

const PAGE = 'telegraf';
let server: TestServer;
let token = '';
let folder = '';

test.before(async () => {
  server = await startAccessServer();
  folder = await mkdtemp(join(tmpdir(), 'tidemark-telegraf-'));
  const [account = ''] = await blocksOf(PAGE, 'sql');
  token = await create(server, account);
});
test.after.always(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Creates the account of the page; returns its token. */
async function create(target: TestServer, account: string): Promise<string> {
  const statements = account.split(/;\s*$/m).filter((statement) => statement.trim() !== '');
  await runAll(target, ...statements.slice(0, -1));
  const { dataset, error } = await exec(target, ADMIN, statements.at(-1) ?? '');
  const created = dataset?.[0]?.map(String).find((cell) => cell.startsWith('tdm_'));
  if (created === undefined) {
    throw new Error(error ?? 'no token');
  }
  return created;
}

async function isMissing(t: ExecutionContext): Promise<boolean> {
  t.timeout(120_000);
  const isInstalled = await has('telegraf', 'version');
  if (!isInstalled) {
    skip(t, 'telegraf is not installed: node scripts/setup-tests.mjs');
  }
  return !isInstalled;
}

/** Writes configuration files; returns the arguments that name them. */
async function filesOf(...texts: readonly string[]): Promise<string[]> {
  const own = await mkdtemp(join(folder, 'case-'));
  const files = texts.map((text, index) => [join(own, `${index}.conf`), text] as const);
  for (const [file, text] of files) {
    await writeFile(file, text);
  }
  return files.flatMap(([file]) => ['--config', file]);
}

/** The page's configuration, for this server. */
async function configuration(target: TestServer, secret = token): Promise<string> {
  const [toml = ''] = await blocksOf(PAGE, 'toml');
  return adapt(toml, { 'http://127.0.0.1:9000': target.url, TOKEN: secret });
}

/** Collects metrics from lines in a file. */
async function linesInput(name: string, ...lines: readonly string[]): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, `${lines.join('\n')}\n`);
  return `[[inputs.file]]\n  files = ["${file}"]\n  data_format = "influx"\n`;
}

test.serial('the configuration of the page stores the metrics of this machine', async (t) => {
  if (await isMissing(t)) {
    return;
  }
  const files = await filesOf(await configuration(server));
  await run('telegraf', [...files, '--once']);
  const [, query = ''] = await blocksOf(PAGE, 'sql');
  const [[, host, used] = []] = await rows(server, ADMIN, query.replace(/;\s*$/, ''));
  t.truthy(host);
  t.true(Number(used) > 0 && Number(used) < 100, String(used));
  for (const table of ['disk', 'system']) {
    t.true((await rows(server, ADMIN, `SELECT * FROM ${table}`)).length > 0, table);
  }
});

test.serial('the older output works with a password', async (t) => {
  if (await isMissing(t)) {
    return;
  }
  const [, older = ''] = await blocksOf(PAGE, 'toml');
  const output = adapt(older, { 'http://127.0.0.1:9000': server.url });
  const input = await linesInput('older', 'older,host=a value=1.5 1767261600000000000');
  await run('telegraf', [...(await filesOf(output, input)), '--once']);
  t.deepEqual(await rows(server, ADMIN, 'SELECT host, value, timestamp FROM older'), [
    ['a', 1.5, '2026-01-01T10:00:00.000000Z'],
  ]);
});

test.serial('each type of Telegraf becomes the column type of the page', async (t) => {
  if (await isMissing(t)) {
    return;
  }
  const fields = String.raw`f=1.5,i=42i,u=7u,b=true,s="a \"b\""`;
  const line = String.raw`kinds,host=web\ 1,path=C:\tmp ${fields} 1767261600000000000`;
  const input = await linesInput('kinds', line);
  await run('telegraf', [...(await filesOf(await configuration(server), input)), '--once']);
  const query = 'SELECT host, path, f, i, u, b, s FROM kinds';
  t.deepEqual(await rows(server, ADMIN, query), [
    ['web 1', String.raw`C:\tmp`, 1.5, 42, 7, true, 'a "b"'],
  ]);
  const types = await rows(server, ADMIN, `SELECT "column", type FROM table_columns('kinds')`);
  t.deepEqual(Object.fromEntries(types), {
    host: 'SYMBOL',
    path: 'SYMBOL',
    f: 'DOUBLE',
    i: 'LONG',
    u: 'LONG',
    b: 'BOOLEAN',
    s: 'VARCHAR',
    timestamp: 'TIMESTAMP',
  });
});

test.serial('metrics that Telegraf collects while the server is down arrive later', async (t) => {
  if (await isMissing(t)) {
    return;
  }
  const root = await mkdtemp(join(folder, 'root-'));
  const bind = `http.bind.to=127.0.0.1:${await freePort()}`;
  const first = await startAccessServer(root, bind);
  const [account = ''] = await blocksOf(PAGE, 'sql');
  const secret = await create(first, account);
  const often = adapt(await configuration(first, secret), { '"10s"': '"100ms"' });
  const ticks = '[[inputs.mock]]\n  metric_name = "ticks"\n  [[inputs.mock.step]]\n';
  const files = await filesOf(often, `${ticks}    name = "n"\n    start = 0.0\n    step = 1.0\n`);
  const telegraf = new Daemon(t, 'telegraf', files);
  const last = async (target: TestServer): Promise<number> => {
    const { dataset } = await exec(target, ADMIN, 'SELECT max(n) FROM ticks');
    return Number(dataset?.[0]?.[0] ?? -1);
  };
  await until(async () => (await last(first)) > 3, 'rows before the restart');
  const stored = await last(first);
  await first.stop();
  await telegraf.prints(/E! .*connection refused/);
  const second = await startAccessServer(root, bind);
  t.teardown(() => second.stop());
  await until(async () => (await last(second)) > stored + 10, 'rows after the restart');
  const [counts = []] = await rows(second, ADMIN, 'SELECT count_distinct(n), max(n) FROM ticks');
  t.is(Number(counts[0]), Number(counts[1]) + 1, 'no metric is lost');
});

/** Sends lines with the page's configuration; returns what Telegraf logs. */
async function sendLines(more: string, ...lines: readonly string[]): Promise<string> {
  const input = await linesInput('lines', ...lines);
  const files = await filesOf(`${await configuration(server)}${more}`, input);
  const { stderr } = await run('telegraf', [...files, '--once']);
  return stderr;
}

test.serial(
  'a conflicting value makes Telegraf drop its batch, unless it is converted',
  async (t) => {
    if (await isMissing(t)) {
      return;
    }
    const [, , converter = ''] = await blocksOf(PAGE, 'toml');
    await sendLines('', 'level value=1.5');
    const lines = ['level value=2.5', 'level value="high"', 'other value=1'];
    const log = await sendLines('', ...lines);
    t.regex(log, /will be dropped.*column 'value' of type DOUBLE does not accept string 'high'/);
    t.deepEqual(await rows(server, ADMIN, 'SELECT value FROM level'), [[1.5]]);
    t.is((await exec(server, ADMIN, 'SELECT value FROM other')).status, 400);
    t.notRegex(await sendLines(converter, ...lines), /dropped/);
    t.deepEqual(await rows(server, ADMIN, 'SELECT value FROM level'), [[1.5], [2.5]]);
    t.deepEqual(await rows(server, ADMIN, 'SELECT value FROM other'), [[1]]);
  },
);

test.serial('with the keys of the page, a metric that is sent again is stored once', async (t) => {
  if (await isMissing(t)) {
    return;
  }
  const [, , keys = ''] = await blocksOf(PAGE, 'sql');
  await sendLines('', 'mem,host=a used_percent=1 1767261600000000000');
  await runAll(server, keys.replace(/;\s*$/, ''));
  for (const used of [2, 3]) {
    await sendLines('', `mem,host=a used_percent=${used} 1767261660000000000`);
  }
  const query = "SELECT used_percent FROM mem WHERE host = 'a'";
  t.deepEqual(await rows(server, ADMIN, query), [[1], [3]]);
});
