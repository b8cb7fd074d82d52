// Files of tests begin in the order of how long they took, the longest first: none of them is left
// alone at the end. There are more of them than cores, since many wait for a time to pass. The
// seconds are those of the last recorded run (scripts/test-times.mjs).
import { nameOfTests, recordedSeconds } from './scripts/test-times.mjs';

const seconds = recordedSeconds('ts');
const of = (file) => seconds.get(nameOfTests(file)) ?? 0;

export default {
  files: ['build/test/**/*.test.js'],
  timeout: '10m',
  concurrency: 3,
  workerThreads: false,
  require: ['./scripts/test-clock.mjs'],
  sortTestFiles: (one, other) => of(other) - of(one),
};
