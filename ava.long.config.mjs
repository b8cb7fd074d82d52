// Tests of limits that take too long for `npm test` or that do not pass yet; see
// docs/reliability.md.
export default {
  files: [
    'build/test/limits/adversarial-functions.test.js',
    'build/test/limits/fair-scheduling.js',
  ],
  timeout: '20m',
  workerThreads: false,
};
