// Bundles the compiled server: build/ts with its packages becomes build/server, a handful of
// files. Finding and opening two hundred was two thirds of a start.
//   node scripts/bundle.mjs
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { rolldown } from 'rolldown';

import { root } from './steps.mjs';

const compiled = join(root, 'build', 'ts');
const out = join(root, 'build', 'server');

/** The embedded library's tables are instances of the caller's own Arrow; the addon is a file. */
const EXTERNAL = ['apache-arrow', '#native'];

export async function bundleServer() {
  const bundle = await rolldown({
    cwd: root,
    input: {
      cli: join(compiled, 'cli.js'),
      index: join(compiled, 'index.js'),
      // A thread's own program, which the server finds beside itself.
      'hash-worker': join(compiled, 'auth', 'hash-worker.js'),
    },
    platform: 'node',
    external: EXTERNAL,
    // One package builds a function from text to keep its arity; it knows what it does.
    checks: { eval: false },
  });
  try {
    rmSync(out, { recursive: true, force: true });
    const { output } = await bundle.write({
      dir: out,
      format: 'esm',
      chunkFileNames: '[name].js',
      // For people who read a trace: `node --enable-source-maps`. A start does not open them.
      sourcemap: true,
      // Names and lines stay; comments are only read here, and every start would scan them.
      comments: false,
      minify: false,
    });
    const modules = output.flatMap((chunk) => chunk.moduleIds ?? []);
    writeFileSync(join(out, 'LICENSES.txt'), noticesOf(modules));
  } finally {
    await bundle.close();
  }
}

/** The licences of the packages whose code is inside. */
function noticesOf(modules) {
  const folders = modules.flatMap(
    (file) => /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(file)?.[0] ?? [],
  );
  const notices = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = readJson(join(folder, 'package.json'));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? '' : readFileSync(join(folder, file), 'utf8').trim();
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  return notices.join(`\n${'-'.repeat(80)}\n\n`);
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}

if (process.argv[1] === import.meta.filename) {
  if (!existsSync(join(compiled, 'cli.js'))) {
    console.error('nothing to bundle; run npx tsc -p . first');
    process.exit(1);
  }
  await bundleServer();
}
