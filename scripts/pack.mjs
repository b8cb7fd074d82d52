// Creates the npm packages from the build: the main package, and one package for each platform
// whose addon was built. The main package lists exactly these platform packages as optional
// dependencies.
//
//     node scripts/pack.mjs OUT_DIR [--addons DIR] [--repository URL]
//
// DIR is the folder of the *.node files (default native). npm accepts a provenance statement only
// if the manifest names the repository whose workflow publishes, so the workflow passes its URL.
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import {
  billOfMaterials,
  crateComponents,
  licencesOf,
  npmComponents,
  recordedFolders,
  TARGETS,
} from './sbom.mjs';
import { sourcesDigest } from './sources.mjs';
import { root } from './steps.mjs';

const SBOM = 'sbom.cdx.json';
const LICENCES = 'THIRD-PARTY-LICENSES.txt';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    addons: { type: 'string', default: join(root, 'native') },
    repository: { type: 'string' },
  },
});
const out = resolve(positionals[0] ?? fail('usage: node scripts/pack.mjs OUT_DIR [--addons DIR]'));
const templates = join(root, 'native', 'npm');
const staging = mkdtempSync(join(tmpdir(), 'tidemark-pack-'));

try {
  mkdirSync(out, { recursive: true });
  const platforms = readdirSync(templates).flatMap(stagePlatform);
  if (platforms.length === 0) {
    fail(`no addon in ${values.addons}; run npm run build first`);
  }
  stageMain(platforms);
  for (const name of readdirSync(staging)) {
    const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', out];
    const file = execFileSync('npm', args, { cwd: join(staging, name), encoding: 'utf8' });
    console.log(join(out, file.trim()));
  }
} finally {
  rmSync(staging, { recursive: true, force: true });
}

/** Stages the package template and the addon; skips a platform without a built addon. */
function stagePlatform(platform) {
  const manifest = readJson(join(templates, platform, 'package.json'));
  const addon = [
    join(values.addons, manifest.main),
    join(values.addons, platform, manifest.main),
  ].find((file) => existsSync(file));
  if (addon === undefined) {
    return [];
  }
  const target = join(staging, platform);
  cpSync(join(templates, platform), target, { recursive: true });
  cpSync(addon, join(target, manifest.main));
  cpSync(join(root, 'LICENSE'), join(target, 'LICENSE'));
  const origin = { ...manifest, tidemark: { sources: sourcesDigest() } };
  writeContents(target, origin, crateComponents(TARGETS[platform]));
  return [manifest];
}

/** Writes the manifest, and the bill of materials and licences of the package's contents. */
function writeContents(target, manifest, components) {
  const files = [...manifest.files, SBOM, LICENCES];
  const url = values.repository;
  const repository =
    url === undefined ? {} : { repository: { type: 'git', url: `git+${url}.git` } };
  writeJson(join(target, 'package.json'), { ...manifest, ...repository, files });
  writeJson(join(target, SBOM), billOfMaterials(manifest, components));
  writeFileSync(join(target, LICENCES), licencesOf(components));
}

/**
 * Adds the manifests of the bundled packages, so that npm and scanners of images list them. Their
 * code is in the bundles, and npm installs nothing for them.
 */
function stageManifests(target, manifest, components) {
  const paths = new Set(components.map(({ path }) => path));
  const bundled = {};
  for (const { name, version, path, folder } of components) {
    const {
      license,
      homepage,
      repository,
      dependencies = {},
    } = readJson(join(folder, 'package.json'));
    const kept = Object.entries(dependencies).filter(([other]) => paths.has(found(path, other)));
    const about = { name, version, license, homepage, repository };
    mkdirSync(join(target, path), { recursive: true });
    const file = join(target, path, 'package.json');
    writeJson(file, { ...about, dependencies: Object.fromEntries(kept) });
    if (path.lastIndexOf('node_modules/') === 0) {
      bundled[name] = version;
    }
  }
  manifest.dependencies = { ...manifest.dependencies, ...bundled };
  manifest.bundleDependencies = Object.keys(bundled);
}

/** Stages the files listed in package.json, and a manifest without development-only entries. */
function stageMain(platforms) {
  const manifest = readJson(join(root, 'package.json'));
  for (const key of ['devDependencies', 'workspaces', 'scripts', 'ava']) {
    delete manifest[key];
  }
  const target = join(staging, 'tidemark');
  for (const file of [...manifest.files, 'README.md', 'LICENSE']) {
    // An entry is `folder/**/*.ending`, or the name of a file or folder.
    const [path, ending = ''] = file.split('/**/*');
    const source = join(root, path);
    if (existsSync(source)) {
      mkdirSync(dirname(join(target, path)), { recursive: true });
      const filter = (name) => name.endsWith(ending) || statSync(name).isDirectory();
      cpSync(source, join(target, path), { recursive: true, filter });
    } else if (manifest.files.includes(file)) {
      fail(`${file} is not built`);
    }
  }
  manifest.optionalDependencies = Object.fromEntries(
    platforms.map(({ name, version }) => [name, version]),
  );
  const folders = [...recordedFolders('server'), ...recordedFolders('console')];
  const components = npmComponents([...new Set(folders)]);
  stageManifests(target, manifest, components);
  writeContents(target, manifest, components);
}

/** Returns the folder in which Node.js finds a dependency of the package at `path`. */
function found(path, name) {
  const candidate = `${path === '' ? '' : `${path}/`}node_modules/${name}`;
  if (path === '' || existsSync(join(root, candidate))) {
    return candidate;
  }
  return found(path.slice(0, path.lastIndexOf('node_modules/')).replace(/\/$/, ''), name);
}

function writeJson(file, value) {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
