/**
 * The standalone archive, the Debian package and the container image: built from the npm packages
 * and used as docs/guides/deploy.md describes.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import test from 'ava';

import { has, run, skip } from '../clients/tools.js';
import { differing, examplesIn, runExamples, scriptOf } from '../documentation/examples.js';
import { until } from '../until.js';
import { commandsOf, patternOf, repository } from './deploy-page.js';
import { containerCommand, imageOf, quoted, stagesOf, stepsOf } from './dockerfile.js';
import { canSandbox, runInSandbox } from './sandbox.js';

const READY = /^tidemark ready http=(\S+) /m;
/** Runs a command under a user ID that has no account. */
const UNKNOWN_USER = ['setpriv', '--reuid=54321', '--regid=54321', '--clear-groups'];
const EXIT_CONFIG = 78;
/** Start of the line that precedes each example's output. */
const MARKER = '--- example ';
const dist = join(repository, 'scripts', 'dist');
const out = await mkdtemp(join(tmpdir(), 'tidemark-release-'));

test.before(async (t) => {
  t.timeout(10 * 60_000);
  await script('archive', out);
});

test.after.always(() => rm(out, { recursive: true, force: true }));

async function script(name: string, ...args: readonly string[]): Promise<void> {
  await run(process.execPath, [join(repository, 'scripts', `${name}.mjs`), ...args]);
}

async function artefact(ending: string): Promise<string> {
  const name = (await readdir(out)).find((one) => one.endsWith(ending));
  return join(out, name ?? `no ${ending}`);
}

async function folderOf(t: { teardown(work: () => unknown): void }): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-distribution-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

