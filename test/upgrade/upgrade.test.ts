/**
 * Upgrades: data directories of every recorded format are checked, opened, read completely and
 * written to. A downgrade is refused, and changes nothing.
 */
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import test, { type ExecutionContext } from 'ava';

import { messageOf, run as runCommand, serve } from '../cli/run.js';
import { startTestServer, type TestServer, type TestServerOptions } from '../golden/server.js';
import { until } from '../until.js';
import {
  ADMIN,
  type Answer,
  answers,
  formatOf,
  ROOTS,
  run,
  SETTINGS,
  viewRows,
} from './content.js';

/** Directories that the storage crate recorded; they have tables but no users. */
const STORAGE_ROOTS = fileURLToPath(
  new URL('../../../crates/storage/tests/roots/', import.meta.url),
);

function temporary(t: ExecutionContext): string {
  const root = mkdtempSync(join(tmpdir(), 'tidemark-upgrade-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  return root;
}

/** Copies a recorded directory, and checks it with the current version. */
async function recorded(t: ExecutionContext, folder: string): Promise<string> {
  const root = temporary(t);
  cpSync(folder, root, { recursive: true });
  await isIntact(t, root);
  return root;
}

async function isIntact(t: ExecutionContext, root: string): Promise<void> {
  const { code, out, err } = await runCommand('check', '--root', root);
  t.is(code, 0, out + err);
  t.is(out, 'no problems\n');
}

/** Starts a server that is stopped at the end of the test, even if the test fails. */
async function started(t: ExecutionContext, options: TestServerOptions): Promise<TestServer> {
  const server = await startTestServer(options);
  t.teardown(() => server.stop());
  return server;
}

function formatIn(root: string): string {
  return formatOf(readFileSync(join(root, 'db', 'FORMAT'), 'utf8'));
}

const versions = (folder: string): string[] => readdirSync(folder).sort();

test('a database of the current format is recorded for later upgrade tests', async (t) => {
  const root = temporary(t);
  await (await startTestServer({ root })).stop();
  for (const folder of [ROOTS, STORAGE_ROOTS]) {
    t.true(versions(folder).includes(`v${formatIn(root)}`), 'see test/upgrade/record.ts');
  }
});

for (const version of versions(ROOTS)) {
  test(`a database of format ${version} keeps its tables, views, users and grants`, async (t) => {
    const root = await recorded(t, join(ROOTS, version));
    const expected = JSON.parse(readFileSync(join(root, 'expected.json'), 'utf8')) as Answer[];
    const server = await started(t, { root, set: SETTINGS });
    t.deepEqual(await answers(server), expected);
    await run(server, ADMIN, "INSERT INTO trades VALUES ('2026-01-04', 'D', 5.0, 50, 'later')");
    await until(async () => (await viewRows(server)) === 5, 'the materialized view is refreshed');
    await server.stop();
    await isIntact(t, root);
    const again = await started(t, { root, set: SETTINGS });
    t.deepEqual(await run(again, ADMIN, 'SELECT count() FROM trades'), [[6]]);
    await again.stop();
  });
}

for (const version of versions(STORAGE_ROOTS)) {
  test(`tables of format ${version} keep their rows`, async (t) => {
    const root = await recorded(t, join(STORAGE_ROOTS, version));
    const server = await started(t, { root, set: ['disk.reserve=0'] });
    for (const table of ['timed', 'plain']) {
      const query = `SELECT count(), sum(id), count(sym), min(ts), max(ts) FROM ${table}`;
      t.deepEqual(await run(server, ADMIN, query), [
        [60, 1770, 48, '1970-01-02T12:30:00.000000Z', '1970-01-05T03:00:00.000000Z'],
      ]);
      await run(server, ADMIN, `INSERT INTO ${table} (ts, id) VALUES ('2026-01-01', 60)`);
    }
    await server.stop();
    await isIntact(t, root);
    const current = temporary(t);
    await (await startTestServer({ root: current })).stop();
    t.is(formatIn(root), formatIn(current), 'the directory has the current format now');
  });
}

/** CRC-32C, the checksum of the format file. */
function crc32c(text: string): string {
  let crc = 0xffffffff;
  for (const byte of Buffer.from(text)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) {
      crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
    }
  }
  return ((crc ^ 0xffffffff) >>> 0).toString(16).padStart(8, '0');
}

/** Returns a digest of all files except the lock. */
function digest(root: string): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' }).sort()) {
    const path = join(root, name);
    if (statSync(path).isFile() && name !== 'lock') {
      hash.update(name).update(readFileSync(path));
    }
  }
  return hash.digest('hex');
}

test('the error for a refused downgrade names both formats, and nothing is changed', async (t) => {
  const root = temporary(t);
  const server = await started(t, { root });
  await run(server, ADMIN, 'CREATE TABLE t (a INT)');
  await server.stop();
  const file = join(root, 'db', 'FORMAT');
  const original = readFileSync(file, 'utf8');
  const current = formatOf(original);
  const [major = 0, minor = 0] = current.split('.').map(Number);
  for (const newer of [`${major}.${minor + 1}`, `${major + 1}.0`]) {
    const line = `tidemark ${newer}`;
    writeFileSync(file, `${line} ${crc32c(line)}\n`);
    const before = digest(root);
    const limit = `but this version supports at most ${current}`;
    const reason = `the root directory has format ${newer}, ${limit}`;
    const refused = await serve(root);
    t.is(refused.code, 1);
    t.is(messageOf(refused), `tidemark: cannot open the root directory '${root}': ${reason}`);
    const checked = await runCommand('check', '--root', root);
    t.is(checked.code, 1);
    t.is(messageOf(checked), `tidemark: cannot check the root directory '${root}': ${reason}`);
    t.is(digest(root), before);
  }
  writeFileSync(file, original);
  t.is(`tidemark ${current} ${crc32c(`tidemark ${current}`)}\n`, original);
  const again = await started(t, { root });
  t.deepEqual(await run(again, ADMIN, 'SELECT count() FROM t'), [[0]]);
  await again.stop();
});
