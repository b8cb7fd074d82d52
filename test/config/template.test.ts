/** The commented `server.conf` that `tidemark init` writes. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';

import { configurationFile, KEYS, loadConfig } from '../../ts/config/index.js';
import { parseProperties } from '../../ts/config/properties.js';

function load(t: ExecutionContext, text: string): ReturnType<typeof loadConfig> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-template-'));
  t.teardown(() => {
    rmSync(folder, { recursive: true });
  });
  const file = join(folder, 'server.conf');
  writeFileSync(file, text);
  return loadConfig({ file });
}

test('a generated configuration file without values sets no keys', (t) => {
  t.is(parseProperties(configurationFile(new Map())).size, 0);
});

test('a generated configuration file lists every key with its default', (t) => {
  const text = configurationFile(new Map()).replaceAll(/^#(?=[a-z])/gm, '');
  const config = load(t, text);
  t.deepEqual(config.notices, []);
  const defaults = loadConfig({});
  for (const key of Object.values(KEYS)) {
    t.is(config.source(key), 'conf', key.name);
    t.deepEqual(config.get(key as never), defaults.get(key as never), key.name);
  }
});

test('values in a generated configuration file are read back unchanged', (t) => {
  const values = new Map([
    ['http.user', 'a \\ b'],
    ['http.password', ' #=:!\ttab\nline'],
    ['http.net.bind.to', '127.0.0.1:1234'],
    ['pg.password.file', '/proc/self/none'],
  ]);
  const read = parseProperties(configurationFile(values));
  t.deepEqual(Object.fromEntries(read), Object.fromEntries(values));
});

test('no line of a generated configuration file exceeds 100 characters', (t) => {
  const long = configurationFile(new Map())
    .split('\n')
    .filter((line) => line.length > 100);
  t.deepEqual(long, []);
});
