// npm run cases -- [PATH] [--complete]: the SQL cases of test/sql/cases, whose path contains PATH.
// With --complete what the statements answer now is written into them.
import { run, TEST_ALL } from './steps.mjs';

const args = [...TEST_ALL, '--quiet', '--test', 'cases', '--', ...process.argv.slice(2)];
const { code } = await run('cargo', args);
process.exitCode = code;
