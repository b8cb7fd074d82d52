/**
 * Gate S6: paths that lead out of the server's folders, in every parameter that takes a name or
 * path. Files outside these folders are neither read nor modified.
 */
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

import test from 'ava';

import { ended } from '../copy/harness.js';
import { send } from '../golden/http-client.js';
import { startTestServer, type TestServer } from '../golden/server.js';

const CANARY = 'canary-51d7';
const SECRET = `c\n${CANARY}\n`;

const folder = mkdtempSync(join(tmpdir(), 'tidemark-paths-'));
const root = join(folder, 'root');
const outside = join(folder, 'outside');
const secret = join(outside, 'secret.csv');
let server: TestServer;

test.before(async () => {
  mkdirSync(outside);
  writeFileSync(secret, SECRET);
  const imports = join(root, 'import');
  mkdirSync(imports, { recursive: true });
  symlinkSync(secret, join(imports, 'link.csv'));
  symlinkSync(outside, join(imports, 'folder'));
  symlinkSync('/dev/zero', join(imports, 'zero.csv'));
  execFileSync('mkfifo', [join(imports, 'pipe.csv')]);
  server = await startTestServer({ root });
  await exec('CREATE TABLE t (ts TIMESTAMP, a INT) TIMESTAMP(ts) PARTITION BY DAY WAL');
  await exec("INSERT INTO t VALUES ('2026-01-01', 1)");
});

test.after.always(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Returns paths that lead, or might lead, out of the import and export directories. */
function paths(): readonly string[] {
  const up = relative(join(root, 'import'), secret);
  const depths = [1, 2, 3, 4, 8].map((depth) => `${'../'.repeat(depth)}outside/secret.csv`);
  const name = 'outside/secret.csv';
  return [
    secret,
    up,
    ...depths,
    `./${up}`,
    `x/../../../${name}`,
    up.replaceAll('/', '\\'),
    up.replaceAll('/', '//'),
    up.replaceAll('../', '....//'),
    up.replaceAll('..', '%2e%2e'),
    up.replaceAll('/', '%2f'),
    up.replaceAll('/', '%252f'),
    up.replaceAll('..', '\u2025'),
    up.replaceAll('/', '\u2044'),
    up.replaceAll('.', '\uff0e'),
    `${up}\u0000.csv`,
    `${up} `,
    `${up}.`,
    `${up}/`,
    ` ${up}`,
    `file://${secret}`,
    `http://127.0.0.1:1/${name}`,
    `\\\\127.0.0.1\\${name}`,
    'link.csv',
    'folder/secret.csv',
    'folder/../folder/secret.csv',
    'zero.csv',
    'pipe.csv',
    '..',
    '../..',
    '.',
    '/',
    '~/secret.csv',
    '/proc/self/environ',
    '/proc/self/cwd/package.json',
    '/dev/zero',
    '/dev/stdin',
    '/etc/passwd',
    '../conf/server.conf',
    '../db',
    '../**/*',
    'CON',
    'x'.repeat(5000),
  ];
}

const quoted = (path: string): string => `'${path.replaceAll("'", "''")}'`;
const named = (path: string): string => `"${path.replaceAll('"', '""')}"`;

/** Statements that contain a path or name. */
const STATEMENTS: readonly ((path: string) => string)[] = [
  (path) => `SELECT * FROM read_parquet(${quoted(path)})`,
  (path) => `SELECT * FROM read_parquet(${quoted(`${path}/*`)})`,
  (path) => `COPY x FROM ${quoted(path)}`,
  (path) => `COPY x FROM ${quoted(path)} WITH HEADER true DELIMITER ',' ON ERROR SKIP_ROW`,
  (path) => `COPY (SELECT 1 a) TO ${quoted(path)} WITH FORMAT CSV`,
  (path) => `COPY t TO ${quoted(path)} WITH FORMAT PARQUET`,
  (path) => `COPY ${quoted(path)} CANCEL`,
  (path) => `CREATE TABLE ${quoted(path)} (x INT)`,
  (path) => `CREATE TABLE IF NOT EXISTS y (x INT) IN VOLUME ${quoted(path)}`,
  (path) => `CREATE VIEW ${named(path)} AS (SELECT 1 x)`,
  (path) => `RENAME TABLE missing TO ${quoted(path)}`,
  (path) => `DROP TABLE ${quoted(path)}`,
  (path) => `DROP VIEW IF EXISTS ${named(path)}`,
  (path) => `ALTER TABLE t ADD COLUMN ${named(path)} INT`,
  (path) => `ALTER TABLE t DROP COLUMN ${named(path)}`,
  (path) => `ALTER TABLE t ATTACH PARTITION LIST ${quoted(path)}`,
  (path) => `ALTER TABLE t DETACH PARTITION LIST ${quoted(path)}`,
  (path) => `SHOW COLUMNS FROM ${named(path)}`,
  (path) => `SELECT * FROM table_partitions(${quoted(path)})`,
  (path) => `SELECT * FROM ${named(path)}`,
];

interface Answer {
  /** The statement, or an empty string. */
  readonly query: string;
  readonly text: string;
  readonly id: string | null;
}

async function exec(query: string): Promise<Answer> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  const text = await response.text();
  const { dataset, columns } = JSON.parse(text) as {
    dataset?: unknown[][];
    columns?: { name: string }[];
  };
  const isJob = query.startsWith('COPY') && columns?.[0]?.name === 'id';
  return { query, text, id: isJob ? String(dataset?.[0]?.[0]) : null };
}

