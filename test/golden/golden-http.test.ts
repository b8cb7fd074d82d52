/** The HTTP interface, with the answers of QuestDB. */
import { httpCases } from './cases.js';
import { declareSuite } from './declare.js';
import { runHttpSuite } from './run.js';

declareSuite(
  'http',
  httpCases().map(({ id }) => id),
  () => runHttpSuite(),
);
