/** Values for columns of every type, compared with the results recorded from QuestDB 9.3.4. */
import { readFileSync } from 'node:fs';

import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { type Outcomes, outcomes } from './peer-cases.js';

const PEER = new URL('../../../test/line/peer.json', import.meta.url);
/** The reason for each difference is in docs/dialect-differences.md. */
const DIFFERING = new URL('../../../test/line/differing.json', import.meta.url);

test('values are converted as in QuestDB, except for the listed differences', async (t) => {
  const peer = JSON.parse(readFileSync(PEER, 'utf8')) as Outcomes;
  const server = await startTestServer();
  const ours = await outcomes(server);
  await server.stop();
  const differing = Object.entries(ours).filter(([key, outcome]) => peer[key] !== outcome);
  const shown = differing.map(([key, outcome]) => `${key}: ${peer[key] ?? ''} → ${outcome}`);
  const known = JSON.parse(readFileSync(DIFFERING, 'utf8')) as readonly string[];
  t.deepEqual(shown, known);
});
