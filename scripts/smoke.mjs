// Checks that the built addon and the bundled server work on this machine: creates, queries and
// closes a database.     node scripts/smoke.mjs
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { open } from '../build/server/index.js';

const directory = mkdtempSync(join(tmpdir(), 'tidemark-smoke-'));
const database = await open({ root: join(directory, 'data') });
await database.execute('CREATE TABLE smoke (a INT)');
await database.execute('INSERT INTO smoke VALUES (3), (4)');
const [row] = await database.query('SELECT sum(a) AS total FROM smoke');
await database.close();
rmSync(directory, { recursive: true, force: true });
const total = Number(row?.total);
console.log(total === 7 ? 'the database answers' : `expected 7, found ${total}`);
// Native threads must not keep a finished process alive.
process.exit(total === 7 ? 0 : 1);
