// Provides the addon for this machine: the published one if it was built from the same sources,
// otherwise one that cargo compiles. Compiling uses the same workspace build as cargo's tests, so
// DataFusion is compiled only once. With `--target`, it cross-compiles the addon for a release. The
// loader and the declarations are committed files (`generate-loader.mjs`).
//     node scripts/build-addon.mjs [--from-source]
//     node scripts/build-addon.mjs --target TRIPLE [CARGO_ARGUMENT …]
import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { compileProgress } from './compile-progress.mjs';
import { sourcesDigest } from './sources.mjs';
import { answers, childEnvironment, must, root, run, targetDirectory } from './steps.mjs';

/** Name of the library file on each platform. */
const LIBRARIES = {
  linux: 'libtidemark_native.so',
  darwin: 'libtidemark_native.dylib',
  win32: 'tidemark_native.dll',
};
/** Programs that are required for compiling. */
const COMPILERS = [
  ['cargo', 'install a Rust toolchain: https://rustup.rs'],
  ['cc', 'install a C compiler: the package build-essential, or clang'],
];
/** Linux addons with glibc load on systems with this version or newer. Zig links against it. */
const GLIBC = '2.17';
const BUILD = ['build', '--locked', '--release', '-p', 'tidemark-native'];
/** npm must report quickly that a package is not published, or that there is no network. */
const QUICK = ['--fetch-retries=0', '--fetch-timeout=10000'];

/** Returns the platform suffix that napi's loader expects. */
function platformName() {
  const { platform, arch } = process;
  if (platform !== 'linux') {
    return platform === 'win32' ? `${platform}-${arch}-msvc` : `${platform}-${arch}`;
  }
  const isGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined;
  return `${platform}-${arch}-${isGlibc ? 'gnu' : 'musl'}`;
}

const addonOf = (platform) => join(root, 'native', `tidemark.${platform}.node`);

export const addonFile = addonOf(platformName());

/** Moves a copy of the addon into place. A running server keeps the old file mapped. */
function place(file, addon = addonFile) {
  copyFileSync(file, `${addon}.new`);
  renameSync(`${addon}.new`, addon);
}

/** Provides the addon. With `fromSource`, the addon is compiled even if one is published. */
export async function buildAddon({ fromSource = false } = {}) {
  if (fromSource || !(await usePublished())) {
    await compile();
  }
}

/**
 * Installs the published addon of this version. If none was built from the sources of this clone,
 * prints the reason and returns false.
 */
async function usePublished() {
  const template = join(root, 'native', 'npm', platformName(), 'package.json');
  // Until the project has an address and publishes, a stranger may register its names on npm.
  const { repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  if (repository === undefined || !existsSync(template)) {
    return false;
  }
  const { name, version, main } = JSON.parse(readFileSync(template, 'utf8'));
  const wanted = `${name}@${version}`;
  const view = await npm('view', wanted, 'tidemark.sources', '--json');
  if (view === null) {
    console.log(`   ${wanted} is not available: the engine is compiled`);
    return false;
  }
  if (view.trim() !== JSON.stringify(sourcesDigest())) {
    console.log(`   ${wanted} was built from other sources: the engine is compiled`);
    return false;
  }
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-addon-'));
  try {
    const file = await npm('pack', wanted, '--silent', '--pack-destination', folder);
    const extract = ['-xzf', file?.trim() ?? '', '-C', folder, `package/${main}`];
    const isExtracted =
      file !== null && (await run('tar', extract, { cwd: folder, quiet: true })).code === 0;
    if (!isExtracted) {
      console.log(`   ${wanted} could not be downloaded: the engine is compiled`);
      return false;
    }
    place(join(folder, 'package', main));
    console.log(`   ${wanted} is used; npm start -- --from-source compiles the engine`);
    return true;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns what an npm command prints to standard output; null if it fails. */
function npm(...args) {
  return new Promise((resolve) => {
    const child = spawn('npm', [...args, ...QUICK], {
      cwd: root,
      env: childEnvironment(),
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.on('error', () => resolve(null));
    child.on('close', (code) => resolve(code === 0 ? output : null));
  });
}

/** Compiles the addon and shows the progress. Ends the script if a compiler is missing or fails. */
async function compile() {
  for (const [tool, hint] of COMPILERS) {
    if (!(await answers(tool))) {
      console.error(`${tool} is required to compile the engine; ${hint}`);
      process.exit(1);
    }
  }
  const progress = compileProgress();
  const command = [...BUILD, '--quiet', '--message-format=json-render-diagnostics'];
  const cargo = spawn('cargo', command, {
    cwd: root,
    env: childEnvironment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  createInterface({ input: cargo.stdout }).on('line', (line) => progress.read(line));
  const code = await new Promise((resolve) => cargo.on('close', resolve));
  progress.end();
  if (code !== 0) {
    console.error(`failed (exit code ${code}): cargo ${BUILD.join(' ')}`);
    process.exit(1);
  }
  place(join(targetDirectory, 'release', LIBRARIES[process.platform] ?? LIBRARIES.linux));
}

/** Compiles the addon for a Rust target. Zig is the linker for Linux, with either C library. */
async function crossCompile(target, more) {
  const [cpu, , system, library] = target.split('-');
  const os = system === 'windows' ? 'win32' : system;
  const arch = cpu === 'aarch64' ? 'arm64' : 'x64';
  const platform = [os, arch, library].filter(Boolean).join('-');
  const command = os === 'linux' ? 'zigbuild' : 'build';
  const version = library === 'gnu' && os === 'linux' ? `.${GLIBC}` : '';
  const strip = ['--config', 'profile.release.strip="symbols"'];
  const options = [...BUILD.slice(1), '--target', `${target}${version}`, ...strip, ...more];
  await must('cargo', [command, ...options]);
  place(join(targetDirectory, target, 'release', LIBRARIES[os]), addonOf(platform));
}

if (process.argv[1] === import.meta.filename) {
  const [first, target, ...more] = process.argv.slice(2);
  if (first === '--target') {
    await crossCompile(target, more);
  } else {
    await buildAddon({ fromSource: process.argv.includes('--from-source') });
  }
}
