/**
 * The larger tier: `npm run clauses` prints every clause of the grammar table whose removal does
 * not change the bound plan. Most have a good reason (an unused alias, a time condition that
 * becomes a scan range), but an ignored clause would be among them.
 */
import { startTestServer } from '../../golden/server.js';
import { ITEMS } from '../grammar/index.js';
import { setUp } from '../grammar/states.js';
import { unchangedPlans } from './compare.js';

const queries = ITEMS.filter(({ kind, hasUsers }) => kind === 'works' && hasUsers !== true);
const texts = [...new Set(queries.flatMap(({ statements }) => statements))];
const server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
try {
  await setUp(server.url);
  const found = await unchangedPlans(server, texts);
  process.stdout.write(`${found.join('\n')}\n`);
  process.stdout.write(`${texts.length} statements, ${found.length} clauses change no plan\n`);
} finally {
  await server.stop();
}
