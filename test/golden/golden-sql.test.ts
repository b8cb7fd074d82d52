/** The SQL dialect must give the same answers as QuestDB. */
import { sqlCases } from './cases.js';
import { declareSuite } from './declare.js';
import { runSqlSuite } from './run.js';

declareSuite(
  'sql',
  sqlCases().map(({ id }) => id),
  () => runSqlSuite(),
);
