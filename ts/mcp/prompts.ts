/** Prompts: writing SQL for this database, exploring a table, and diagnosing a slow query. */
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { GetPromptResult } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

import { uriOf } from './document-tools.js';
import { failureText } from './failure.js';
import { DATA_IS_DATA } from './query-tools.js';
import { run } from './rows.js';
import type { Setting } from './setting.js';
import { completions } from './table-resources.js';
import { describeTable } from './table-tools.js';

const PRIMER = 'time-series.md';
const MAX_TABLES = 20;
const MAX_PLAN_LINES = 1_000;

const RULES = `The database is Tidemark, with QuestDB's SQL dialect. Differences from other SQL:
- A table has a designated timestamp. Filter it in each query of a large table, with interval
  strings: ts IN '2026-03', ts IN '$now - 1h..$now'.
- SAMPLE BY 1h groups rows into calendar-aligned buckets; FILL(PREV), FILL(NULL) or FILL(LINEAR)
  fills gaps. It needs no GROUP BY: the columns that are not aggregates are the keys.
- LATEST ON ts PARTITION BY key returns the newest row of each key.
- ASOF JOIN, LT JOIN, SPLICE JOIN and WINDOW JOIN join rows by time; ON adds key columns.
- LIMIT n returns the first n rows, LIMIT -n the last n rows, LIMIT a, b the rows between a and b.
- Names with special characters are in double quotes, strings in single quotes.
- Pass values as parameters ($1, $2, …) and not in the statement text.
Check a statement with check_query before query. If it is rejected, read the position and the
hint, and use search_docs before the next attempt.`;

export function addPrompts(server: McpServer, setting: Setting): void {
  addWriteSql(server, setting);
  addExploreTable(server, setting);
  addDiagnose(server, setting);
}

function addWriteSql(server: McpServer, setting: Setting): void {
  const config = {
    title: 'Write SQL',
    description: 'Answers a question with SQL, using the dialect rules, tables and documentation.',
    argsSchema: {
      question: z.string().describe('The question to answer.'),
      tables: z.string().optional().describe('Comma-separated table names.'),
    },
  };
  server.registerPrompt('write_sql', config, async ({ question, tables }, { signal }) => {
    const names = (tables ?? '')
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '')
      .slice(0, MAX_TABLES);
    const schemas = await Promise.all(names.map((name) => schemaText(setting, name, signal)));
    const shown = names.length === 0 ? 'Find the tables with list_tables first.' : '';
    const text = [RULES, shown, ...schemas, `Question: ${question}`];
    return promptOf(text, setting);
  });
}

function addExploreTable(server: McpServer, setting: Setting): void {
  const config = {
    title: 'Explore a table',
    description: 'Explores a table: its columns, time range, values, and possible questions.',
    argsSchema: { table: tableName(setting) },
  };
  server.registerPrompt('explore_table', config, async ({ table }, { signal }) => {
    const steps = `Explore the table '${table}' and describe its content:
1. the meaning of its columns, from their names and from sample_table;
2. its first and last timestamp, and its number of rows per day, with SAMPLE BY;
3. for each SYMBOL column, the number of distinct values and the most frequent ones;
4. for each numeric column, the minimum, maximum, average and number of nulls;
5. three questions that it can answer, each with a query that you have run.
Request few rows at a time, and limit each query of a large table to a time range.`;
    return promptOf(
      [RULES, await schemaText(setting, table, signal), steps, DATA_IS_DATA],
      setting,
    );
  });
}

function addDiagnose(server: McpServer, setting: Setting): void {
  const config = {
    title: 'Find out why a query is slow',
    description: 'Analyses a query plan and makes the query faster.',
    argsSchema: { sql: z.string().describe('The query.') },
  };
  server.registerPrompt('diagnose_slow_query', config, async ({ sql }, { signal }) => {
    const steps = `Find out why the query is slow, and make it faster:
1. Does the plan read only the required time range? A condition on the designated
   timestamp inside a function reads everything: write ts IN '…' or ts >= … AND ts < ….
2. Does it read only the required columns? Name them instead of *.
3. Run explain with analyze, first for a short time range. Which step has the most
   rows or takes longest?
4. Could LATEST ON, SAMPLE BY or ASOF JOIN replace a window function or a self-join?
5. Is the same aggregate queried repeatedly? A materialized view stores it:
   materialized-views.md.
Compare the rows of the old and the new query before you propose it.`;
    const fence = fenceFor(sql);
    const queryText = `Query:\n\n${fence}sql\n${sql}\n${fence}`;
    return promptOf([RULES, queryText, await planText(setting, sql, signal), steps], setting);
  });
}

function tableName(setting: Setting) {
  return completable(z.string().describe('Name of a table or view.'), (start) =>
    completions(setting, start),
  );
}

async function schemaText(setting: Setting, table: string, signal: AbortSignal): Promise<string> {
  try {
    const described = JSON.stringify(await describeTable(setting, table, signal), null, 2);
    const fence = fenceFor(described);
    return `Output of describe_table for '${table}':\n\n${fence}json\n${described}\n${fence}`;
  } catch (error) {
    return `describe_table failed for '${table}':\n\n${failureText(error)}`;
  }
}

async function planText(setting: Setting, sql: string, signal: AbortSignal): Promise<string> {
  const { limits } = setting;
  const question = { sql: `EXPLAIN ${sql}`, take: MAX_PLAN_LINES };
  const waiting = { limits, timeoutMs: limits.timeoutMs, signal };
  try {
    const { rows } = await run(setting.open('read'), question, waiting);
    return `Query plan:\n\n\`\`\`\n${rows.map(([line]) => String(line)).join('\n')}\n\`\`\``;
  } catch (error) {
    return `EXPLAIN failed:\n\n${failureText(error, question.sql)}`;
  }
}

/** Returns a code fence that is longer than any in the text. */
function fenceFor(text: string): string {
  const maxBackticks = Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  return '`'.repeat(Math.max(3, maxBackticks + 1));
}

/** Includes the SQL reference as a resource. */
function promptOf(parts: readonly string[], { documents }: Setting): GetPromptResult {
  const text = parts.filter((part) => part !== '').join('\n\n');
  const manual = documents.page(PRIMER);
  const resource =
    manual === null
      ? []
      : [{ uri: uriOf(PRIMER), mimeType: 'text/markdown', text: manual.text }].map((page) => ({
          role: 'user' as const,
          content: { type: 'resource' as const, resource: page },
        }));
  return { messages: [...resource, { role: 'user', content: { type: 'text', text } }] };
}
