// Tests of limits that take too long for `npm test`, or do not hold yet: docs/reliability.md.
export default {
  files: [
    'build/test/limits/adversarial-functions.test.js',
    'build/test/limits/fair-scheduling.js',
  ],
  timeout: '20m',
  workerThreads: false,
};
