/** The SQL dialect, with the answers of QuestDB. */
import { sqlCases } from './cases.js';
import { declareSuite } from './declare.js';
import { runSqlSuite } from './run.js';

declareSuite(
  'sql',
  sqlCases().map(({ id }) => id),
  () => runSqlSuite(),
);
