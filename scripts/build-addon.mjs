// Builds the addon for this machine: the host's build of the workspace, the same that cargo's tests
// use, so that DataFusion is compiled once. Cross-built binaries come from napi's own command in
// the release workflow; its loader and declarations are committed (`generate-loader.mjs`).
import { copyFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';

import { must, root, targetDirectory } from './steps.mjs';

/** Cargo's name of the library per platform. */
const LIBRARIES = {
  linux: 'libtidemark_native.so',
  darwin: 'libtidemark_native.dylib',
  win32: 'tidemark_native.dll',
};

/** The suffix napi's loader looks for. */
export function platformName() {
  const { platform, arch } = process;
  if (platform !== 'linux') {
    return platform === 'win32' ? `${platform}-${arch}-msvc` : `${platform}-${arch}`;
  }
  const isGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined;
  return `${platform}-${arch}-${isGlibc ? 'gnu' : 'musl'}`;
}

export async function buildAddon() {
  await must('cargo', ['build', '--release', '-p', 'tidemark-native']);
  const library = LIBRARIES[process.platform] ?? LIBRARIES.linux;
  const binary = join(root, 'native', `tidemark.${platformName()}.node`);
  // A new file under the old name: a running server keeps the one it has mapped.
  copyFileSync(join(targetDirectory, 'release', library), `${binary}.new`);
  renameSync(`${binary}.new`, binary);
}

if (process.argv[1] === import.meta.filename) {
  await buildAddon();
}
