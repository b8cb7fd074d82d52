/** The golden cases on disk, and the lists that accompany them. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import type { HttpCase } from './http-runner.js';
import { parseSqlCase, type SqlCase } from './sql-runner.js';

/** Tests run from `build/`, but the data stays in the source folder. */
const FOLDER = new URL('../../../test/golden/', import.meta.url);

export const SUITES = ['http', 'sql', 'decided'] as const;
export type Suite = (typeof SUITES)[number];

/**
 * Returns the ids of cases in which Tidemark intentionally differs from QuestDB, with the reasons.
 * These cases are not run.
 */
export function superseded(suite: 'http' | 'sql'): ReadonlyMap<string, string> {
  const list = readJson(`${suite}/superseded.json`) as Record<string, string>;
  return new Map(Object.entries(list));
}

export function httpCases(): readonly HttpCase[] {
  const skipped = superseded('http');
  const files = ['exec', 'exp', 'imp', 'service', 'auth'];
  const cases = files.flatMap((name) => readJson(`http/${name}.json`) as HttpCase[]);
  return cases.filter(({ id }) => !skipped.has(id));
}

/** Returns the cases in which Tidemark intentionally answers differently. */
export function decidedCases(): readonly HttpCase[] {
  return readJson('decided.json') as HttpCase[];
}

export function sqlCases(): readonly SqlCase[] {
  const skipped = superseded('sql');
  const files = readdirSync(new URL('sql/', FOLDER)).filter((name) => name.endsWith('.jsonl'));
  const lines = files
    .sort()
    .flatMap((name) => readFileSync(new URL(`sql/${name}`, FOLDER), 'utf8').split('\n'));
  const cases = lines.filter((line) => line.trim() !== '').map(parseSqlCase);
  return cases.filter(({ id }) => !skipped.has(id));
}

/** Ids of cases that do not pass yet. The list may only get shorter. */
export type Pending = Readonly<Record<Suite, readonly string[]>>;

export function readPending(): Pending {
  return readJson('pending.json') as Pending;
}

export function writePending(pending: Pending): void {
  const sorted = Object.fromEntries(SUITES.map((suite) => [suite, [...pending[suite]].sort()]));
  const path = fileURLToPath(new URL('pending.json', FOLDER));
  writeFileSync(path, `${JSON.stringify(sorted, null, 2)}\n`);
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, FOLDER), 'utf8'));
}
