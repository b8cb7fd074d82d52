// Creates the standalone archive for Linux: the server with a Node.js runtime, which needs no npm.
// The Node.js binary determines the platform. A SHA-256 checksum is written next to the archive.
//
//     node scripts/archive.mjs OUT_DIR [--packages DIR] [--node FILE] [--node-license FILE]
//
// DIR: packages created by scripts/pack.mjs, which runs first by default.
// FILE: a Node.js binary, by default the running one, and its licence.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { root, script } from './steps.mjs';

/** Files of the main package that only the embedded library or a debugger needs. */
const LEFT_OUT = ['package/build/ts', 'package/build/server/index.js', '*.map', '*.d.ts'];
/**
 * Modification time of all files, so that equal contents give equal archives. The default is npm's
 * value.
 */
const MODIFIED_SECONDS = process.env.SOURCE_DATE_EPOCH ?? '499162500';
const ELF_MACHINES = { 0x3e: 'x64', 0xb7: 'arm64' };
const ELF_MACHINE_OFFSET = 18;
/** The dynamic loader's path is at the start of the file. */
const LOADER_BYTES = 4096;

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    packages: { type: 'string' },
    node: { type: 'string', default: process.execPath },
    'node-license': { type: 'string' },
  },
});
const out = resolve(positionals[0] ?? fail('usage: node scripts/archive.mjs OUT_DIR [options]'));
const node = realpathSync(values.node);
const platform = platformOf(node);
const staging = mkdtempSync(join(tmpdir(), 'tidemark-archive-'));

process.on('exit', () => {
  rmSync(staging, { recursive: true, force: true });
});

const packages = values.packages ?? packAll(join(staging, 'packages'));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const name = `tidemark-${version}-${platform}`;
const archive = join(out, `${name}.tar.gz`);
stage(join(staging, name));
tryVersion(join(staging, name, 'tidemark'));
compress();
const sum = createHash('sha256').update(readFileSync(archive)).digest('hex');
writeFileSync(`${archive}.sha256`, `${sum}  ${basename(archive)}\n`);
console.log(archive);

/** Returns the platform of a Node.js binary, such as `linux-x64-gnu`. */
function platformOf(file) {
  const start = readFileSync(file).subarray(0, LOADER_BYTES);
  const isElf = start.subarray(0, 4).equals(Buffer.from('\x7fELF'));
  const machine = isElf ? ELF_MACHINES[start.readUInt16LE(ELF_MACHINE_OFFSET)] : undefined;
  if (machine === undefined) {
    fail(`${file} is no program for Linux on x64 or arm64`);
  }
  return `linux-${machine}-${start.includes('/ld-musl-') ? 'musl' : 'gnu'}`;
}

function packAll(directory) {
  const [command, args] = script('pack', directory);
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  return directory;
}

function stage(folder) {
  const modules = join(folder, 'lib', 'node_modules');
  const exclude = LEFT_OUT.map((pattern) => `--exclude=${pattern}`);
  const main = join(modules, 'tidemark');
  extract(join(packages, `tidemark-${version}.tgz`), main, exclude);
  const native = join(packages, `tidemark-native-${platform}-${version}.tgz`);
  extract(native, join(modules, '@tidemark', `native-${platform}`));
  mkdirSync(join(folder, 'bin'));
  copyFileSync(node, join(folder, 'bin', 'node'));
  copyFileSync(nodeLicense(), join(folder, 'LICENSE-node'));
  copyFileSync(join(main, 'LICENSE'), join(folder, 'LICENSE'));
  copyFileSync(join(root, 'scripts', 'dist', 'launcher.sh'), join(folder, 'tidemark'));
  for (const program of ['tidemark', join('bin', 'node')]) {
    chmodSync(join(folder, program), 0o755);
  }
}

function extract(file, target, options = []) {
  if (!existsSync(file)) {
    fail(`${file} is missing; scripts/pack.mjs creates it from the built addon`);
  }
  mkdirSync(target, { recursive: true });
  execFileSync('tar', ['-xzf', file, '-C', target, '--strip-components=1', ...options]);
}

/**
 * Returns the file with the licence of the Node.js binary. Distributions of Node.js store the
 * licence in one of these files.
 */
function nodeLicense() {
  const prefix = dirname(dirname(node));
  const known = [join(prefix, 'LICENSE'), join(prefix, 'share', 'doc', 'nodejs', 'LICENSE')];
  const found = [values['node-license'], ...known].find((file) => file && existsSync(file));
  return found ?? fail(`the licence of ${node} is not in ${known.join(' or ')}: --node-license`);
}

/** Runs the staged program with an empty environment, if this machine can run it. */
function tryVersion(program) {
  if (platform !== platformOf(process.execPath)) {
    return;
  }
  const printed = execFileSync(program, ['version'], { cwd: '/', env: {}, encoding: 'utf8' });
  if (printed !== `tidemark ${version}\n`) {
    fail(`the archived program prints ${printed}`);
  }
}

function compress() {
  mkdirSync(out, { recursive: true });
  const plain = [
    '--sort=name',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=u+w,go-w,a+rX',
  ];
  const time = `--mtime=@${MODIFIED_SECONDS}`;
  const gzip = ['--use-compress-program', 'gzip -n'];
  execFileSync('tar', ['-cf', archive, '-C', staging, ...plain, time, ...gzip, name]);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
