/** The examples in docs/embedded.md, executed as one program. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import test from 'ava';

const PAGE = fileURLToPath(new URL('../../../docs/embedded.md', import.meta.url));
const LIBRARY = new URL('../../ts/index.js', import.meta.url).href;
const BLOCK = /^```(js|text)\n(.*?)^```$/gms;

test('the examples in docs/embedded.md print the documented output', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-embedded-page-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const blocks = [...(await readFile(PAGE, 'utf8')).matchAll(BLOCK)];
  const of = (language: string): string =>
    blocks.flatMap(([, kind, code]) => (kind === language ? [code] : [])).join('');
  t.true(blocks.length > 20);
  const program = of('js').replace("'tidemark'", `'${LIBRARY}'`);
  await writeFile(join(folder, 'program.mjs'), program);
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ['program.mjs'], { cwd: folder });
  t.is(stdout, of('text'));
});
