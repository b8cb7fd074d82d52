/** `tidemark init`: the configuration, the administrator's password and the machine's checks. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';

import { skip } from '../clients/tools.js';
import { commandFile, startTestServer, type TestServer } from '../golden/server.js';
import { emptyFolder, messageOf, run, runUnder } from './run.js';

async function statusWith(server: TestServer, user: string, password: string): Promise<number> {
  const headers = { Authorization: `Basic ${btoa(`${user}:${password}`)}` };
  return (await fetch(`${server.url}/exec?query=select%201`, { headers })).status;
}

test('the configuration written by init starts a server that accepts the password', async (t) => {
  const root = join(emptyFolder(), 'root');
  const { code, out } = await run('init', '--root', root, '--set', 'query.timeout=7s');
  t.is(code, 0);
  const password = /^password +(\S{24})$/m.exec(out)?.[1] ?? '';
  const file = join(root, 'conf', 'admin.password');
  t.is(readFileSync(file, 'utf8'), `${password}\n`);
  for (const path of [file, join(root, 'conf', 'server.conf')]) {
    t.is(statSync(path).mode & 0o777, 0o600, path);
  }
  t.is(statSync(root).mode & 0o777, 0o700);
  const server = await startTestServer({ root });
  t.is(await statusWith(server, 'admin', password), 200);
  t.is(await statusWith(server, 'admin', 'quest'), 401);
  t.is((await fetch(`${server.url}/exec?query=select%201`)).status, 401);
  t.false(server.log().includes(password));
  const headers = { Authorization: `Basic ${btoa(`admin:${password}`)}` };
  const query = "(show parameters) where property_path = 'query.timeout'";
  const shown = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`, { headers });
  t.regex(await shown.text(), /"7s","conf"/);
  await server.stop();
});

test('an existing configuration is not overwritten', async (t) => {
  const root = emptyFolder();
  mkdirSync(join(root, 'conf'));
  const file = join(root, 'conf', 'server.conf');
  writeFileSync(file, 'pg.enabled=false\n');
  const ended = await run('init', '--root', root);
  t.is(ended.code, 1);
  t.is(messageOf(ended), `tidemark: the configuration file '${file}' already exists`);
  t.is(readFileSync(file, 'utf8'), 'pg.enabled=false\n');
  t.false(existsSync(join(root, 'conf', 'admin.password')));
});

test('init refuses the same invalid settings as the server and writes nothing', async (t) => {
  for (const [setting, message] of [
    ['query.timeout=soon', /query\.timeout \(--set\): expected a duration/],
    ['http.bnid.to=9000', /http\.bnid\.to/],
    ['nothing', /--set expects key=value/],
  ] as const) {
    const root = join(emptyFolder(), 'root');
    const ended = await run('init', '--root', root, '--set', setting);
    t.is(ended.code, 78, setting);
    t.regex(messageOf(ended), message);
    t.false(existsSync(root));
  }
});

test('the password is read from a file or standard input', async (t) => {
  const folder = emptyFolder();
  const file = join(folder, 'password');
  writeFileSync(file, 'from a file\n');
  const first = join(folder, 'first');
  const fromFile = await run('init', '--root', first, '--password-file', file, '--json');
  t.is(fromFile.code, 0);
  const result = JSON.parse(fromFile.out) as Record<string, unknown>;
  t.is(result['password'], undefined);
  t.is(result['administrator'], 'admin');
  t.is(readFileSync(join(first, 'conf', 'admin.password'), 'utf8'), 'from a file\n');

  const second = join(folder, 'second');
  const args = [commandFile(), 'init', '--root', second, '--password-file', '-'];
  const piped = spawnSync(process.execPath, args, { input: 'piped\n', encoding: 'utf8' });
  t.is(piped.status, 0, piped.stderr);
  t.is(readFileSync(join(second, 'conf', 'admin.password'), 'utf8'), 'piped\n');

  for (const text of ['', 'two\nlines', ' space', 'quest']) {
    writeFileSync(file, text);
    const ended = await run('init', '--root', join(folder, 'x'), '--password-file', file);
    t.is(ended.code, 64, JSON.stringify(text));
    t.regex(messageOf(ended), /^tidemark: --password-file: /);
  }
  const missing = await run('init', '--root', join(folder, 'x'), '--password-file', '/no');
  t.is(missing.code, 64);
  t.false(existsSync(join(folder, 'x')));
});

test('on a terminal, init prompts for the password without echoing it', (t) => {
  const root = join(emptyFolder(), 'root');
  const program = [
    'import os, pty, sys, time',
    'pid, terminal = pty.fork()',
    'if pid == 0: os.execv(sys.argv[1], sys.argv[1:])',
    'seen = b""',
    'def until(text):',
    '    global seen',
    '    while text not in seen: seen += os.read(terminal, 1000)',
    'until(b"password: "); time.sleep(0.2); os.write(terminal, b"typed one\\r")',
    'until(b"repeat the password: "); time.sleep(0.2); os.write(terminal, b"typed one\\r")',
    'try:',
    '    while True: seen += os.read(terminal, 1000)',
    'except OSError: pass',
    'print(seen.decode()); sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))',
  ].join('\n');
  const args = ['-c', program, process.execPath, commandFile(), 'init', '--root', root, '--prompt'];
  const { status, stdout, stderr } = spawnSync('python3', args, { encoding: 'utf8' });
  t.is(status, 0, stdout + stderr);
  t.false(stdout.includes('typed one'), stdout);
  t.is(readFileSync(join(root, 'conf', 'admin.password'), 'utf8'), 'typed one\n');
});

test('without a terminal, --prompt is refused', async (t) => {
  const ended = await run('init', '--root', join(emptyFolder(), 'root'), '--prompt');
  t.is(ended.code, 64);
  t.regex(messageOf(ended), /--prompt requires a terminal/);
});

test('init creates no administrator if access control is off', async (t) => {
  const root = emptyFolder();
  const { code, out } = await run('init', '--root', root, '--set', 'acl.enabled=false');
  t.is(code, 0);
  t.regex(out, /^administrator +none: acl\.enabled=false$/m);
  t.false(existsSync(join(root, 'conf', 'admin.password')));
  const server = await startTestServer({ root });
  t.is((await fetch(`${server.url}/exec?query=select%201`)).status, 200);
  await server.stop();
});

interface Checked {
  readonly checks: readonly { level: string; check: string; text: string }[];
}

test('init reports a nearly full disk, a temporary file system and low limits', async (t) => {
  const disk = emptyFolder();
  // 5 % of the disk must be free; the file leaves 2 %.
  const script =
    `mount -t tmpfs -o size=50m tmpfs ${disk} && ` +
    `dd if=/dev/zero of=${disk}/x bs=1M count=49 2>/dev/null && ulimit -n 4096 && exec "$@"`;
  const wrapper = ['unshare', process.getuid?.() === 0 ? '-m' : '-Urm', 'sh', '-c', script, 'sh'];
  const root = join(disk, 'root');
  const { code, out, err } = await runUnder(wrapper, 'init', '--root', root, '--json');
  if (/unshare:|mount:/.test(err)) {
    skip(t, 'a file system cannot be mounted here');
    return;
  }
  const { checks } = JSON.parse(out) as Checked;
  t.is(code, 1);
  t.deepEqual(
    checks.filter(({ text }) => !text.startsWith('vm.max_map_count')),
    [
      {
        level: 'error',
        check: 'disk',
        text: '1 MiB of 50 MiB free: below 3 MiB, at which writes are rejected',
      },
      {
        level: 'warning',
        check: 'file system',
        text: 'tmpfs: its content is lost when the machine restarts',
      },
      {
        level: 'warning',
        check: 'limits',
        text: 'open files limit is too low [current=4096, recommended=1048576]',
      },
    ],
  );
});
