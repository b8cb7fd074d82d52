/** The committed documentation matches the registry. */
import { readFileSync } from 'node:fs';

import test from 'ava';

import { configurationDocument } from '../../ts/config/index.js';

test('docs/configuration.md is up to date', (t) => {
  const path = new URL('../../../docs/configuration.md', import.meta.url);
  t.is(readFileSync(path, 'utf8'), configurationDocument(), 'npm run configuration-docs');
});