test.serial('the archive runs in any folder, as any user, with an empty environment', async (t) => {
  t.timeout(5 * 60_000);
  const folder = await folderOf(t);
  await chmod(folder, 0o755);
  for (const ending of ['.tar.gz', '.tar.gz.sha256']) {
    await run('cp', [await artefact(ending), folder]);
  }
  const [page] = commandsOf('archive');
  const { stdout } = await run('sh', ['-e', '-c', page?.code ?? ''], { cwd: folder });
  t.regex(stdout, patternOf(page?.output ?? ''));

  const data = join(folder, 'data');
  await mkdir(data);
  await chmod(data, 0o777);
  await symlink(join(folder, 'tidemark', 'tidemark'), join(folder, 'linked'));
  const keys = ['http.bind.to', 'http.min.bind.to', 'pg.net.bind.to', 'line.tcp.net.bind.to'];
  const ports = keys.flatMap((key) => ['--set', `${key}=127.0.0.1:0`]);
  const user = process.getuid?.() === 0 ? UNKNOWN_USER : [];
  if (user.length > 0) {
    const homeless = await t.throwsAsync(run('env', ['-i', ...user, join(folder, 'linked')]));
    t.regex(homeless.message, /no home directory: set the data directory with --root DIR/);
  }
  const command = [...user, join(folder, 'linked'), 'serve', '--demo', '--root', data, ...ports];
  const child = spawn('env', ['-i', ...command], {
    cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await until(() => Promise.resolve(READY.test(output)), 'the archived server starts');
  const url = `http://${READY.exec(output)?.[1] ?? ''}`;
  const answer = await (await fetch(`${url}/exec?query=SELECT+1+AS+one`)).json();
  t.like(answer, { dataset: [[1]] });
  const examples = await examplesIn('get-started/first-hour.md');
  await t.notThrowsAsync(runExamples(examples, { url, pg: '' }, folder), 'the first hour works');
  t.regex(await (await fetch(`${url}/`)).text(), /<title>Tidemark<\/title>/);
  t.regex(await (await fetch(`${url}/llms.txt`)).text(), /docs\/time-series\.md/);
  child.kill('SIGTERM');
  t.deepEqual(await once(child, 'exit'), [0, null]);
});

test.serial('identical contents produce identical archives', async (t) => {
  t.timeout(5 * 60_000);
  const again = await folderOf(t);
  await script('archive', again);
  const name = '.tar.gz.sha256';
  const file = (await readdir(again)).find((one) => one.endsWith(name)) ?? '';
  t.is(await readFile(join(again, file), 'utf8'), await readFile(await artefact(name), 'utf8'));
});

test.serial('lintian reports no problems in the Debian package', async (t) => {
  t.timeout(5 * 60_000);
  if (!(await has('lintian', '--version'))) {
    skip(t, 'lintian is not installed; scripts/setup-tests.mjs installs it');
    return;
  }
  // Small programs replace the two large ones, which lintian would read for minutes. The release
  // workflow checks the real package.
  const folder = await folderOf(t);
  const archive = await artefact('.tar.gz');
  await run('tar', ['-xzf', archive, '-C', folder]);
  const [name = ''] = await readdir(folder);
  const files = await readdir(join(folder, name), { recursive: true });
  for (const file of files.filter((one) => one === join('bin', 'node') || one.endsWith('.node'))) {
    await copyFile('/bin/true', join(folder, name, file));
  }
  const small = join(folder, basename(archive));
  await run('tar', ['-czf', small, '-C', folder, name]);
  await script('deb', folder, small);
  const deb = (await readdir(folder)).find((one) => one.endsWith('.deb')) ?? '';
  const options = ['--allow-root', '--fail-on', 'error,warning', join(folder, deb)];
  await t.notThrowsAsync(run('lintian', options));
});

test.serial('the Debian package runs as a service on a booted system', async (t) => {
  t.timeout(10 * 60_000);
  if (!(await canSandbox('systemd-nspawn'))) {
    skip(t, 'this machine cannot boot a container');
    return;
  }
  const commands = commandsOf('debian');
  await script('deb', out, await artefact('.tar.gz'));
  t.true(commands.length >= 5, 'the page has the commands');
  const folder = await folderOf(t);
  const examples = await examplesIn('get-started/first-hour.md');
  const hour = scriptOf(examples, MARKER);
  await writeFile(join(folder, 'check.sh'), serviceChecks(commands, hour));
  const deb = await artefact('.deb');
  const output = await runInSandbox(
    folder,
    `
      overlay system
      cp "$deb" "$base/check.sh" "$base/system/"
      cat > "$base/system/etc/systemd/system/check.service" <<END
[Unit]
After=basic.target
[Service]
Type=oneshot
StandardOutput=file:/check.log
StandardError=file:/trace.log
ExecStart=sh -ex /check.sh
ExecStopPost=systemctl exit 0
END
      systemd-nspawn --quiet --register=no --keep-unit --private-network --boot \\
        --directory="$base/system" systemd.unit=check.service > "$base/boot.log" 2>&1 || true
      tail -n 20 "$base/system/trace.log"
      cat "$base/system/check.log"
    `,
    { deb },
  );
  t.regex(output, /all checks passed\n$/, output);
  t.deepEqual(differing(examples, MARKER, output), [], 'the first hour works');
  for (const { output: expected } of commands) {
    t.regex(output, patternOf(expected?.trimEnd() ?? ''));
  }
});

/**
 * Returns a script that runs the page's commands and checks effects that the page does not show.
 */
function serviceChecks(commands: readonly { readonly code: string }[], hour: string): string {
  const [install, first, login, second, purge] = commands.map(({ code }) => code);
  const ready =
    'for i in $(seq 200); do curl -sf localhost:9003/ready > ready && break; sleep .1; done';
  return `
    cd /
    ${install}
    ${ready}
    ${first}
    test "$(stat -c '%U:%G %a' /etc/tidemark/server.conf)" = 'root:tidemark 640'
    test "$(stat -c '%U:%G %a' /var/lib/tidemark)" = 'tidemark:tidemark 750'
    systemd-analyze verify --man=no tidemark.service
    systemd-analyze security --no-pager --threshold=15 tidemark.service > /dev/null
    pid=$(systemctl show --property MainPID --value tidemark)
    test "$(stat -c %U /proc/$pid)" = tidemark
    curl -sf -G localhost:9000/exec --data-urlencode 'query=create table kept (a int)'
    curl -sf -G localhost:9000/exec --data-urlencode 'query=insert into kept values (7)'
    kill -KILL $pid
    sleep 3
    ${ready}
    curl -sf 'localhost:9000/exec?query=select+a+from+kept&nm=true' | grep -q '\\[\\[7\\]\\]'
    ${login}
    ${ready}
    ${second}
    test "$(curl -s -o /dev/null -w '%{http_code}' 'localhost:9000/exec?query=select+1')" = 401
    systemctl reload tidemark
    dpkg --install tidemark_*.deb
    grep -q '^acl.enabled=true' /etc/tidemark/server.conf
    ${ready}
    systemctl is-active tidemark
    systemctl stop tidemark
    test "$(systemctl show --property Result --value tidemark)" = success
    install -d -o 54321 -g 54321 /tmp/hour
    ${UNKNOWN_USER.join(' ')} tidemark serve --demo --root /tmp/hour > /dev/null 2>&1 &
    server=$!
    ${ready}
    ${hour}
    echo '${MARKER}'
    kill $server
    wait $server
    systemctl start tidemark
    dpkg --remove tidemark
    ! systemctl is-active tidemark
    test -e /etc/tidemark/server.conf
    dpkg --install tidemark_*.deb
    ${ready}
    ${purge}
    ! systemctl is-active tidemark
    test ! -e /etc/tidemark/server.conf
    getent passwd tidemark
    rm -r /var/lib/tidemark
    dpkg --install tidemark_*.deb
    systemctl stop tidemark
    rm -rf /var/lib/tidemark/*
    dpkg --purge tidemark
    test ! -e /var/lib/tidemark
    ! getent passwd tidemark
    echo all checks passed
  `;
}

test.serial('the image starts via its entry point and reports its health', async (t) => {
  t.timeout(10 * 60_000);
  if (!(await canSandbox('chroot', 'curl'))) {
    skip(t, 'this machine cannot create overlay file systems');
    return;
  }
  const stages = stagesOf(await readFile(join(dist, 'Dockerfile'), 'utf8'));
  const instructions = stages.get('image') ?? [];
  const image = imageOf(instructions);
  t.deepEqual(image.ports, ['9000', '8812', '9009', '9003']);
  t.deepEqual(image.volumes, [image.workdir]);
  const password = ['QDB_ACL_ADMIN_PASSWORD_FILE=/run/secrets/admin-password'];
  const within = (command: readonly string[], environment: readonly string[] = []): string =>
    containerCommand('image', image, command, environment);
  const metrics = [...password, 'QDB_METRICS_ENABLED=true'];
  const output = await runInSandbox(
    await folderOf(t),
    `
      ln -s "$archives" "$base/archive"
      ${stepsOf('unpack', stages.get('unpack') ?? [])}
      ${stepsOf('image', instructions)}
      mkdir -p "$base/image/run/secrets" "$base/image/sys/fs/cgroup"
      echo 'a good one' > "$base/image/run/secrets/admin-password"
      echo 1073741824 > "$base/image/sys/fs/cgroup/memory.max"
      code=0
      ${within(image.command)} 2>&1 || code=$?
      echo "exit code without a password: $code"
      ! ${within(image.health)}
      ${within(image.command, metrics)} > "$base/log" 2>&1 &
      for i in $(seq 600); do
        if ${within(image.health)}; then break; fi
        sleep 0.1
      done
      cat "$base/log"
      curl -sf -u 'admin:a good one' 'http://127.0.0.1:9000/exec?query=select+3&nm=true'
      curl -sf -u 'admin:a good one' http://127.0.0.1:9003/metrics | grep memory_limit
      chroot "$base/image" ps -o uid= -C node
      kill -TERM $!
      wait $! && echo stopped
      ls "$base/image${image.workdir}"
    `,
    { archives: out, TARGETARCH: process.arch === 'x64' ? 'amd64' : process.arch },
  );
  t.regex(output, /acl\.admin\.password/, output);
  t.regex(output, new RegExp(`^exit code without a password: ${EXIT_CONFIG}$`, 'm'));
  t.regex(output, /^tidemark ready http=0\.0\.0\.0:9000 pg=0\.0\.0\.0:8812$/m);
  t.regex(output, /\{"dataset":\[\[3\]\],"count":1\}/, output);
  t.regex(output, /^tidemark_query_memory_limit_bytes 536870912$/m, 'half of the cgroup');
  t.regex(output, new RegExp(`^ *${quoted(image.user).slice(1, 6)}$`, 'm'));
  t.regex(output, /^stopped$/m);
  t.regex(output, /^db$/m);
});
