/**
 * Root directories for tests: copies of this machine's files that a test can change (overlay file
 * systems), each in its own namespaces.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
const TIMEOUT_MS = 5 * 60_000;

/** The shell function `overlay NAME` mounts a copy of this machine's files at `$base/NAME`. */
const PREAMBLE = `
set -eu
overlay() {
  mkdir -p "$base/.upper/$1" "$base/.work/$1" "$base/$1"
  mount -t overlay overlay "$base/$1" \\
    -o "lowerdir=/,upperdir=$base/.upper/$1,workdir=$base/.work/$1"
  rm -f "$base/$1/usr/sbin/policy-rc.d"
}
devices() {
  mount -t proc proc "$base/$1/proc"
  mount --rbind /dev "$base/$1/dev"
}
ip link set lo up
`;

/** Whether this machine can create the namespaces and overlays, and has these commands. */
export async function canSandbox(...commands: readonly string[]): Promise<boolean> {
  const wanted = ['unshare', 'ip', ...commands].map((name) => `command -v ${name}`).join(' && ');
  const base = await mkdtemp(join(tmpdir(), 'tidemark-sandbox-'));
  try {
    await run('sh', ['-c', wanted]);
    await runInSandbox(base, 'overlay probe');
    return true;
  } catch {
    return false;
  } finally {
    await rm(base, { recursive: true, force: true });
  }
}

/**
 * Runs a shell script in new namespaces and returns its output. When the script ends, all processes
 * in its namespaces end too.
 */
export async function runInSandbox(
  base: string,
  script: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<string> {
  await mkdir(base, { recursive: true });
  const file = join(base, 'script.sh');
  await writeFile(file, PREAMBLE + script);
  const namespaces = ['--mount', '--net', '--pid', '--fork', '--kill-child'];
  const { stdout } = await run('unshare', [...namespaces, 'sh', file], {
    env: { ...process.env, ...variables, base },
    maxBuffer: MAX_OUTPUT_BYTES,
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  return stdout;
}
