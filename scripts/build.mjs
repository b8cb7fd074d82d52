// Builds missing and outdated outputs: packages, addon, server, console.
//     node scripts/build.mjs [--skip-install]
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { buildAddon } from './build-addon.mjs';
import { answers, must, root, step } from './steps.mjs';

const build = join(root, 'build');

/** Runs `work` unless the inputs are unchanged since it last succeeded. */
async function whenChanged(name, inputs, outputs, work) {
  const hash = createHash('sha256');
  for (const file of inputs) {
    hash.update(file).update('\0').update(readFileSync(file)).update('\0');
  }
  const digest = hash.digest('hex');
  const stamp = join(build, `.${name}.stamp`);
  const isFresh =
    outputs.every((file) => existsSync(file)) &&
    existsSync(stamp) &&
    readFileSync(stamp, 'utf8') === digest;
  if (isFresh) {
    console.log(`   ${name} is up to date`);
    return;
  }
  await work();
  mkdirSync(build, { recursive: true });
  writeFileSync(stamp, digest);
}

function filesBelow(directory, skip = /node_modules|[\\/]build[\\/]/) {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !skip.test(file))
    .sort();
}

async function checkTools() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    console.error(`Node.js 20.19 or newer is needed, this is ${process.versions.node}`);
    process.exit(1);
  }
  for (const [tool, hint] of [
    ['cargo', 'install a Rust toolchain: https://rustup.rs'],
    ['cc', 'install a C compiler: the package build-essential, or clang'],
  ]) {
    if (!(await answers(tool))) {
      console.error(`${tool} is not there; ${hint}`);
      process.exit(1);
    }
  }
}

export async function buildAll({ install = true } = {}) {
  await step('tools', checkTools);
  if (install) {
    await step('packages', () =>
      whenChanged(
        'packages',
        [join(root, 'package.json'), join(root, 'package-lock.json')],
        [join(root, 'node_modules', '.package-lock.json')],
        () => must('npm', ['ci', '--no-audit', '--no-fund']),
      ),
    );
  }
  await step(
    'addon (the first build compiles DataFusion: about 15 minutes on 2 cores)',
    buildAddon,
  );
  await step('server', async () => {
    await must('npx', ['tsc', '-p', '.']);
    // Runs as a separate process, because the bundler package has only just been installed.
    await must(process.execPath, [join(root, 'scripts', 'bundle.mjs')]);
  });
  await step('console', () =>
    whenChanged(
      'console',
      [
        ...filesBelow(join(root, 'ts', 'console')),
        ...filesBelow(join(root, 'ts', 'sql')),
        join(root, 'package-lock.json'),
      ],
      [join(build, 'console', 'index.html'), join(build, 'packages-console.json')],
      () => must('npm', ['run', 'build', '--workspace', '@tidemark/console']),
    ),
  );
}

if (process.argv[1] === import.meta.filename) {
  await buildAll({ install: !process.argv.includes('--skip-install') });
}
