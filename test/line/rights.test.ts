/** Sender permissions: the changes that a request needs are authorized before they are made. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';

import { credentials, exec, rows, run, startAccessServer } from '../access/harness.js';
import type { TestServer } from '../golden/server.js';
import { until } from '../until.js';
import { type LineAnswer, SENDERS, write } from './harness.js';

let server: TestServer;

test.before(async () => {
  server = await startAccessServer();
  await run(server, ...SENDERS);
});
test.after.always(() => server.stop());

async function as(who: string, body: string): Promise<LineAnswer> {
  return await write(server, body, credentials(who));
}

async function count(table: string): Promise<unknown> {
  return (await rows(server, 'admin:quest', `select count() from ${table}`))[0]?.[0];
}

test('credentials are required for sending rows, but not for ping and settings', async (t) => {
  t.is((await write(server, 'open x=1i')).status, 401);
  t.is((await as('ann:wrong', 'open x=1i')).status, 401);
  t.is((await as('guest:g', 'open x=1i')).status, 403);
  t.is((await fetch(`${server.url}/settings`)).status, 200);
  t.is((await fetch(`${server.url}/ping`)).status, 204);
});

test.serial('INSERT on a table does not grant rights on new columns or other tables', async (t) => {
  t.is((await as('ann:a', 'open x=1i 1')).status, 204);
  for (const body of [
    'shut x=1i 1',
    'open x=1i 1\nshut x=1i 1',
    'open x=1i,y=2i 1',
    'open x=1i 1\nnew x=1i 1',
  ]) {
    const { status, code, message } = await as('ann:a', body);
    t.deepEqual([status, code], [403, 'forbidden'], `${body}: ${message ?? ''}`);
  }
  t.deepEqual([await count('open'), await count('shut')], [1, 0]);
  const known = await rows(
    server,
    'admin:quest',
    "select count() from tables() where table_name = 'new'",
  );
  t.deepEqual(known, [[0]]);
  await run(server, 'GRANT ADD COLUMN ON open TO ann');
  t.is((await as('ann:a', 'open x=1i,y=2i 2')).status, 204);
  await run(server, 'REVOKE ADD COLUMN ON open FROM ann');
});

test.serial('a malformed line reveals nothing about a table to users without INSERT', async (t) => {
  await run(server, 'CREATE VIEW seen AS (SELECT x FROM shut)');
  const wrong = ['shut x="text" 1', 'nowhere x=1i,y=zz 1', 'seen x=1i 1', 'open x=1i 1\nshut x=z'];
  for (const body of wrong) {
    const { status, message } = await as('ann:a', body);
    t.is(status, 403, `${body}: ${message ?? ''}`);
    t.is((await as('admin:quest', body)).status, 400, body);
  }
  t.is((await as('ann:a', 'open x="text" 1')).status, 400);
});

test.serial('the creator of a table owns it', async (t) => {
  t.is((await as('maker:m', 'own x=1i 1\nother x=1i 1')).status, 204);
  t.is((await as('maker:m', 'own x=1i,y=2i 2\nother x=1i 2')).status, 204);
  t.deepEqual((await exec(server, 'maker:m', 'select x, y from own')).dataset, [
    [1, null],
    [1, 2],
  ]);
  t.is((await as('ann:a', 'own x=1i 3')).status, 403);
});

test.serial('the InfluxDB authorization scheme accepts a token', async (t) => {
  await run(
    server,
    'CREATE SERVICE ACCOUNT feed',
    'GRANT HTTP TO feed',
    'GRANT INSERT ON open TO feed',
  );
  const created = await rows(
    server,
    'admin:quest',
    "ALTER SERVICE ACCOUNT feed CREATE TOKEN TYPE REST WITH TTL '1d'",
  );
  const token = String(created[0]?.find((cell) => String(cell).startsWith('tdm_')));
  for (const scheme of ['Token', 'Bearer', 'token']) {
    const before = Number(await count('open'));
    const headers = { authorization: `${scheme} ${token}` };
    t.is((await write(server, 'open x=7i 9', headers, '/api/v2/write?bucket=b&org=o')).status, 204);
    t.is(await count('open'), before + 1);
  }
  t.is((await write(server, 'open x=7i 9', { authorization: `Token ${token}x` })).status, 401);
});

test.serial('the audit log records tables and columns created by lines', async (t) => {
  t.is((await as('maker:m', 'audited x=1i 1')).status, 204);
  t.is((await as('maker:m', 'audited x=1i,late=1i 2')).status, 204);
  const copy = (): string => readFileSync(join(server.root, 'audit.jsonl'), 'utf8');
  for (const entry of ["table 'audited'", "columns of 'audited': late"]) {
    await until(
      () => copy().includes(`line protocol: ${entry}`),
      `the audit log contains ${entry}`,
    );
  }
});
