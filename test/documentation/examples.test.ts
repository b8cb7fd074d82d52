/**
 * The SQL and shell examples in the documentation, executed page by page. The programs in
 * docs/connect and docs/changes.md have their own tests.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { DOCS, examplesOf, fits, runExamples } from './examples.js';
import { SETUPS } from './setups.js';

const pages = readdirSync(DOCS, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.md') && !file.startsWith('connect') && !file.startsWith('decisions'),
);
for (const page of pages.sort()) {
  const setup = SETUPS[page] ?? {};
  const text = readFileSync(join(DOCS, page), 'utf8');
  const isRun = (language: string): boolean => setup.languages?.includes(language) ?? true;
  const examples = examplesOf(text).filter(({ language }) => isRun(language));
  if (examples.length === 0) {
    continue;
  }
  // Runs one server at a time, because other tests share the machine.
  test.serial(`every example of ${page} works`, async (t) => {
    t.timeout(5 * 60_000);
    const fences = [...text.matchAll(/^```(sql|sh)\b/gm)].filter(([, one = '']) => isRun(one));
    t.is(examples.length, fences.length, 'every block is parsed as an example');
    const compared = examples.filter(({ output }) => output !== null).length;
    t.true(compared >= (setup.minOutputs ?? 0), `${compared} outputs`);
    t.true(
      compared === examples.length || setup.showsAll !== true,
      'each example shows its output',
    );
    const folder = await mkdtemp(join(tmpdir(), 'tidemark-examples-'));
    t.teardown(() => rm(folder, { recursive: true, force: true }));
    for (const [name, content] of Object.entries(setup.files ?? {})) {
      await writeFile(join(folder, name), content);
    }
    const set = ['cairo.commit.mode=nosync', 'log.level=error', `cairo.sql.copy.root=${folder}`];
    const server = await startTestServer({
      set: [...set, ...(setup.set ?? [])],
      args: setup.args ?? [],
    });
    t.teardown(() => server.stop());
    await t.notThrowsAsync(runExamples(examples, server, folder, setup));
  });
}

test('the example checker detects different output', (t) => {
  t.true(fits('sh', '{"a":12}\r\n', '{"a":…}'));
  t.false(fits('sh', '{"a":12}', '{"a":13}'));
  t.false(fits('sh', '{"a":12}\nmore', '{"a":…}'));
  t.true(fits('sql', '"1"\r\n1\r\n', '"1"\n1\n'));
  t.false(fits('sql', '"1"\r\n1\r\n\r\n', '"1"\n1\n'));
  t.deepEqual(examplesOf('```sql\nSELECT 1;\n```\n\n```csv\n"1"\n1\n```\n'), [
    { language: 'sql', options: '', code: 'SELECT 1;\n', output: '"1"\n1\n' },
  ]);
});

test('every example setup belongs to an existing page', (t) => {
  t.deepEqual(
    Object.keys(SETUPS).filter((page) => !pages.includes(page)),
    [],
  );
});
