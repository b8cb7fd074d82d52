// npm run crash-sim -- --states N --seed S (likewise for the other Rust harnesses): builds a
// harness and runs it. See docs/reliability.md.
import { join } from 'node:path';

import { must, run, targetDirectory } from './steps.mjs';

const [name = '', ...args] = process.argv.slice(2);
// Builds the whole workspace, because building a single package would compile its dependencies
// again.
await must('cargo', ['build', '--locked', '--release', '--workspace', '--bin', name]);
const { code } = await run(join(targetDirectory, 'release', name), args);
process.exitCode = code;
