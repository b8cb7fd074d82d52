// Builds the addon for this machine. It uses the same workspace build as cargo's tests, so
// DataFusion is compiled only once. The release workflow cross-builds binaries with napi's own
// command. The loader and the declarations are committed files (`generate-loader.mjs`).
import { copyFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';

import { must, root, targetDirectory } from './steps.mjs';

/** Name of the library file on each platform. */
const LIBRARIES = {
  linux: 'libtidemark_native.so',
  darwin: 'libtidemark_native.dylib',
  win32: 'tidemark_native.dll',
};

/** Returns the platform suffix that napi's loader expects. */
export function platformName() {
  const { platform, arch } = process;
  if (platform !== 'linux') {
    return platform === 'win32' ? `${platform}-${arch}-msvc` : `${platform}-${arch}`;
  }
  const isGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined;
  return `${platform}-${arch}-${isGlibc ? 'gnu' : 'musl'}`;
}

export async function buildAddon() {
  await must('cargo', ['build', '--locked', '--release', '-p', 'tidemark-native']);
  const library = LIBRARIES[process.platform] ?? LIBRARIES.linux;
  const binary = join(root, 'native', `tidemark.${platformName()}.node`);
  // Replaces the file by renaming, so a running server keeps the old file mapped.
  copyFileSync(join(targetDirectory, 'release', library), `${binary}.new`);
  renameSync(`${binary}.new`, binary);
}

if (process.argv[1] === import.meta.filename) {
  await buildAddon();
}
