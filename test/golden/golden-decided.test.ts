/** The HTTP interface where it was decided to answer otherwise than the peer. */
import { decidedCases } from './cases.js';
import { declareSuite } from './declare.js';
import { runDecidedSuite } from './run.js';

declareSuite(
  'decided',
  decidedCases().map(({ id }) => id),
  () => runDecidedSuite(),
);
