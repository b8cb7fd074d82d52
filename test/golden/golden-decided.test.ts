/** HTTP answers that intentionally differ from QuestDB's. */
import { decidedCases } from './cases.js';
import { declareSuite } from './declare.js';
import { runDecidedSuite } from './run.js';

declareSuite(
  'decided',
  decidedCases().map(({ id }) => id),
  () => runDecidedSuite(),
);
