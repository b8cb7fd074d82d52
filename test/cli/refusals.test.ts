/** Commands that cannot start report the cause and the remedy in one line. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

import test from 'ava';

import { MIN_NODE, nodeIsSupported } from '../../ts/node-version.js';
import { skip, TOOLS } from '../clients/tools.js';
import { commandFile, startTestServer } from '../golden/server.js';
import { emptyFolder, FREE_PORTS, isOneLine, messageOf, run, runUnder, serve } from './run.js';

test('the minimum Node.js version of the startup check matches package.json', (t) => {
  const path = new URL('../../../package.json', import.meta.url);
  const { engines } = JSON.parse(readFileSync(path, 'utf8')) as { engines: { node: string } };
  t.is(engines.node, `>=${MIN_NODE}`);
  for (const version of ['12.22.12', '18.20.8', '20.9.0', '20.18.3']) {
    t.false(nodeIsSupported(version), version);
  }
  for (const version of ['20.19.0', '22.0.0', '24.1.0', process.versions.node]) {
    t.true(nodeIsSupported(version), version);
  }
});

for (const [name, version] of [
  ['node-12', '12.22.12'],
  ['node-18', '18.20.8'],
] as const) {
  test(`Node.js ${version} is refused with a one-line message`, (t) => {
    const node = join(TOOLS, 'nodes', 'node_modules', name, 'bin', 'node');
    if (!existsSync(node)) {
      skip(t, 'not installed: node scripts/setup-tests.mjs');
      return;
    }
    const { status, stderr } = spawnSync(node, [commandFile(), 'version'], { encoding: 'utf8' });
    t.is(status, 1);
    const expected = `Node.js ${version} is not supported, ${MIN_NODE} or later is required`;
    t.is(stderr, `tidemark: ${expected}\n`);
  });
}

test('the error for a wrong value names the key, the source and the expected form', async (t) => {
  const root = emptyFolder();
  mkdirSync(join(root, 'conf'));
  const file = join(root, 'conf', 'server.conf');
  for (const [line, message] of [
    ['query.timeout=soon', "expected a duration such as 500ms, 60s or 5m, found 'soon'"],
    ['log.format=xml', "expected one of json, text, journald, found 'xml'"],
    ['log.file.size=big', "expected a size such as 512, 64K or 2M, found 'big'"],
    ['log.file.count=0', "expected at least 1, found '0'"],
    ['pg.enabled=yes', "expected true or false, found 'yes'"],
  ] as const) {
    writeFileSync(file, `${line}\n`);
    const ended = await serve(root, '--config', file);
    t.is(ended.code, 78, line);
    t.is(messageOf(ended), `tidemark: ${line.split('=')[0] ?? ''} (${file}): ${message}`);
  }
});

test('the error for a root in use names the process that holds it', async (t) => {
  const server = await startTestServer();
  const { root } = server;
  const holder = `[pid=${server.process.pid ?? 0}]`;
  const expected = `tidemark: the root directory '${root}' is in use by another process ${holder}`;
  for (const ended of [await serve(root), await run('check', '--root', root)]) {
    t.is(ended.code, 1);
    t.is(messageOf(ended), expected);
  }
  await server.stop();
});

test('the error for a port in use names the address and the key', async (t) => {
  const blocker = createServer();
  const port = await new Promise<number>((resolve) => {
    blocker.listen(0, '127.0.0.1', () => {
      const address = blocker.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
  t.teardown(() => blocker.close());
  for (const key of [
    'http.bind.to',
    'http.min.bind.to',
    'pg.net.bind.to',
    'line.tcp.net.bind.to',
  ]) {
    const setting = `${key}=127.0.0.1:${port}`;
    const ended = await serve(emptyFolder(), '--set', 'http.min.enabled=true', '--set', setting);
    t.is(ended.code, 1, key);
    t.is(
      messageOf(ended),
      `tidemark: cannot listen on 127.0.0.1:${port}: the port is already in use, change ${key}`,
    );
  }
});

test('the error for an address that this machine does not have names the key', async (t) => {
  const setting = ['--set', 'http.bind.to=192.0.2.7:9000', '--set', 'http.user=x'];
  const ended = await serve(emptyFolder(), ...setting, '--set', 'http.password=y');
  t.is(ended.code, 1);
  t.is(
    messageOf(ended),
    'tidemark: cannot listen on 192.0.2.7:9000: this machine does not have the address, ' +
      'change http.bind.to',
  );
});

/** Returns a command that runs another one on a disk; `$disk` is its directory. */
function onDisk(disk: string, mount: string): string[] {
  const script = `disk=${disk}; ${mount} && exec "$@"`;
  return ['unshare', process.getuid?.() === 0 ? '-m' : '-Urm', 'sh', '-c', script, 'sh'];
}

const READ_ONLY = 'mount --bind $disk $disk && mount -o remount,bind,ro $disk';
const FULL =
  'mount -t tmpfs -o size=64k tmpfs $disk && ' +
  '{ dd if=/dev/zero of=$disk/x bs=4k 2>/dev/null; true; }';

test('a root on a read-only or full disk is refused with a one-line message', async (t) => {
  for (const [mount, reason] of [
    [READ_ONLY, /read-only file system/i],
    [FULL, /no space left|disk (is )?full/i],
  ] as const) {
    const disk = emptyFolder();
    for (const command of ['serve', 'init']) {
      const root = join(disk, 'root');
      const settings = command === 'serve' ? FREE_PORTS : [];
      const ended = await runUnder(onDisk(disk, mount), command, '--root', root, ...settings);
      if (/unshare:|mount:/.test(ended.err)) {
        skip(t, 'a file system cannot be mounted here');
        return;
      }
      t.is(ended.code, 1, `${command}: ${ended.out} ${ended.err}`);
      t.true(isOneLine(ended.err), ended.err);
      t.regex(messageOf(ended), reason);
      t.true(messageOf(ended).includes(root));
    }
  }
});

test('a root whose parent is a file is refused with a one-line message', async (t) => {
  const folder = emptyFolder();
  writeFileSync(join(folder, 'file'), '');
  const root = join(folder, 'file', 'root');
  const ended = await serve(root);
  t.is(ended.code, 1);
  t.is(messageOf(ended), `tidemark: cannot use the root directory '${root}': not a directory`);
});

test('a log file that cannot be opened is refused with a one-line message', async (t) => {
  const ended = await serve(emptyFolder(), '--set', 'log.file=/proc/server.log');
  t.is(ended.code, 78);
  t.regex(messageOf(ended), /^tidemark: log\.file: cannot open '\/proc\/server\.log': /);
});
