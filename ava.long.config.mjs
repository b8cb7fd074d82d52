// Tests of limits that take too long for `npm test`, or do not hold yet: docs/reliability.md.
export default {
  files: ['build/test/limits/hostile-functions.test.js', 'build/test/limits/fair-shares.js'],
  timeout: '20m',
  workerThreads: false,
};
