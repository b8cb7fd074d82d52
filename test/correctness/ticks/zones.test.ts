/**
 * All functions that take a time zone accept the same names, with the same offsets, as QuestDB
 * (`zones.json`: minutes in January and July 2025, or null), apart from intentional differences.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';

import { execute } from '../../golden/http-client.js';
import { startTestServer, type TestServer } from '../../golden/server.js';
import { quoted } from './answers.js';

type Offsets = readonly [winter: number, summer: number] | null;

const RECORDED = join(import.meta.dirname, '../../../..', 'test/correctness/ticks/zones.json');
const NAMES = JSON.parse(readFileSync(RECORDED, 'utf8')) as Readonly<Record<string, Offsets>>;

/** Intentional differences from QuestDB. */
const DECIDED: Readonly<Record<string, Offsets>> = {
  ACDT: [630, 570],
  BST: [0, 60],
  // Ambiguous or unknown abbreviations.
  ...Object.fromEntries(
    ['ACT', 'AMST', 'AMT', 'ART', 'EAST', 'ECT', 'GDT', 'IDT', 'IST', 'SDT', 'SST'].map((name) => [
      name,
      null,
    ]),
  ),
  // QuestDB ignores the sign after these names.
  ...Object.fromEntries(
    Array.from({ length: 27 }, (_, index) => index - 14)
      .filter((hours) => hours !== 0)
      .map((hours) => [`Etc/GMT${hours > 0 ? '+' : ''}${hours}`, [-60 * hours, -60 * hours]]),
  ),
  'GMT+1': [60, 60],
  'UTC-5': [-300, -300],
  // Names with surrounding spaces, as they may occur in parameters.
  ' Europe/Berlin': [60, 120],
  '+01:00:30': null,
  'GMT+': null,
};

function expected(name: string): Offsets {
  const isOfJava = name.startsWith('SystemV/');
  return name in DECIDED ? (DECIDED[name] ?? null) : isOfJava ? null : (NAMES[name] ?? null);
}

const AT_ONCE = 8;
const NOON = ['2025-01-15T12:00:00.000000Z', '2025-07-15T12:00:00.000000Z'] as const;

interface ZoneUse {
  readonly name: string;
  /**
   * Builds a statement, or a constant expression, from a quoted noon timestamp and a quoted zone.
   */
  readonly sql: (noon: string, zone: string) => string;
  /** Returns the minutes east of UTC that the result implies. */
  readonly minutes: (cell: string, noon: string) => number;
}

const between = (later: string, earlier: string): number =>
  (Date.parse(later) - Date.parse(earlier)) / 60_000;
const DAY = 1_440;
/**
 * Derives the offset, less than a day, from the distance between local midnight and UTC midnight.
 */
const ofMidnight = (cell: string, noon: string): number => {
  const before = between(`${noon.slice(0, 10)}T00:00:00Z`, cell);
  return ((before % DAY) + DAY) % DAY;
};

const EXPRESSIONS: readonly ZoneUse[] = [
  {
    name: 'to_timezone',
    sql: (noon, zone) => `to_timezone(${noon}::timestamp, ${zone})`,
    minutes: between,
  },
  {
    name: 'to_utc',
    sql: (noon, zone) => `to_utc(${noon}::timestamp, ${zone})`,
    minutes: (cell, noon) => between(noon, cell),
  },
  {
    name: 'AT TIME ZONE',
    sql: (noon, zone) => `${noon}::timestamp AT TIME ZONE ${zone}`,
    minutes: between,
  },
  {
    name: 'nanoseconds',
    sql: (noon, zone) => `to_timezone(${noon}::timestamp_ns, ${zone})`,
    minutes: between,
  },
  {
    name: 'timestamp_floor',
    sql: (noon, zone) => `timestamp_floor('1m', ${noon}::timestamp, null, '00:00', ${zone})`,
    minutes: between,
  },
];

