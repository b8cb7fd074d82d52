/** The HTTP interface where an answer different from QuestDB's was decided on. */
import { decidedCases } from './cases.js';
import { declareSuite } from './declare.js';
import { runDecidedSuite } from './run.js';

declareSuite(
  'decided',
  decidedCases().map(({ id }) => id),
  () => runDecidedSuite(),
);
