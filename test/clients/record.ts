/**
 * Records a PostgreSQL server's responses to the statements in `recorded` and to psql commands:
 * `npm run record-clients -- PORT`. The server must be version 15, trust `admin` and have an empty
 * database `qdb`. Needed only if the statements change.
 */
import { writeFileSync } from 'node:fs';

import pg from 'pg';

import {
  type Answer,
  ANSWERS_FILE,
  answerTo,
  PSQL_COMMANDS,
  recordedStatements,
  recordedTools,
  SCHEMA,
} from './statements.js';
import { headings, psqlFor } from './psql.js';

const port = Number(process.argv[2]);
const server = { host: '127.0.0.1', port, user: 'admin', password: 'quest', database: 'qdb' };

const first = new pg.Client(server);
await first.connect();
await first.query('DROP VIEW IF EXISTS rec_hourly; DROP TABLE IF EXISTS rec_readings');
for (const statement of recordedStatements(SCHEMA)) {
  await answerTo(first, statement);
}
const tools: Record<string, Record<string, Answer>> = {};
for (const tool of recordedTools()) {
  const client = new pg.Client(server);
  await client.connect();
  const answers: Record<string, Answer> = {};
  for (const statement of recordedStatements(tool)) {
    const answer = await answerTo(client, statement);
    if (typeof answer === 'string') {
      throw new Error(`${tool}, ${statement.name}: ${answer}`);
    }
    answers[statement.name] = answer;
  }
  tools[tool] = answers;
  await client.end();
}
const psql: Record<string, readonly string[]> = {};
const run = psqlFor(port);
for (const command of PSQL_COMMANDS) {
  psql[command] = headings(await run(command));
}
await first.end();
writeFileSync(ANSWERS_FILE, `${JSON.stringify({ tools, psql }, null, 2)}\n`);
