/**
 * Records QuestDB's results for the values in `peer-cases.ts`: `npm run line-peer --
 * http://127.0.0.1:PORT` writes `test/line/peer.json`.
 */
import { writeFileSync } from 'node:fs';

import { outcomes } from './peer-cases.js';

const [, , url = 'http://127.0.0.1:9000'] = process.argv;
const path = new URL('../../../test/line/peer.json', import.meta.url);
writeFileSync(path, `${JSON.stringify(await outcomes({ url }), null, 2)}\n`);
