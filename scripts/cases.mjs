// npm run cases -- [PATH] [--complete]: the SQL cases of test/sql/cases, whose path contains PATH.
// With --complete what the statements answer now is written into them.
import { run } from './steps.mjs';

// With the whole workspace, as `npm test`: a package alone would compile its dependencies again.
const args = ['test', '--release', '--quiet', '--workspace', '--exclude', 'tidemark-native'];
const { code } = await run('cargo', [...args, '--test', 'cases', '--', ...process.argv.slice(2)]);
process.exitCode = code;
