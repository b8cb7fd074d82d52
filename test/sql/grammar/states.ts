/**
 * The items that run. `pending.json` lists the items whose statements do not run yet. The list may
 * only get shorter: `node build/test/sql/grammar/main.js --update` removes the items that now run.
 */
import { readFileSync, writeFileSync } from 'node:fs';

import { parse, SyntaxError_ } from '../../../ts/sql/index.js';
import { startAccessServer } from '../../access/harness.js';
import { execute } from '../../golden/http-client.js';
import { startTestServer } from '../../golden/server.js';
import { runAccessItem } from './access-states.js';
import { ITEMS, type Item } from './index.js';

const PENDING = new URL('../../../../test/sql/grammar/pending.json', import.meta.url);

/** Returns the ids of the items that do not run yet. */
export function readPending(): readonly string[] {
  return JSON.parse(readFileSync(PENDING, 'utf8')) as readonly string[];
}

export function writePending(ids: readonly string[]): void {
  writeFileSync(PENDING, `${JSON.stringify(ids, null, 2)}\n`);
}

const FAST = ['cairo.commit.mode=nosync', 'log.level=error'];

/** Tables available to every item. */
export const TABLES = [
  `CREATE TABLE t (ts TIMESTAMP, k SYMBOL, s VARCHAR, i INT, l LONG, d DOUBLE, f FLOAT, b BOOLEAN,
    u UUID, g GEOHASH(5c), ip IPV4, dt DATE, ch CHAR)
    TIMESTAMP(ts) PARTITION BY DAY WAL`,
  `INSERT INTO t VALUES
    ('2026-05-01T10:00:00', 'a', 'abc', 1, 10, 1.5, 0.5, true,
      '6f0d1a52-6f3e-4c4e-9d7c-0a5b1c2d3e4f', #u33d8, '10.0.0.1', '2026-05-01', 'x'),
    ('2026-05-02T11:30:00', 'b', 'bcd', 2, 20, 2.5, 1.5, false, null, #u33d9, '10.0.0.2',
      '2026-05-02', 'y'),
    ('2026-05-02T12:00:00', 'a', null, 3, 30, 3.5, 2.5, true, null, null, null, null, null)`,
  `CREATE TABLE w (ts TIMESTAMP, k SYMBOL, i INT, c DECIMAL(10, 2), a DOUBLE[], aa DOUBLE[][])
    TIMESTAMP(ts) PARTITION BY DAY WAL`,
  `INSERT INTO w VALUES
    ('2026-05-01', 'a', 1, 1.50m, ARRAY[1.0, 2.0, 3.0], ARRAY[[1.0, 2.0], [3.0, 4.0]]),
    ('2026-05-02', 'b', 2, 2.50m, ARRAY[4.0], ARRAY[[5.0], [6.0]]),
    ('2026-05-03', 'c', 3, null, null, null)`,
  'CREATE TABLE r (ts TIMESTAMP, k SYMBOL, i INT, d DOUBLE) TIMESTAMP(ts) PARTITION BY DAY WAL',
  `INSERT INTO r VALUES ('2026-05-01T09:59:59', 'a', 1, 10.0),
    ('2026-05-01T10:00:01', 'b', 2, 20.0), ('2026-05-02T11:29:00', 'b', 2, 30.0)`,
  'CREATE TABLE nano (ts TIMESTAMP_NS, k SYMBOL, v DOUBLE) TIMESTAMP(ts) PARTITION BY DAY WAL',
  "INSERT INTO nano VALUES ('2026-05-01T09:00:00.000000001', 'a', 7.0)",
  'CREATE TABLE j (ts TIMESTAMP, body VARCHAR, nested VARCHAR) TIMESTAMP(ts) PARTITION BY DAY WAL',
  `INSERT INTO j VALUES ('2026-05-01', '[{"name": "x", "n": 1, "at": "2026-05-01T10:00:00Z"}]',
    '{"items": [{"n": 1}]}')`,
];

/** Returns the problem with each runnable item; `null` if it runs. */
export async function runItems(
  choose: (id: string) => boolean = () => true,
): Promise<ReadonlyMap<string, string | null>> {
  const chosen = ITEMS.filter(({ id, statements }) => choose(id) && statements.length > 0);
  const plain = await runPlainItems(chosen.filter(({ hasUsers }) => hasUsers !== true));
  const withUsers = await runAccessItems(chosen.filter(({ hasUsers }) => hasUsers === true));
  return new Map([...plain, ...withUsers]);
}

async function runPlainItems(items: readonly Item[]): Promise<ReadonlyMap<string, string | null>> {
  const server = await startTestServer({ set: FAST });
  const results = new Map<string, string | null>();
  let tidy = false;
  try {
    for (const item of items) {
      if (!tidy) {
        await setUp(server.url);
      }
      results.set(item.id, await runItem(server.url, item));
      tidy = item.statements.every((text) => /^\s*(?:\(|select|with|t\b|r\b|explain)/i.test(text));
    }
  } finally {
    await server.stop();
  }
  return results;
}

async function runAccessItems(items: readonly Item[]): Promise<ReadonlyMap<string, string | null>> {
  const server = await startAccessServer(undefined, ...FAST);
  const results = new Map<string, string | null>();
  try {
    for (const item of items) {
      results.set(item.id, await runAccessItem(server, TABLES, item));
    }
  } finally {
    await server.stop();
  }
  return results;
}

/** Drops every table and creates the tables that the items read. */
export async function setUp(base: string): Promise<void> {
  // A failure here shows up again, with its reason, in the items that need the table.
  for (const text of ['DROP ALL TABLES', ...TABLES]) {
    await query(base, text);
  }
}

interface Outcome {
  readonly status: number;
  readonly message: string;
  readonly position: number;
}

async function query(base: string, text: string): Promise<Outcome> {
  const reply = await execute(base, text);
  if (reply.status === 200) {
    return { status: 200, message: '', position: 0 };
  }
  const body = reply.body.toString('utf8');
  try {
    const { error, position } = JSON.parse(body) as { error?: string; position?: number };
    return { status: reply.status, message: error ?? '', position: position ?? -1 };
  } catch {
    return { status: reply.status, message: body, position: -1 };
  }
}

async function runItem(base: string, { kind, statements }: Item): Promise<string | null> {
  for (const [index, text] of statements.entries()) {
    // A plain HTTP request has no parameter values.
    if (hasParameters(text)) {
      continue;
    }
    const outcome = await query(base, text);
    const mustFail = kind === 'refused' && index === statements.length - 1;
    const problem =
      mustFail || kind === 'elsewhere' ? refusal(text, outcome, mustFail) : failure(text, outcome);
    if (problem !== null) {
      return problem;
    }
  }
  return null;
}

function hasParameters(text: string): boolean {
  try {
    return parse(text).nodes.some(({ kind }) => kind === 'Parameter');
  } catch (error) {
    if (error instanceof SyntaxError_) {
      return false;
    }
    throw error;
  }
}

function failure(text: string, { status, message, position }: Outcome): string | null {
  return status === 200 ? null : `${text}: ${status} at ${position}: ${message}`;
}

/** A refusal must be a client error, and its position must be within the text. */
function refusal(text: string, outcome: Outcome, mustFail: boolean): string | null {
  const { status, message, position } = outcome;
  if (status === 200) {
    return mustFail ? `${text}: accepted` : null;
  }
  const inside = position >= 0 && position <= text.length && message !== '';
  return status < 500 && inside ? null : `${text}: ${status} at ${position}: ${message}`;
}
