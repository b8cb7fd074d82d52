/**
 * Grafana's data sources: the provisioning files and queries of `docs/connect/grafana.md`, and the
 * requests that the query editors send. The program in `grafana` sends them with the drivers and
 * the plugin SDK of the data sources, as a user with read permissions.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';
import type pg from 'pg';

import { startTestServer, type TestServer } from '../golden/server.js';
import { pgClient } from '../pg-client.js';
import { CertificateFolder } from '../tls/certificates.js';
import { skip, SOURCES, TOOLS } from './tools.js';

const PAGE = readFileSync(new URL('../../docs/connect/grafana.md', SOURCES), 'utf8');
const PROGRAM = join(TOOLS, 'bin', 'grafana-client');
const addon = new URL('../../../native/index.js', import.meta.url);
const FROM = '2026-01-01T00:00:00Z';
const TO = '2026-01-01T03:00:00Z';
const ACCESS = ['acl.enabled=true', 'acl.admin.password=quest'];

interface Request {
  readonly name: string;
  readonly query: string;
  readonly format?: string;
  readonly intervalMs?: number;
}

/**
 * Expected results by data source and request. Version 0.1.8 of QuestDB's plugin sends the same SQL
 * and returns the same rows. The SQL of the PostgreSQL data source follows its documentation.
 */
const expected = JSON.parse(
  readFileSync(new URL('grafana/expected.json', SOURCES), 'utf8'),
) as Readonly<Record<Source, Readonly<Record<string, unknown>>>>;

