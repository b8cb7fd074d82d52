/**
 * Golden `/imp` answers that need no server: detection, schema, messages, both response formats.
 */
import { readFileSync } from 'node:fs';

import test from 'ava';

import { FakeDatabase } from './fake-database.js';
import { type TestPart, send } from './requests.js';

interface GoldenCase {
  readonly id: string;
  readonly setup?: readonly string[];
  readonly request: {
    readonly path: string;
    readonly params?: readonly (readonly [string, string])[];
    readonly multipart?: readonly TestPart[];
  };
  readonly expect: {
    readonly status: number;
    readonly body?: string;
    readonly headers?: Readonly<Record<string, string>>;
  };
}

function load(name: string): unknown {
  return JSON.parse(readFileSync(`test/golden/http/${name}.json`, 'utf8'));
}

/**
 * An intentional difference. QuestDB infers CHAR for these columns: one value does not fit, but the
 * one-letter header counts as a value that does. QuestDB then truncates the value that does not
 * fit.
 */
const LOSES_DATA: ReadonlySet<string> = new Set(['imp-empty-quoted', 'imp-tabular-long-name']);

const superseded = new Set(Object.keys(load('superseded') as Record<string, string>));
const cases = (load('imp') as readonly GoldenCase[]).filter(
  ({ id, expect, request }) =>
    !superseded.has(id) &&
    !LOSES_DATA.has(id) &&
    expect.body !== undefined &&
    expect.status === 200 &&
    request.path === '/imp' &&
    request.multipart !== undefined,
);

/**
 * Creates the tables in setups such as `create table gc_imp (a int, …) timestamp(ts) partition by
 * day`.
 */
function applySetup(database: FakeDatabase, statements: readonly string[]): void {
  for (const statement of statements) {
    const parts =
      /^create table '?([\w ]+?)'? \((.*?)\)(?: timestamp\((\w+)\) partition by (\w+))?/.exec(
        statement,
      );
    if (parts === null) {
      continue;
    }
    const [, name = '', columns = '', timestamp = null, unit = 'none'] = parts;
    database.tables.set(name, {
      metadata: {
        name,
        columns: columns.split(', ').map((column) => {
          const [columnName = '', type = ''] = column.split(' ');
          const designated = columnName === timestamp;
          return { name: columnName, type: type.toUpperCase(), designated };
        }),
        partitionBy: unit.toUpperCase(),
        timestamp,
      },
      rows: [],
    });
  }
}

for (const { id, setup, request, expect } of cases) {
  test(id, async (t) => {
    const database = new FakeDatabase();
    applySetup(database, setup ?? []);
    const answer = await send(database, request.params ?? [], request.multipart ?? []);
    t.is(answer.body, expect.body ?? '');
    t.is(answer.status, expect.status);
    t.is(answer.contentType, expect.headers?.['Content-Type'] ?? answer.contentType);
  });
}
