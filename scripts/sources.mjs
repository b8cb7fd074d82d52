// The digest of everything that determines the addon's code. A published platform package records
// it, so a clone can use the published addon only if its own Rust sources are the same.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

import { root } from './steps.mjs';

const FILES = ['Cargo.toml', 'Cargo.lock', 'rust-toolchain.toml', join('.cargo', 'config.toml')];
const IN_CRATE = ['Cargo.toml', 'build.rs', 'src'];

/** Returns all files of a path, which may be a file, a folder or missing. */
export function filesOf(path) {
  if (!existsSync(path)) {
    return [];
  }
  if (statSync(path).isFile()) {
    return [path];
  }
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Returns the paths of the addon's sources. */
export function addonSources() {
  const crates = readdirSync(join(root, 'crates')).map((name) => join('crates', name));
  const paths = ['native', ...crates].flatMap((crate) => IN_CRATE.map((name) => join(crate, name)));
  return [...FILES, ...paths].flatMap((path) => filesOf(join(root, path))).sort();
}

/** Returns the digest of the addon's sources as a hexadecimal SHA-256 value. */
export function sourcesDigest() {
  const hash = createHash('sha256');
  for (const file of addonSources()) {
    const name = relative(root, file).split(sep).join('/');
    hash.update(name).update('\0').update(readFileSync(file)).update('\0');
  }
  return hash.digest('hex');
}
