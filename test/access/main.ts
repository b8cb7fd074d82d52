/**
 * `npm run access-model -- --sequences 100000 --seed 7`: compares the grants with the reference
 * model.
 */
import { parseArgs } from 'node:util';

import { differences } from './sequences.js';

const { values } = parseArgs({
  options: {
    sequences: { type: 'string', default: '100000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const found = differences(Number(values.sequences), Number(values.seed));
for (const difference of found.slice(0, 10)) {
  process.stdout.write(`${difference}\n`);
}
process.stdout.write(
  `${values.sequences} sequences, seed ${values.seed}: ${found.length} differences\n`,
);
process.exitCode = found.length === 0 ? 0 : 1;
