/**
 * Names with a special meaning in a language, a file system or a terminal are ordinary names here.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { exec as access, rows, run, startAccessServer } from '../access/harness.js';
import { startTestServer, type TestServer } from '../golden/server.js';

const NAMES = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf'];
const PATHS = ['..', '../x', 'a/../../b', '/etc/passwd', 'a\\b', 'CON', 'x'.repeat(300), '.', '~'];

const folder = mkdtempSync(join(tmpdir(), 'tidemark-names-'));
let server: TestServer;
test.before(async () => {
  server = await startTestServer({ root: join(folder, 'root') });
});
test.after.always(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function exec(query: string, more = ''): Promise<{ dataset?: unknown[][]; error?: string }> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}${more}`);
  return (await response.json()) as { dataset?: unknown[][]; error?: string };
}

test.serial('adversarial column and table names are treated as data', async (t) => {
  const columns = NAMES.map((name) => `"${name}" int`).join(', ');
  t.is((await exec(`create table "constructor" (${columns})`)).error, undefined);
  await exec(`insert into "constructor" values (${NAMES.map((_, index) => index).join(', ')})`);
  const { dataset } = await exec(
    `select ${NAMES.map((name) => `"${name}"`).join(', ')} from "constructor"`,
  );
  t.deepEqual(dataset, [NAMES.map((_, index) => index)]);
});

test.serial('adversarial names passed as parameters have no effect', async (t) => {
  for (const name of NAMES) {
    t.deepEqual((await exec('select 7 x', `&${name}=1&${name}[a]=1`)).dataset, [[7]], name);
  }
  t.is(({} as Record<string, unknown>)['a'], undefined);
});

test.serial('adversarial keys in preferences and schemas are treated as data', async (t) => {
  const preferences = '{"__proto__":{"polluted":true},"constructor":"c"}';
  const saved = await fetch(`${server.url}/settings?version=0`, {
    method: 'PUT',
    body: preferences,
  });
  t.is(saved.status, 200);
  const settings = (await (await fetch(`${server.url}/settings`)).json()) as {
    preferences: Record<string, unknown>;
  };
  t.deepEqual(Object.keys(settings.preferences), ['__proto__', 'constructor']);

  const form = new FormData();
  form.append('schema', '[{"name":"__proto__","type":"STRING"},{"__proto__":{"type":"LONG"}}]');
  form.append('data', new Blob(['__proto__,constructor\n1,2\n3,4\n']), 'proto.csv');
  const imported = await fetch(`${server.url}/imp?name=proto&fmt=json`, {
    method: 'POST',
    body: form,
  });
  t.true(imported.status < 500, await imported.text());
  t.deepEqual((await exec('select 7 x')).dataset, [[7]]);
});

test.serial('adversarial user, group, account and grant names are treated as data', async (t) => {
  const own = await startAccessServer();
  t.teardown(() => own.stop());
  for (const name of NAMES) {
    const table = `"${name}"`;
    await run(
      own,
      `CREATE TABLE ${table} (${table} INT, other INT)`,
      `INSERT INTO ${table} VALUES (7, 8)`,
      `CREATE USER "u ${name}"`,
      `CREATE USER ${table} WITH PASSWORD 'p'`,
      `CREATE GROUP "g ${name}" WITH EXTERNAL ALIAS '${name}'`,
      `CREATE SERVICE ACCOUNT "s ${name}" OWNED BY ${table}`,
      `ADD USER ${table} TO "g ${name}"`,
      `GRANT HTTP TO ${table}`,
    );
    const who = `${name}:p`;
    t.regex((await access(own, who, `SELECT * FROM ${table}`)).error ?? '', /^Access denied/);
    t.deepEqual(await rows(own, who, 'SHOW TABLES'), []);
    await run(own, `GRANT SELECT ON ${table}(${table}) TO "g ${name}"`);
    t.deepEqual(await rows(own, who, `SELECT ${table} FROM ${table}`), [[7]], name);
    t.regex((await access(own, who, `SELECT other FROM ${table}`)).error ?? '', /^Access denied/);
    t.deepEqual(await rows(own, who, 'SHOW TABLES'), [[name]]);
    t.deepEqual((await rows(own, who, `SHOW PERMISSIONS ${table}`)).at(-1)?.slice(0, 1), [
      `ASSUME SERVICE ACCOUNT s ${name}`,
    ]);
    await run(own, `REVOKE ALL FROM "g ${name}"`);
  }
});

test.serial('table names that look like paths are treated as plain names or refused', async (t) => {
  for (const path of PATHS) {
    const body = new FormData();
    body.append('data', new Blob(['a,b\n1,2\n']), path);
    const address = `${server.url}/imp?name=${encodeURIComponent(path)}&fmt=json`;
    const imported = await fetch(address, { method: 'POST', body });
    t.true(imported.status < 500, path);
    await imported.text();
    await exec(`create table "${path}" (x int)`);
  }
  t.deepEqual(readdirSync(folder), ['root'], 'nothing was created next to the root');
  t.deepEqual((await exec('select 7 x')).dataset, [[7]]);
});
