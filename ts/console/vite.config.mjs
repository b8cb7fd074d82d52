// Builds the console: one HTML page and hashed assets in build/console.
//
// The page is served with `script-src 'self'; style-src 'self'` and Trusted Types, so inline
// scripts and styles are forbidden. All URLs are relative, so that the console works under any
// context path.
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { transformAsync } from '@babel/core';
import { defineConfig } from 'vite';

import { packageFolders } from '../../scripts/sbom.mjs';
import { inlineTexts } from './inline-texts.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Compiles JSX to Solid's DOM calls; Vite strips the types afterwards. */
function solid() {
  return {
    name: 'tidemark-solid',
    enforce: 'pre',
    async transform(code, id) {
      if (!id.endsWith('.tsx')) return null;
      const compiled = await transformAsync(code, {
        filename: id,
        configFile: false,
        babelrc: false,
        sourceMaps: true,
        parserOpts: { plugins: ['jsx', 'typescript'] },
        presets: [['babel-preset-solid', { moduleName: here('src/dom.ts') }]],
      });
      // The file still contains types, so it is passed on as TypeScript without JSX.
      return { code: compiled.code, map: compiled.map, moduleType: 'ts' };
    },
  };
}

/**
 * Emits the script that sets the theme before the first paint: a small, classic, blocking script.
 */
function themeBoot() {
  return {
    name: 'tidemark-theme-boot',
    async transformIndexHtml(html, context) {
      if (context.server) return html;
      const source = await readFile(here('src/theme-boot.js'), 'utf8');
      const hash = createHash('sha256').update(source).digest('hex').slice(0, 8);
      const fileName = `assets/theme-boot-${hash}.js`;
      this.emitFile({ type: 'asset', fileName, source: source.replace(/^\/\/.*\n/gm, '') });
      return {
        html,
        tags: [{ tag: 'script', attrs: { src: `./${fileName}` }, injectTo: 'head-prepend' }],
      };
    },
  };
}

/** Records the packages in the bundle for the software bill of materials (scripts/sbom.mjs). */
function recordPackages() {
  return {
    name: 'tidemark-record-packages',
    async generateBundle(_options, bundle) {
      const modules = Object.values(bundle).flatMap(({ moduleIds }) => moduleIds ?? []);
      const folders = JSON.stringify(packageFolders(modules), null, 2);
      await writeFile(here('../../build/packages-console.json'), `${folders}\n`);
    },
  };
}

export default defineConfig({
  root: here('.'),
  base: './',
  plugins: [inlineTexts(here('src/texts.ts')), solid(), themeBoot(), recordPackages()],
  resolve: { conditions: ['browser', 'module', 'import', 'default'] },
  build: {
    outDir: here('../../build/console'),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    proxy: Object.fromEntries(
      ['exec', 'exp', 'imp', 'settings', 'chk'].map((path) => [
        `/${path}`,
        process.env.TIDEMARK_URL ?? 'http://127.0.0.1:9000',
      ]),
    ),
  },
});
