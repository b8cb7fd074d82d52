// npm run crash-sim -- --states N --seed S, and the other harnesses written in Rust: builds one
// and runs it. See docs/reliability.md.
import { join } from 'node:path';

import { must, run, targetDirectory } from './steps.mjs';

const [name = '', ...args] = process.argv.slice(2);
// Built with the whole workspace: a package alone would compile its dependencies once more.
await must('cargo', ['build', '--release', '--workspace', '--bin', name]);
const { code } = await run(join(targetDirectory, 'release', name), args);
process.exitCode = code;
