// Creates the npm packages from the build: the main package, and one package for each platform
// whose addon was built. The main package lists exactly these platform packages as optional
// dependencies.
//
//     node scripts/pack.mjs OUT_DIR [--addons DIR]     DIR: folder of *.node files (default native)
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

import { root } from './steps.mjs';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { addons: { type: 'string', default: join(root, 'native') } },
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
  return [manifest];
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
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