/** Sections of the page, by their headings. */
const sections = new Map(
  PAGE.split(/^## /m).map((section) => [section.slice(0, section.indexOf('\n')), section]),
);
const SECTIONS = { questdb: 'QuestDB data source', postgresql: 'PostgreSQL data source' } as const;
type Source = keyof typeof SECTIONS;

function blocksOf(text: string, language: string): string[] {
  const blocks = text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'));
  return [...blocks].map(([, code = '']) => code.trim());
}

/** The queries of a data source, by the titles of their sections. */
function pageRequests(source: Source): Request[] {
  const parts = (sections.get(SECTIONS[source]) ?? '').split(/^### /m).slice(1);
  return parts.flatMap((part) => {
    const name = part.slice(0, part.indexOf('\n'));
    const isSeries = name.startsWith('Time') || /line|\$__/.test(name);
    return blocksOf(part, 'sql').map((query) => ({
      name,
      // Grafana replaces variables in the browser.
      query: query.replaceAll('$sensor', "'north','south'"),
      format: isSeries ? 'time_series' : 'table',
      intervalMs: 1_800_000,
    }));
  });
}

/** Requests of the query builder, the query editor, and ad hoc filters of QuestDB's data source. */
const EDITOR: readonly (readonly [name: string, query: string])[] = [
  [
    'tables',
    'select table_name, partitionBy, designatedTimestamp, walEnabled, dedup  from tables()',
  ],
  ['columns', `select "column", type, designated from table_columns('readings')`],
  [
    'completion',
    'select table_name, ordinal_position, column_name, data_type from information_schema.columns',
  ],
  ['filter keys', 'select column_name, data_type, table_name from information_schema.columns'],
  ['filter values', 'select distinct sensor from readings limit 1000'],
  ['filtered', "SELECT * FROM (SELECT at, sensor FROM readings) WHERE  sensor = 'north' "],
  [
    'builder: trend',
    'SELECT at as time, sensor, avg(value), count(*) FROM "readings" WHERE $__timeFilter(at) ' +
      'SAMPLE BY $__sampleByInterval FILL ( NULL, 0 ) ALIGN TO CALENDAR LIMIT 100',
  ],
  [
    'builder: time zone',
    'SELECT at as time, max(value) top FROM "readings" WHERE $__timeFilter(at) ' +
      "SAMPLE BY $__sampleByInterval ALIGN TO CALENDAR TIME ZONE 'Europe/Berlin' LIMIT 100",
  ],
  [
    'builder: list',
    'SELECT at, sensor, value FROM "readings" WHERE  $__timeFilter(at) AND  sensor IN ' +
      "('north', 'south' ) LATEST ON at PARTITION BY sensor ORDER BY sensor DESC LIMIT 100",
  ],
  [
    'builder: aggregate',
    'SELECT sensor, first(value), last(value) FROM "readings" WHERE NOT (  $__timeFilter(at) ) ' +
      'GROUP BY sensor LIMIT 100',
  ],
];

/** A column of each type. */
const KINDS = `CREATE TABLE kinds (
  at TIMESTAMP, a BOOLEAN, b BYTE, c SHORT, d CHAR, e INT, f LONG, g DATE, h FLOAT, i DOUBLE,
  j STRING, k SYMBOL, l LONG256, m GEOHASH(8b), n GEOHASH(12c), o UUID, p IPv4, q VARCHAR,
  r TIMESTAMP_NS, s DECIMAL(10, 2), t DOUBLE[], u BINARY
) TIMESTAMP(at) PARTITION BY DAY WAL`;
const KINDS_ROWS = [
  "INSERT INTO kinds (at) VALUES ('2026-01-01')",
  `INSERT INTO kinds VALUES
  ('2026-01-01T01:00', true, 1, 2, 'c', 3, 4, '2026-01-01', 1.5, 2.5, 'j', 'k', '0x01', ##11010000,
    #u33d8b12u33d, '11111111-1111-1111-1111-111111111111', '1.2.3.4', 'q',
    '2026-01-01T00:00:00.123456789', 1.25, ARRAY[1.0, 2.0], null)`,
];

/** Requests that must fail, and requests for all intervals and types. */
function furtherRequests(source: Source): Request[] {
  const sample = source === 'questdb' ? '$__sampleByInterval' : '$__interval';
  const bounds =
    source === 'questdb' ? ['$__fromTime', '$__toTime'] : ['$__timeFrom()', '$__timeTo()'];
  const intervals = {
    '500ms': 500,
    '10s': 10_000,
    '1m': 60_000,
    '1h': 3_600_000,
    '1d': 86_400_000,
  };
  return [
    ...Object.entries(intervals).map(([name, intervalMs]) => ({
      name: `interval of ${name}`,
      query: `SELECT count() FROM (SELECT at, count() FROM readings SAMPLE BY ${sample})`,
      intervalMs,
    })),
    {
      name: 'bounds',
      query: `SELECT count() FROM readings WHERE at >= ${bounds.join(' AND at < ')}`,
    },
    { name: 'types', query: 'SELECT * FROM kinds ORDER BY at' },
    { name: 'decimals', query: 'SELECT at AS time, s FROM kinds', format: 'time_series' },
    {
      name: 'decimals as doubles',
      query: 'SELECT at AS time, s::double AS s FROM kinds',
      format: 'time_series',
    },
    { name: 'unknown column', query: 'SELECT sensor, no FROM readings' },
    { name: 'unknown table', query: 'SELECT * FROM no' },
    { name: 'syntax error', query: 'SELECT sensor FROM readings WHERE' },
    { name: 'denied', query: "INSERT INTO readings VALUES ('2026-01-01', 'north', 1)" },
    { name: 'denied too', query: 'DROP TABLE readings' },
  ];
}

type Answers = Readonly<Record<string, string | { readonly Rows: readonly unknown[] }>>;

/** Sorts the rows of the editor's requests, most of which do not specify an order. */
function sorted(answers: Answers): Answers {
  const entries = Object.entries(answers).map(([name, answer]) => {
    if (typeof answer === 'string' || !EDITOR.some(([one]) => one === name)) {
      return [name, answer] as const;
    }
    const rows = answer.Rows.map((row) => ({ row, key: JSON.stringify(row) }));
    rows.sort((left, right) => (left.key < right.key ? -1 : 1));
    return [name, { ...answer, Rows: rows.map(({ row }) => row) }] as const;
  });
  return Object.fromEntries(entries);
}

/** Runs the program and returns the results by request. */
async function ask(provisioning: string, requests: readonly Request[]): Promise<Answers> {
  const input = { provisioning, from: FROM, to: TO, requests };
  const child = execFile(PROGRAM);
  child.stdin?.end(JSON.stringify(input));
  let out = '';
  child.stdout?.on('data', (chunk: string) => (out += chunk));
  await once(child, 'close');
  return JSON.parse(out) as Answers;
}

/** The page's provisioning file for a server. */
function provisioningOf(source: Source, server: TestServer): string {
  const [file = ''] = blocksOf(sections.get(SECTIONS[source]) ?? '', 'yaml');
  return file.replaceAll('8812', server.pg.split(':').at(-1) ?? '');
}

/** Whether the test can run; reports a skip if not. */
function isReady(t: ExecutionContext): boolean {
  t.timeout(120_000);
  if (existsSync(addon) && existsSync(PROGRAM)) {
    return true;
  }
  skip(t, 'the addon or grafana-client is not built: node scripts/setup-tests.mjs');
  return false;
}

/** Starts a server and executes statements as its administrator. */
async function serverWith(
  t: ExecutionContext,
  set: readonly string[],
  statements: readonly string[],
  config: pg.ClientConfig = {},
): Promise<TestServer> {
  const server = await startTestServer({ set });
  t.teardown(() => server.stop());
  const client = pgClient(server.pg, config);
  await client.connect();
  for (const statement of statements) {
    await client.query(statement);
  }
  await client.end();
  return server;
}

const [table = ''] = blocksOf(PAGE, 'sql');
const users = blocksOf(sections.get('Create a user') ?? '', 'sql').flatMap((code) =>
  code.split(';').map((statement) => statement.trim()),
);
// Readings of two sensors in turn, one every five minutes, with a gap of an hour.
const ROWS = `INSERT INTO readings
  SELECT dateadd('s', ((x - 1) * 300)::int, '2026-01-01'::timestamp),
    CASE WHEN x % 2 = 1 THEN 'north' ELSE 'south' END, x + 0.5
  FROM long_sequence(36) WHERE x NOT BETWEEN 13 AND 24`;

for (const source of ['questdb', 'postgresql'] as const) {
  test.serial(`${SECTIONS[source]}: the page's file and queries work`, async (t) => {
    if (!isReady(t)) {
      return;
    }
    const server = await serverWith(t, ACCESS, [table, ROWS, KINDS, ...KINDS_ROWS, ...users]);
    const editor = source === 'questdb' ? EDITOR : [];
    const seen = await ask(provisioningOf(source, server), [
      ...pageRequests(source),
      ...editor.map(([name, query]) => ({ name, query, intervalMs: 3_600_000 })),
      ...furtherRequests(source),
    ]);
    t.deepEqual(sorted(seen), expected[source]);
    const wrong = provisioningOf(source, server).replace('choose a password', 'wrong');
    t.regex(JSON.stringify(await ask(wrong, [])), /invalid username\/password/);
  });

  test.serial(`${SECTIONS[source]}: required and verified encryption works`, async (t) => {
    if (!isReady(t)) {
      return;
    }
    const certificates = new CertificateFolder();
    t.teardown(() => {
      certificates.remove();
    });
    certificates.make('grafana');
    const ssl = { rejectUnauthorized: false };
    const tls = certificates.settings('grafana');
    const server = await serverWith(t, [...ACCESS, ...tls], [table, ...users], { ssl });
    const plain = provisioningOf(source, server);
    const pem = readFileSync(certificates.file('grafana.crt'), 'utf8');
    const mode = source === 'questdb' ? 'tlsMode' : 'sslmode';
    const withMode = (value: string, root = ''): string =>
      plain.replace(`${mode}: disable`, `${mode}: ${value}`) + root;
    const root = `\n      tlsCACert: ${JSON.stringify(pem)}`;
    const health = async (file: string): Promise<unknown> => (await ask(file, []))['health'];
    t.is(await health(withMode('require')), 'ok');
    t.is(await health(withMode('verify-full', root)), 'ok');
    t.regex(String(await health(withMode('verify-full'))), /certificate/);
  });
}
