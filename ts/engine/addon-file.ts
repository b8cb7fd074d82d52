/**
 * Finds out why the native addon cannot be loaded: its package is missing or the file is damaged.
 * A truncated file must be detected before it is loaded, because it crashes the process.
 */
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** Platforms that have a package, which are the folders of `native/npm`. */
export const PLATFORMS = [
  'darwin-arm64',
  'darwin-x64',
  'linux-arm64-gnu',
  'linux-arm64-musl',
  'linux-x64-gnu',
  'linux-x64-musl',
  'win32-x64-msvc',
];
const C_LIBRARIES: Partial<Record<string, readonly string[]>> = {
  linux: ['gnu', 'musl'],
  win32: ['msvc'],
};
/**
 * Offsets in the header of a 64-bit ELF file, which is little-endian on all supported platforms.
 */
const ELF = { bytes: 64, magic: 0x464c457f, machine: 18, sections: 40, size: 58, count: 60 };
const ELF_MACHINES: Partial<Record<string, number>> = { x64: 62, arm64: 183 };

interface Host {
  readonly platform: string;
  readonly arch: string;
}

/**
 * Explains in one line why no addon can be loaded, and what to do. Returns `null` if a seemingly
 * complete file exists. `loader` is the path of `native/index.js`.
 */
export function addonProblem(loader: string, host: Host = process): string | null {
  const names = platformNames(host);
  if (names.length === 0) {
    const supported = `the supported platforms are ${PLATFORMS.join(', ')}`;
    return `there is no engine for ${host.platform} ${host.arch}; ${supported}`;
  }
  const files = names.flatMap((name) => addonFile(loader, name) ?? []);
  if (files.length === 0) {
    return `the engine is not installed: ${remedyFor(loader, host)}`;
  }
  const damage = host.platform === 'linux' ? elfDamage(files[0] ?? '', host.arch) : null;
  return damage === null ? null : `${damage} [file=${files[0] ?? ''}]: ${remedyFor(loader, host)}`;
}

/** Returns a load error's reason in one line, with the remedy. */
export function loadProblem(loader: string, error: unknown): string {
  const messages: string[] = [];
  // The generated loader chains the errors of all files that it tried.
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    messages.push(cause.message.replaceAll(/\s+/g, ' '));
  }
  const reason = messages.find((message) => !message.startsWith('Cannot find')) ?? messages.at(-1);
  return `the engine cannot be loaded: ${reason ?? 'unknown error'}; ${remedyFor(loader, process)}`;
}

/** Returns the names of the host's packages: on Linux, one for each C library. */
function platformNames({ platform, arch }: Host): string[] {
  const libraries = C_LIBRARIES[platform];
  const base = `${platform}-${arch}`;
  const names = libraries === undefined ? [base] : libraries.map((library) => `${base}-${library}`);
  return names.filter((name) => PLATFORMS.includes(name));
}

/** Returns the file that the loader would load: the one beside it, or the package's. */
function addonFile(loader: string, name: string): string | undefined {
  const binary = `tidemark.${name}.node`;
  const beside = join(dirname(loader), binary);
  if (existsSync(beside)) {
    return beside;
  }
  try {
    return createRequire(loader).resolve(`@tidemark/native-${name}`);
  } catch {
    return undefined;
  }
}

function elfDamage(file: string, arch: string): string | null {
  const descriptor = openSync(file, 'r');
  try {
    const header = Buffer.alloc(ELF.bytes);
    const { size } = fstatSync(descriptor);
    const read = readSync(descriptor, header, 0, ELF.bytes, 0);
    if (read < ELF.bytes || header.readUInt32LE(0) !== ELF.magic) {
      return 'the engine is damaged: it is not a shared library';
    }
    if (header.readUInt16LE(ELF.machine) !== ELF_MACHINES[arch]) {
      return `the engine was built for a processor other than ${arch}`;
    }
    // The section header table is at the end of an ELF file, so a truncated file lacks it.
    const table = header.readUInt16LE(ELF.size) * header.readUInt16LE(ELF.count);
    const needed = Number(header.readBigUInt64LE(ELF.sections)) + table;
    return size < needed ? `the engine is damaged: ${size} of ${needed} bytes are present` : null;
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Returns the command that installs the host's package. A source checkout has no such package, so
 * the command is then a build.
 */
function remedyFor(loader: string, host: Host): string {
  const require = createRequire(loader);
  const manifest = require('../package.json') as {
    readonly version: string;
    readonly optionalDependencies?: object;
  };
  if (manifest.optionalDependencies === undefined) {
    return 'run npm run build';
  }
  const library = platformNames(host).length > 1 ? `-${isGlibc() ? 'gnu' : 'musl'}` : '';
  const only = platformNames(host)[0] ?? '';
  const name = library === '' ? only : `${host.platform}-${host.arch}${library}`;
  return `run npm install --force @tidemark/native-${name}@${manifest.version}`;
}

function isGlibc(): boolean {
  const report = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return report.header.glibcVersionRuntime !== undefined;
}
