/**
 * Catalog queries from tools that are hard to install, compared with recorded PostgreSQL responses:
 * column names and types, and the rows unless they depend on the server. `pending.json` lists the
 * differences.
 */
import { readFileSync } from 'node:fs';

import test from 'ava';
import type pg from 'pg';

import { has, PASSWORD, portFor, skip, SOURCES } from './harness.js';
import { headings, psqlFor } from './psql.js';
import {
  type Answer,
  ANSWERS_FILE,
  answerTo,
  isSame,
  PSQL_COMMANDS,
  recordedStatements,
  recordedTools,
  SCHEMA,
} from './statements.js';
import { pgClient } from '../pg-client.js';

const answers = JSON.parse(readFileSync(ANSWERS_FILE, 'utf8')) as {
  readonly tools: Readonly<Record<string, Readonly<Record<string, Answer>>>>;
  readonly psql: Readonly<Record<string, readonly string[]>>;
};
const pending = JSON.parse(
  readFileSync(new URL('recorded/pending.json', SOURCES), 'utf8'),
) as Readonly<Record<string, readonly string[]>>;

async function connected(port: number): Promise<pg.Client> {
  const client = pgClient(`127.0.0.1:${port}`, { password: PASSWORD });
  await client.connect();
  return client;
}

test.serial('the table queried by the recorded statements is created', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const client = await connected(port);
  for (const statement of recordedStatements(SCHEMA)) {
    const answer = await answerTo(client, statement);
    t.not(typeof answer, 'string', JSON.stringify(answer));
  }
  await client.end();
});

for (const tool of recordedTools()) {
  test.serial(`${tool}: statements return the same results as PostgreSQL`, async (t) => {
    const port = await portFor(t);
    if (port === null) {
      return;
    }
    const client = await connected(port);
    const different: string[] = [];
    for (const statement of recordedStatements(tool)) {
      const answer = await answerTo(client, statement);
      const expected = answers.tools[tool]?.[statement.name];
      if (expected === undefined || !isSame(answer, expected)) {
        different.push(statement.name);
        t.log(statement.name, JSON.stringify(answer), JSON.stringify(expected));
      }
    }
    await client.end();
    t.deepEqual(different, pending[tool] ?? []);
  });
}

test.serial('psql: commands print the same headings as with PostgreSQL', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  if (!(await has('psql', '--version'))) {
    skip(t, 'psql is not installed');
    return;
  }
  const run = psqlFor(port);
  const different: string[] = [];
  for (const command of PSQL_COMMANDS) {
    const printed = headings(await run(command));
    if (JSON.stringify(printed) !== JSON.stringify(answers.psql[command])) {
      different.push(command);
      t.log(command, printed, answers.psql[command]);
    }
  }
  t.deepEqual(different, pending['psql'] ?? []);
});
