// Installs what the tests need beside the two commands' own requirements. What a machine cannot
// have is named, and the tests that need it say that they were skipped.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { answers, run, toolsDirectory } from './steps.mjs';

const PYTHON_PACKAGES = ['psycopg[binary]', 'numpy', 'pyarrow', 'duckdb'];
const ACTIONLINT = 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.8';

function skipped(what, why) {
  console.log(`   SKIPPED ${what}: ${why}`);
}

async function aptPackages(packages) {
  const missing = [];
  for (const [name, command] of packages) {
    if (!(await answers(command))) {
      missing.push(name);
    }
  }
  if (missing.length === 0) {
    return;
  }
  if (process.getuid?.() !== 0 || !(await answers('apt-get'))) {
    skipped(missing.join(', '), 'not installed, and this is not root on a Debian machine');
    return;
  }
  await run('apt-get', ['update', '-qq'], { quiet: true });
  const install = ['install', '-y', '-qq', '--no-install-recommends', ...missing];
  const { code, output } = await run('apt-get', install, {
    quiet: true,
    env: { DEBIAN_FRONTEND: 'noninteractive' },
  });
  if (code !== 0) {
    skipped(missing.join(', '), output.trim().split('\n').at(-1) ?? 'apt-get failed');
  }
}

async function pythonPackages() {
  const venv = join(toolsDirectory, 'venv');
  const python = join(venv, 'bin', 'python3');
  if (!(await answers('python3'))) {
    skipped('Python drivers', 'python3 is not there');
    return;
  }
  if (!existsSync(python) && (await run('python3', ['-m', 'venv', venv])).code !== 0) {
    skipped('Python drivers', 'python3 -m venv failed');
    return;
  }
  const probe = ['-c', 'import psycopg, numpy, pyarrow, duckdb'];
  if ((await run(python, probe, { quiet: true })).code === 0) {
    return;
  }
  const { code, output } = await run(
    python,
    ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', ...PYTHON_PACKAGES],
    { quiet: true },
  );
  if (code !== 0) {
    skipped('Python drivers', output.trim().split('\n').at(-1) ?? 'pip failed');
  }
}

async function actionlint() {
  if (await answers('actionlint')) {
    return;
  }
  if (!(await answers('go', ['version']))) {
    skipped('actionlint', 'go is not there');
    return;
  }
  const { code, output } = await run('go', ['install', ACTIONLINT], {
    quiet: true,
    env: { GOBIN: join(toolsDirectory, 'bin') },
  });
  if (code !== 0) {
    skipped('actionlint', output.trim().split('\n').at(-1) ?? 'go install failed');
  }
}

export async function setupTests() {
  mkdirSync(join(toolsDirectory, 'bin'), { recursive: true });
  await aptPackages([
    ['chromium', 'chromium'],
    ['curl', 'curl'],
    ['postgresql-client', 'psql'],
    ['strace', 'strace'],
    ['faketime', 'faketime'],
  ]);
  await pythonPackages();
  await actionlint();
}

if (process.argv[1] === import.meta.filename) {
  await setupTests();
}
