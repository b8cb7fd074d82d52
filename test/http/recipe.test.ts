/**
 * Applies «Add a route» from docs/contributing.md literally to a copy of the server, calls the
 * route, and undoes the change. Also checks the table in docs/http.md, which is generated from the
 * routes.
 */
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import test from 'ava';
import ts from 'typescript';

import { httpDocument } from './document.js';
import type * as DocumentModule from './document.js';
import type * as HarnessModule from './harness.js';
import type { Harness, HarnessOptions } from './harness.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const DOCUMENT = readFileSync(join(root, 'docs', 'http.md'), 'utf8');

interface Recipe {
  /** Path and contents of the new file. */
  readonly file: string;
  readonly code: string;
  /** The line to add to the list. */
  readonly line: string;
}

function readRecipe(): Recipe {
  const text = readFileSync(join(root, 'docs', 'contributing.md'), 'utf8');
  const recipe = /\*\*Add a route\.\*\*[^]*?(?=\n\*\*Add)/.exec(text)?.[0] ?? '';
  const [, code = '', file = ''] = /```ts\n(\/\/ (\S+)\n[^]*?)```/.exec(recipe) ?? [];
  const [, line = ''] = /index\.ts`:[^`]*`([^`]+)`/.exec(recipe) ?? [];
  return { file, code, line };
}

/** Copies the build output to a folder next to it, where packages and the addon are found. */
function copyServer(): string {
  const copy = mkdtempSync(join(root, 'build', 'recipe-'));
  cpSync(join(root, 'build', 'ts'), join(copy, 'ts'), { recursive: true });
  // The tests' shared fakes are in the same folders, so the folders are copied completely.
  for (const directory of ['test', join('test', 'http')]) {
    mkdirSync(join(copy, directory));
    for (const name of readdirSync(join(root, 'build', directory))) {
      if (name.endsWith('.js')) {
        cpSync(join(root, 'build', directory, name), join(copy, directory, name));
      }
    }
  }
  return copy;
}

async function load<T>(copy: string, name: string): Promise<T> {
  return (await import(pathToFileURL(join(copy, 'test', 'http', name)).href)) as T;
}

async function start(copy: string, options: HarnessOptions = {}): Promise<Harness> {
  const module = await load<typeof HarnessModule>(copy, 'harness.js');
  return await module.startHarness(options);
}

test('following the recipe adds a route, which can be removed again', async (t) => {
  const { file, code, line } = readRecipe();
  let copy = copyServer();
  t.teardown(() => {
    rmSync(copy, { recursive: true, force: true });
  });
  const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  const compiled = ts.transpileModule(code, { compilerOptions: options }).outputText;
  const path = join(copy, file.replace(/\.ts$/, '.js'));
  const list = join(copy, 'ts', 'http', 'routes', 'index.js');
  const before = readFileSync(list, 'utf8');
  const name = line.slice(0, line.indexOf('('));
  const module = file.slice(file.lastIndexOf('/') + 1).replace(/\.ts$/, '.js');

  writeFileSync(path, compiled);
  const added = before.replace('return [', () => `return [\n${line}`);
  writeFileSync(list, `import { ${name} } from './${module}';\n${added}`);

  const harness = await start(copy);
  const url = `${harness.url}/echo`;
  const echoed = await fetch(url, { method: 'POST', body: new URLSearchParams({ text: 'ebb' }) });
  t.deepEqual([echoed.status, await echoed.text()], [200, 'ebb']);
  t.is(echoed.headers.get('server'), 'tidemark', 'the route has the common headers');
  const large = new URLSearchParams({ text: 'x'.repeat(1025) });
  const refused = await fetch(url, { method: 'POST', body: large });
  t.deepEqual(
    [refused.status, await refused.text()],
    [413, 'request body is too large [limit=1024]\r\n'],
  );
  const wrong = await fetch(url);
  t.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'POST, OPTIONS']);
  t.is(
    (await fetch(url, { method: 'POST', headers: { Origin: 'http://evil.example' } })).status,
    403,
  );
  await harness.server.close();

  const guarded = await start(copy, { set: ['http.user=joe', 'http.password=secret'] });
  t.is((await fetch(`${guarded.url}/echo`, { method: 'POST' })).status, 401);
  await guarded.server.close();
  const { httpDocument: documented } = await load<typeof DocumentModule>(copy, 'document.js');
  t.true(documented(DOCUMENT).includes('| `/echo` | POST | sends back the field `text` |\n'));

  rmSync(path);
  writeFileSync(list, before);
  const next = `${copy}-undone`;
  renameSync(copy, next);
  copy = next;
  const without = await start(copy);
  t.is((await fetch(`${without.url}/echo`, { method: 'POST' })).status, 404);
  await without.server.close();
});

test('the table in docs/http.md matches the routes', (t) => {
  t.is(httpDocument(DOCUMENT), DOCUMENT, 'outdated: run npm run generate');
});