async function upload(query: string, filename: string): Promise<Answer> {
  const form = new FormData();
  form.set('data', new Blob(['x\n5\n']), filename);
  const response = await fetch(`${server.url}/imp?fmt=json${query}`, {
    method: 'POST',
    body: form,
  });
  return { query: '', text: await response.text(), id: null };
}

async function raw(method: string, target: string): Promise<Answer> {
  const visible = target.replace(/[^\u0021-\u007e]/gu, (one) => encodeURIComponent(one));
  const reply = await send(server.url, { method, target: visible, headers: {}, body: null });
  return { query: '', text: reply.body.toString('latin1'), id: null };
}

/** Requests that contain a path or name. */
const REQUESTS: readonly ((path: string) => Promise<Answer>)[] = [
  (path) => upload(`&name=${encodeURIComponent(path)}`, 'data.csv'),
  (path) => upload('', path),
  (path) => raw('GET', `/${path}`),
  (path) => raw('GET', `/console/${path}`),
  (path) => raw('GET', `/chk?j=${encodeURIComponent(path)}`),
  (path) => raw('GET', `/exp?query=select+1&filename=${encodeURIComponent(path)}`),
  (path) => raw('DELETE', `/api/v1/import/file?file=${encodeURIComponent(path)}`),
  (path) => raw('DELETE', `/api/v1/import/file?file=${encodeURIComponent(`upload/${path}`)}`),
];

test.serial('files inside the directory are read', async (t) => {
  writeFileSync(join(root, 'import', 'inside.csv'), SECRET);
  const { id } = await exec("COPY inside FROM 'inside.csv' WITH HEADER true");
  t.is((await ended(server, id ?? '', 'import')).status, 'finished');
  t.true((await exec('SELECT * FROM inside')).text.includes(CANARY));
  await exec('DROP TABLE inside');
  rmSync(join(root, 'import', 'inside.csv'));
});

test.serial('a thousand path traversal attempts never escape the directory', async (t) => {
  const before = readdirSync(folder).sort();
  let tried = 0;
  for (const path of paths()) {
    const answers: Answer[] = [];
    for (const statement of STATEMENTS) {
      answers.push(await exec(statement(path)));
    }
    for (const request of REQUESTS) {
      answers.push(await request(path));
    }
    // Opening a pipe or a device would block forever.
    for (const { id, query } of [...answers]) {
      if (id !== null) {
        const { message } = await ended(server, id, query.includes(' FROM ') ? 'import' : 'export');
        answers.push({ query, text: message ?? '', id: null });
      }
    }
    tried += answers.length;
    const leaked = answers.filter(({ text }) => text.includes(CANARY) || text.includes('root:x:'));
    t.deepEqual(leaked, [], path);
  }
  t.true(tried >= 1000, `${tried} tries`);
  t.log(`${tried} tries`);
  const { text } = await exec('SELECT table_name FROM tables()');
  for (const [name] of (JSON.parse(text) as { dataset: string[][] }).dataset) {
    const rows = await exec(`SELECT * FROM ${named(name ?? '')}`);
    t.false(rows.text.includes(CANARY), name);
  }
  t.is(readFileSync(secret, 'utf8'), SECRET);
  t.deepEqual(readdirSync(outside), ['secret.csv']);
  t.deepEqual(readdirSync(folder).sort(), before, 'nothing was created next to the root');
  t.false(server.log().includes(CANARY));
});
