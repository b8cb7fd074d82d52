// Builds missing and outdated outputs: packages, addon, server, console.
//     node scripts/build.mjs [--skip-install] [--from-source]
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { addonFile, buildAddon } from './build-addon.mjs';
import { addonSources, filesOf } from './sources.mjs';
import { must, root, step } from './steps.mjs';

const build = join(root, 'build');
export const FROM_SOURCE = '--from-source';

/** Runs `work` unless the inputs are unchanged since it last succeeded, or always with `force`. */
async function whenChanged(name, inputs, outputs, work, force = false) {
  const hash = createHash('sha256');
  for (const file of inputs) {
    hash.update(file).update('\0').update(readFileSync(file)).update('\0');
  }
  const digest = hash.digest('hex');
  const stamp = join(build, `.${name}.stamp`);
  const isFresh =
    !force &&
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
  return filesOf(directory)
    .filter((file) => !skip.test(file))
    .sort();
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    console.error(`Node.js 20.19 or newer is required, this is ${process.versions.node}`);
    process.exit(1);
  }
}

/** Builds everything. With `fromSource`, the engine is compiled even if a binary is published. */
export async function buildAll({ install = true, fromSource = false } = {}) {
  checkNode();
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
  await step('engine', () =>
    whenChanged(
      'engine',
      addonSources(),
      [addonFile],
      () => buildAddon({ fromSource }),
      // The existing addon may be a downloaded one. Cargo itself skips unchanged sources.
      fromSource,
    ),
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
  await buildAll({
    install: !process.argv.includes('--skip-install'),
    fromSource: process.argv.includes(FROM_SOURCE),
  });
}
