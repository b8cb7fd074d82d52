/**
 * The recipe for adding a configuration key (docs/contributing.md), applied to a copy of the
 * sources.
 */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

import test from 'ava';

import type * as Configuration from '../../ts/config/index.js';
import { ALL_KEYS } from '../../ts/config/registry.js';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const OPENING = join(ROOT, 'crates/engine/src/open');
const LAST_KEY = '  // Sign-on through an identity provider\n';
const FIRST_OPTION = 'export type OpenOptions = {\n';

/** Inserts `text` before or after a line, which must exist in the file. */
async function insert(file: string, at: string, text: string): Promise<void> {
  const before = await readFile(file, 'utf8');
  const after = before.replace(at, () => text);
  if (after === before) {
    throw new Error(`${file} has no line ${at}`);
  }
  await writeFile(file, after);
}

/** Returns the compiler errors in `folder`; empty on success. */
async function compile(folder: string): Promise<string> {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  try {
    await run(process.execPath, [tsc, '-p', folder]);
    return '';
  } catch (error) {
    return (error as { stdout?: string }).stdout ?? String(error);
  }
}

test('adding a configuration key requires one registry entry and one field', async (t) => {
  const folder = await mkdtemp(join(ROOT, 'build', 'recipe-'));
  try {
    for (const part of ['config', 'border']) {
      await cp(join(ROOT, 'ts', part), join(folder, 'ts', part), { recursive: true });
    }
    const settings = {
      extends: join(ROOT, 'tsconfig.json'),
      compilerOptions: { rootDir: 'ts', outDir: 'out', tsBuildInfoFile: 'out/.info' },
      include: ['ts'],
      exclude: [],
    };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(settings));
    const entry =
      "  added: size('cairo.added.limit', '0', 'bytes', { engine: 'addedLimitBytes' }),\n";
    await insert(join(folder, 'ts/config/registry.ts'), LAST_KEY, entry + LAST_KEY);
    t.regex(await compile(folder), /registry\.ts\(\d+,\d+\): error .*addedLimitBytes/);
    // The line that `npm run generate` writes for a field `added_limit_bytes: Option<u64>`.
    const field = `${FIRST_OPTION}  readonly addedLimitBytes?: number;\n`;
    await insert(join(folder, 'ts/border/types.generated.ts'), FIRST_OPTION, field);
    t.is(await compile(folder), '');
    const url = pathToFileURL(join(folder, 'out/config/index.js')).href;
    const { configurationDocument, engineOptions, loadConfig } = (await import(
      url
    )) as typeof Configuration;
    const config = loadConfig({ set: ['cairo.added.limit=2K'] });
    t.is((engineOptions(config) as { addedLimitBytes?: number }).addedLimitBytes, 2048);
    t.false(
      'addedLimitBytes' in engineOptions(loadConfig({})),
      '0 leaves the choice to the engine',
    );
    const shown = config.parameters().find(({ name }) => name === 'cairo.added.limit');
    t.is(shown?.value, '2K');
    t.regex(configurationDocument(), /`cairo\.added\.limit`/);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test('the engine reads each option; each one except the directories has a key', async (t) => {
  const types = await readFile(join(ROOT, 'ts/border/types.generated.ts'), 'utf8');
  const files = ['mod.rs', 'root.rs', 'settings.rs'].map((file) => join(OPENING, file));
  const engine = (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('\n');
  const [, members = ''] = types.split(FIRST_OPTION);
  const found = members.slice(0, members.indexOf('\n};')).matchAll(/^ {2}readonly (\w+)\??:/gm);
  const options = [...found].map(([, name = '']) => name);
  const rust = (name: string): string => name.replaceAll(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);
  const read = new Set(engine.match(/(?<=options\s*\.)\w+/g));
  t.deepEqual(
    options.filter((name) => !read.has(rust(name))),
    [],
    'options that the engine does not read',
  );
  const named: readonly string[] = ALL_KEYS.flatMap((key) => key.engine ?? []);
  t.deepEqual(
    options.filter((name) => !named.includes(name)),
    ['root', 'importRoot', 'exportRoot'],
    'options without a key',
  );
  t.is(new Set(named).size, named.length, 'no option has two keys');
});
