// npm run cases -- [PATH] [--complete]: runs the SQL cases in test/sql/cases whose path contains
// PATH. With --complete, writes the current results into the cases.
import { run, TEST_ALL } from './steps.mjs';

const args = [...TEST_ALL, '--quiet', '--test', 'cases', '--', ...process.argv.slice(2)];
const { code } = await run('cargo', args);
process.exitCode = code;
