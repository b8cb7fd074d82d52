/** The HTTP interface as the peer answers it. */
import { httpCases } from './cases.js';
import { declareSuite } from './declare.js';
import { runHttpSuite } from './run.js';

declareSuite(
  'http',
  httpCases().map(({ id }) => id),
  () => runHttpSuite(),
);
