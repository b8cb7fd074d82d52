/**
 * npm run sweep -- [--only TEXT] [--most N] [--timeout MS] [--protocol http|pgwire] [--quiet]
 *
 * Runs all grammar constructs with few and with far too many repetitions: see `sweep.ts`.
 */
import { parseArgs } from 'node:util';

import { CONSTRUCTS } from './constructs.js';
import { type Protocol, sweep } from './sweep.js';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    most: { type: 'string' },
    timeout: { type: 'string', default: '2000' },
    margin: { type: 'string', default: '500' },
    protocol: { type: 'string', multiple: true, default: ['http', 'pgwire'] },
    quiet: { type: 'boolean', default: false },
  },
});

const maximum = Number(values.most ?? Infinity);
const outcomes = await sweep(
  CONSTRUCTS.filter(({ name }) => name.includes(values.only ?? '')),
  {
    protocols: values.protocol as Protocol[],
    timeoutMs: Number(values.timeout),
    marginMs: Number(values.margin),
    accepts: (_, count) => count <= maximum,
    report: ({ name, count, protocol, answer, wallMs, cpuMs, peakMebibytes, problem }) => {
      if (!values.quiet || problem !== null) {
        const numbers = `${wallMs} ms, ${cpuMs} ms of CPU, ${peakMebibytes} MiB`;
        const verdict = problem === null ? 'ok' : problem.toUpperCase();
        process.stdout.write(`${name} × ${count} ${protocol}: ${numbers}: ${verdict}: ${answer}\n`);
      }
    },
  },
);
const failed = outcomes.filter(({ problem }) => problem !== null).length;
process.stdout.write(`${outcomes.length - failed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
