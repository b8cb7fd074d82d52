// Lists what a package contains: npm packages in a bundle, and crates in the engine. Produces their
// bill of materials (CycloneDX) and their licences. Both depend only on the lock files.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

import { root } from './steps.mjs';

/** Package suffix → Rust target. */
export const TARGETS = {
  'darwin-arm64': 'aarch64-apple-darwin',
  'darwin-x64': 'x86_64-apple-darwin',
  'linux-arm64-gnu': 'aarch64-unknown-linux-gnu',
  'linux-arm64-musl': 'aarch64-unknown-linux-musl',
  'linux-x64-gnu': 'x86_64-unknown-linux-gnu',
  'linux-x64-musl': 'x86_64-unknown-linux-musl',
  'win32-x64-msvc': 'x86_64-pc-windows-msvc',
};
const LICENCE_FILE = /^(licen[cs]e|copying|notice|unlicense)/i;
/** C code in a crate is below the crate's folder, with its own licence. */
const MAX_LICENCE_DEPTH = 3;

/** Returns the folders of the packages whose modules are in a bundle, relative to the clone. */
export function packageFolders(modules) {
  const folders = modules.flatMap(
    (file) => /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(file)?.[0] ?? [],
  );
  // A bundler marks its own modules with a null character.
  const own = [...new Set(folders)].filter((folder) => !folder.includes('\0'));
  return own.map((folder) => relative(root, folder).replaceAll('\\', '/')).sort();
}

/** Returns the npm packages in folders of `node_modules`. */
export function npmComponents(folders) {
  const { packages: locked } = readJson(join(root, 'package-lock.json'));
  return folders.map((path) => {
    const folder = join(root, path);
    const { name, version, license } = readJson(join(folder, 'package.json'));
    const digest = /^sha512-(.+)$/.exec(locked[path]?.integrity ?? '')?.[1];
    const hash = digest && ['SHA-512', Buffer.from(digest, 'base64').toString('hex')];
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    return { name, version, license, purl, hash, folder, path };
  });
}

/** Returns the crates that are linked into the engine for a target. */
export function crateComponents(target) {
  const filter = ['--filter-platform', target];
  const args = ['metadata', '--locked', '--offline', '--format-version', '1', ...filter];
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 };
  const { packages, resolve } = JSON.parse(execFileSync('cargo', args, options));
  const byId = new Map(packages.map((crate) => [crate.id, crate]));
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
  const seen = new Set();
  const visit = (id) => {
    const crate = byId.get(id);
    // A procedural macro runs in the compiler.
    const isMacro = crate.targets.some(({ kind }) => kind.includes('proc-macro'));
    if (seen.has(id) || isMacro) {
      return;
    }
    seen.add(id);
    const linked = ({ dep_kinds: kinds }) => kinds.some(({ kind }) => kind === null);
    nodes
      .get(id)
      .deps.filter(linked)
      .forEach((dependency) => visit(dependency.pkg));
  };
  visit(packages.find(({ name }) => name === 'tidemark-native').id);
  const crates = [...seen].map((id) => byId.get(id)).filter(({ source }) => source !== null);
  const checksums = checksumsOf(readFileSync(join(root, 'Cargo.lock'), 'utf8'));
  return crates.map(({ name, version, license, manifest_path: manifest }) => ({
    name,
    version,
    license: license?.replaceAll('/', ' OR '),
    purl: `pkg:cargo/${name}@${version}`,
    hash: ['SHA-256', checksums.get(`${name} ${version}`)],
    folder: dirname(manifest),
  }));
}

function checksumsOf(lock) {
  const entry = /name = "(.*)"\nversion = "(.*)"\nsource = .*\nchecksum = "(.*)"/g;
  return new Map(
    [...lock.matchAll(entry)].map(([, name, version, sum]) => [`${name} ${version}`, sum]),
  );
}

/** Returns a package's bill of materials, in the format CycloneDX 1.6. */
export function billOfMaterials({ name, version, license }, components) {
  const own = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  const sorted = [...new Map(components.map((part) => [part.purl, part])).values()].sort((a, b) =>
    a.purl < b.purl ? -1 : 1,
  );
  const entry = (part) => ({
    type: 'library',
    'bom-ref': part.purl,
    name: part.name,
    version: part.version,
    licenses: [{ expression: part.license }],
    purl: part.purl,
    ...(part.hash ? { hashes: [{ alg: part.hash[0], content: part.hash[1] }] } : {}),
  });
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: { ...entry({ name, version, license, purl: own }), type: 'application' },
    },
    components: sorted.map(entry),
    dependencies: [{ ref: own, dependsOn: sorted.map(({ purl }) => purl) }],
  };
}

/** Returns the licences of packages or crates; a text that several of them share is listed once. */
export function licencesOf(components) {
  const owners = new Map();
  for (const { name, version, license, folder } of components) {
    const texts = licenceTexts(folder, MAX_LICENCE_DEPTH);
    for (const text of texts.length === 0 ? [''] : texts) {
      owners.set(text, [...(owners.get(text) ?? []), `${name} ${version} (${license})`]);
    }
  }
  const sections = [...owners].map(([text, names]) =>
    `${[...new Set(names)].sort().join('\n')}\n\n${text}`.trimEnd(),
  );
  return `${sections.sort().join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

function licenceTexts(folder, depth) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      return depth === 1 || entry.name === 'node_modules' ? [] : licenceTexts(path, depth - 1);
    }
    const isLicence = LICENCE_FILE.test(entry.name) && !/\.(rs|js|json|toml)$/.test(entry.name);
    return isLicence ? [readFileSync(path, 'utf8').replaceAll('\r\n', '\n').trim()] : [];
  });
}

/** Returns the folders that a build recorded; `which` is `server` or `console`. */
export function recordedFolders(which) {
  const file = join(root, 'build', `packages-${which}.json`);
  if (!existsSync(file)) {
    throw new Error(`${file} does not exist; build the ${which} first`);
  }
  return readJson(file);
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}
