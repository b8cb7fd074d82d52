/** The HTTP interface where an answer different from QuestDB's was decided. */
import { decidedCases } from './cases.js';
import { declareSuite } from './declare.js';
import { runDecidedSuite } from './run.js';

declareSuite(
  'decided',
  decidedCases().map(({ id }) => id),
  () => runDecidedSuite(),
);
