// Each ava worker loads this module. It appends the worker's duration, from process start to
// process end, to a file that `npm test` reads.
import { appendFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import test from 'ava';

import { nameOfTests } from './test-times.mjs';

const clock = process.env.TIDEMARK_TEST_CLOCK;

if (clock !== undefined) {
  process.once('exit', () => {
    const file = nameOfTests(fileURLToPath(test.meta.file));
    const seconds = Math.round(performance.now() / 100) / 10;
    appendFileSync(clock, `${JSON.stringify([file, seconds])}\n`);
  });
}
