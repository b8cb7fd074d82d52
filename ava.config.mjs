// Test files start in descending order of their duration, so that no long file is left running
// alone at the end. Durations come from the last recorded run (scripts/test-times.mjs). More files
// run at once than there are cores, because many tests only wait for time to pass.
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