const STATEMENTS: readonly ZoneUse[] = [
  {
    name: 'a zone of each row',
    sql: (noon, zone) => `SELECT to_timezone(ts, ${zone}) FROM noons WHERE ts = ${noon}`,
    minutes: between,
  },
  {
    name: 'SAMPLE BY',
    sql: (noon, zone) =>
      `SELECT ts, count() FROM noons WHERE ts = ${noon} SAMPLE BY 1d ` +
      `ALIGN TO CALENDAR TIME ZONE ${zone}`,
    minutes: ofMidnight,
  },
  {
    name: 'an interval text',
    sql: (noon, zone) =>
      `SELECT min(ts) FROM minutes WHERE ts IN '${noon.slice(1, 11)}@${zone.slice(1)}`,
    minutes: ofMidnight,
  },
];

type Cells = readonly (string | null)[];

/** Returns the first row; null if the zone is refused. */
async function query(server: TestServer, sql: string): Promise<Cells | null> {
  const reply = await execute(server.url, sql, {});
  const body = JSON.parse(reply.body.toString()) as {
    readonly error?: string;
    readonly dataset?: readonly Cells[];
  };
  if (body.error !== undefined && !/zone/i.test(body.error)) {
    throw new Error(`${sql}: ${body.error}`);
  }
  return body.dataset?.[0] ?? null;
}

/** Returns the results of every entry point for a zone, in order. */
async function cellsOf(server: TestServer, noon: string, zone: string): Promise<Cells> {
  const expressions = EXPRESSIONS.map(({ sql }) => sql(quoted(noon), quoted(zone)));
  const statements = STATEMENTS.map(({ sql }) => sql(quoted(noon), quoted(zone)));
  const all = await query(server, `SELECT ${expressions.join(', ')}`);
  // If one expression is refused, the expressions are run separately.
  const alone = all === null ? expressions.map((sql) => `SELECT ${sql}`) : [];
  const found: (string | null)[] = [...(all ?? [])];
  for (const sql of [...alone, ...statements]) {
    found.push((await query(server, sql))?.[0] ?? null);
  }
  return found;
}

async function start(): Promise<TestServer> {
  const server = await startTestServer();
  for (const sql of [
    'CREATE TABLE noons (ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY',
    `INSERT INTO noons VALUES ${NOON.map((noon) => `('${noon}')`).join(', ')}`,
    'CREATE TABLE minutes (ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY',
    ...NOON.map((noon) => `'${noon.slice(0, 10)}'::timestamp`).map(
      (day) =>
        `INSERT INTO minutes SELECT dateadd('m', x::int - 1441, ${day}) FROM long_sequence(4320)`,
    ),
  ]) {
    await query(server, sql);
  }
  return server;
}

/** Compares whole minutes. Some historical offsets had seconds, but no current offset does. */
function same(use: ZoneUse, found: number, minutes: number): boolean {
  const expected = use.minutes === ofMidnight ? ((minutes % DAY) + DAY) % DAY : minutes;
  return found === expected;
}

/** Returns the problems with a zone name. */
async function problemsOf(server: TestServer, name: string): Promise<string[]> {
  const offsets = expected(name);
  const problems: string[] = [];
  for (const [season, noon] of NOON.entries()) {
    const cells = await cellsOf(server, noon, name);
    for (const [index, use] of [...EXPRESSIONS, ...STATEMENTS].entries()) {
      const cell = cells[index] ?? null;
      const found = cell === null ? null : use.minutes(cell, noon);
      const minutes = offsets?.[season] ?? null;
      const isRight =
        found === null || minutes === null ? found === minutes : same(use, found, minutes);
      if (!isRight) {
        problems.push(`${name} in ${use.name}: ${String(found)} minutes, not ${String(minutes)}`);
      }
    }
  }
  const today = await query(server, `SELECT interval_start(today(${quoted(name)}))`);
  if ((today === null) !== (offsets === null)) {
    problems.push(`${name} in today: ${String(today?.[0])}`);
  }
  return problems;
}

test('every entry point accepts the same time zones', async (t) => {
  t.timeout(300_000);
  const server = await start();
  t.teardown(() => server.stop());
  const names = [...new Set([...Object.keys(NAMES), ...Object.keys(DECIDED)])];
  t.true(names.length > 800);
  const problems: string[] = [];
  for (let from = 0; from < names.length; from += AT_ONCE) {
    const some = names.slice(from, from + AT_ONCE);
    const found = await Promise.all(some.map((name) => problemsOf(server, name)));
    problems.push(...found.flat());
  }
  t.deepEqual(problems.slice(0, 20), [], `${problems.length} answers`);
});
