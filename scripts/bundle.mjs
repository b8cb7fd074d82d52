// Bundles the compiled server: build/ts and the packages it uses become the few files in
// build/server. Previously, opening two hundred files took two thirds of the startup time.
//
//     node scripts/bundle.mjs
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { rolldown } from 'rolldown';

import { packageFolders } from './sbom.mjs';
import { root } from './steps.mjs';

const compiled = join(root, 'build', 'ts');
const out = join(root, 'build', 'server');

/**
 * Not bundled: Arrow, because the embedded library must return tables from the caller's own Arrow
 * module, and the addon, because it is a separate file.
 */
const EXTERNAL = ['apache-arrow', '#native'];

export async function bundleServer() {
  const bundle = await rolldown({
    cwd: root,
    input: {
      cli: join(compiled, 'cli.js'),
      index: join(compiled, 'index.js'),
      // The worker thread's program, which the server loads from its own folder.
      'hash-worker': join(compiled, 'auth', 'hash-worker.js'),
    },
    platform: 'node',
    external: EXTERNAL,
    // One package deliberately builds a function from a string to preserve its arity.
    checks: { eval: false },
  });
  try {
    rmSync(out, { recursive: true, force: true });
    const { output } = await bundle.write({
      dir: out,
      format: 'esm',
      chunkFileNames: '[name].js',
      // Source maps make stack traces readable with `node --enable-source-maps`. A normal start
      // does not open them.
      sourcemap: true,
      // Names and line breaks are retained. Comments are removed, because they would otherwise be
      // scanned at every startup.
      comments: false,
      minify: false,
    });
    const modules = output.flatMap((chunk) => chunk.moduleIds ?? []);
    const folders = JSON.stringify(packageFolders(modules), null, 2);
    writeFileSync(join(root, 'build', 'packages-server.json'), `${folders}\n`);
  } finally {
    await bundle.close();
  }
}

if (process.argv[1] === import.meta.filename) {
  if (!existsSync(join(compiled, 'cli.js'))) {
    console.error('nothing to bundle; run npx tsc -p . first');
    process.exit(1);
  }
  await bundleServer();
}
