/** The HTTP interface must give the same answers as QuestDB. */
import { httpCases } from './cases.js';
import { declareSuite } from './declare.js';
import { runHttpSuite } from './run.js';

declareSuite(
  'http',
  httpCases().map(({ id }) => id),
  () => runHttpSuite(),
);
