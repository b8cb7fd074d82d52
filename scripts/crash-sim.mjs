// npm run crash-sim -- --states N --seed S: simulated crashes through the real storage code.
import { join } from 'node:path';

import { must, run, targetDirectory } from './steps.mjs';

// Built with the whole workspace: a package alone would compile its dependencies once more.
await must('cargo', ['build', '--release', '--workspace', '--bin', 'crash-sim']);
const { code } = await run(join(targetDirectory, 'release', 'crash-sim'), process.argv.slice(2));
process.exitCode = code;
