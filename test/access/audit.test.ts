/** Audit log contents and rotation. No change is made without an audit entry. */
import { mkdir, mkdtemp, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';

import { type AuditFields, AuditLog, type ChainEnd } from '../../ts/access/audit.js';
import { StoredDirectory } from '../../ts/access/directory.js';
import { newPrincipal } from '../../ts/access/principals.js';
import { Refusals } from '../../ts/access/refusals.js';
import { AccessStore } from '../../ts/access/store.js';
import { newToken, tokenDigest } from '../../ts/access/tokens.js';
import type { TestServer } from '../golden/server.js';
import { until } from '../until.js';
import { ADMIN, credentials, exec, rows, run, startAccessServer } from './harness.js';
import { brokenLine } from './audit-chain.js';

interface Line {
  readonly event: string;
  readonly user: string;
  readonly sequence?: number;
  readonly hash?: string;
  readonly count?: number;
  readonly command?: string;
  readonly text?: string;
}

async function folder(t: ExecutionContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'tidemark-audit-'));
  t.teardown(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function linesOf(server: TestServer, file = 'audit.jsonl'): Promise<readonly Line[]> {
  const text = await readFile(join(server.root, file), 'utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);
}

test('the audit log records logins, changes, exports, imports, reloads and settings', async (t) => {
  const server = await startAccessServer();
  t.teardown(() => server.stop());
  await run(server, 'CREATE TABLE x (i INT)', "CREATE USER ann WITH PASSWORD 'a'");
  await run(server, 'GRANT HTTP TO ann', 'SELECT reload_config()');
  const headers = credentials(ADMIN);
  const query = encodeURIComponent("SELECT 'tdm_0123456789abc' FROM x");
  await (await fetch(`${server.url}/exp?query=${query}`, { headers })).text();
  await (await fetch(`${server.url}/exp?query=SELECT+1&fmt=parquet`, { headers })).arrayBuffer();
  const saved = await fetch(`${server.url}/settings?version=0`, {
    method: 'PUT',
    headers,
    body: '{"instance_name":"mine"}',
  });
  t.is(saved.status, 200);
  const stale = await fetch(`${server.url}/settings?version=0`, {
    method: 'PUT',
    headers,
    body: '{}',
  });
  t.is(stale.status, 409);
  const form = new FormData();
  form.set('data', new Blob(['i\n5\n']), 'data.csv');
  await fetch(`${server.url}/imp?name=x&forceHeader=true`, { method: 'POST', headers, body: form });
  const session = await fetch(`${server.url}/exec?query=SELECT+1&session=true`, {
    headers: credentials('ann:a'),
  });
  const cookie = session.headers.get('set-cookie')?.split(';')[0] ?? '';
  await fetch(`${server.url}/exec?query=SELECT+1&session=false`, {
    headers: { cookie, 'Sec-Fetch-Site': 'same-origin' },
  });
  t.is((await exec(server, 'ann:wrong', 'SELECT 1')).status, 401);

  const lines = await linesOf(server);
  const found = lines.map(({ event, user, command = '' }) => `${event} ${user} ${command}`.trim());
  t.deepEqual(found, [
    'sign_in admin',
    'statement admin CREATE TABLE',
    'statement admin CREATE USER',
    'statement admin GRANT',
    'configuration_reloaded',
    'statement admin RELOAD_CONFIG',
    'statement admin EXPORT',
    'statement admin EXPORT',
    'statement admin SETTINGS',
    'statement admin IMPORT',
    'sign_in ann',
    'sign_out ann',
  ]);
  const refused = await linesOf(server, 'audit-refused.jsonl');
  t.deepEqual(
    refused.map(({ event, user }) => `${event} ${user}`),
    ['sign_in_refused ann'],
    'the record contains the attacked name',
  );
  const text = JSON.stringify(lines);
  t.false(text.includes('tdm_0123456789abc'));
  t.is(lines.find(({ command }) => command === 'EXPORT')?.text, "SELECT '****' FROM x");
});

test('audit files rotate by size; the hash chain spans all files and restarts', async (t) => {
  const path = join(await folder(t), 'audit.jsonl');
  const setting = { fileBytes: 2000, files: 3, failed: (): void => undefined };
  let written = 0;
  for (let start = 0; start < 3; start += 1) {
    const log = await AuditLog.open(path, setting);
    for (let line = 0; line < 10; line += 1) {
      written += 1;
      log.write('statement', 'ann', { text: `statement ${written}` });
    }
    await log.close();
  }
  const files = await Promise.all(['.2', '.1', ''].map((end) => readFile(path + end, 'utf8')));
  t.true(files.every((text) => Buffer.byteLength(text) <= setting.fileBytes));
  t.is(brokenLine(files.join('')), null);
  const texts = files.join('').match(/statement \d+/g) ?? [];
  t.deepEqual(texts.at(-1), `statement ${written}`);
  t.true(texts.length > 10 && texts.length < written, 'the oldest statements were removed');
  await t.throwsAsync(readFile(`${path}.3`), { code: 'ENOENT' });
  const changed = files.join('').replace('statement 20', 'statement 99');
  t.not(brokenLine(changed), null);
});

test('a single audit file starts over at its size limit; without a limit it grows', async (t) => {
  const path = join(await folder(t), 'audit.jsonl');
  const failed = (): void => undefined;
  const write = async (fileBytes: number): Promise<string> => {
    const log = await AuditLog.open(path, { fileBytes, files: 1, failed });
    for (let line = 0; line < 10; line += 1) {
      log.write('statement', 'ann', { text: 'x'.repeat(200) });
    }
    await log.close();
    return await readFile(path, 'utf8');
  };
  const small = await write(1000);
  t.true(small.length <= 1000 && small.length > 0);
  t.is((await write(0)).split('\n').length - 1, small.split('\n').length - 1 + 10);
  await t.throwsAsync(readFile(`${path}.1`), { code: 'ENOENT' });
});

test('changes are refused until the audit log can be written again', async (t) => {
  const server = await startAccessServer(
    undefined,
    'acl.audit.file.size=2000',
    'acl.audit.file.count=2',
  );
  t.teardown(() => server.stop());
  const inTheWay = join(server.root, 'audit.jsonl.1');
  await mkdir(inTheWay);
  await writeFile(join(inTheWay, 'file'), '');
  let error: string | undefined;
  let created = 0;
  for (; created < 20 && error === undefined; created += 1) {
    ({ error } = await exec(server, ADMIN, `CREATE GROUP g${created}`));
  }
  t.regex(error ?? '', /^nothing was changed because the audit log cannot be written/);
  t.is((await exec(server, ADMIN, 'CREATE TABLE x (i INT)')).status, 500);
  t.deepEqual(await rows(server, ADMIN, 'SELECT 1'), [[1]]);
  await rm(join(inTheWay, 'file'));
  await rmdir(inTheWay);
  await run(server, 'CREATE TABLE x (i INT)');
  const files = [inTheWay, join(server.root, 'audit.jsonl')];
  const read = async (): Promise<string> =>
    (await Promise.all(files.map((path) => readFile(path, 'utf8')))).join('');
  await until(async () => (await read()).includes('CREATE TABLE x'), 'the statement is recorded');
  const text = await read();
  t.is(brokenLine(text), null);
  t.false(text.includes(`g${created - 1}`), 'the refused statement is not logged as executed');
});

test('token expiry is logged once', async (t) => {
  const store = await AccessStore.open({
    loadRecords: () => Promise.resolve(new Map()),
    commitRecords: () => Promise.resolve(1n),
  });
  const path = join(await folder(t), 'audit.jsonl');
  const log = await AuditLog.open(path, {
    fileBytes: 0,
    files: 1,
    failed: (error) => t.fail(String(error)),
  });
  const setting = { adminName: 'admin', nameLengthMax: 255, hashIterations: 1, tokenRefreshMs: 0 };
  let now = 0;
  const directory = new StoredDirectory(store, setting, log, () => now);
  const token = newToken();
  const digest = tokenDigest(token) ?? '';
  await store.change((draft) => {
    const tokens = [{ digest, expires: 60_000, ttlMs: 60_000, refresh: false }];
    draft.put({ ...newPrincipal('ann', 'user'), tokens });
  });
  t.is(directory.verifyRestToken(token)?.name, 'ann');
  now = 60_000;
  t.is(directory.verifyRestToken(token), null);
  t.is(directory.verifyRestToken(token), null);
  await log.close();
  const lines = (await readFile(path, 'utf8')).trim().split('\n');
  t.is(lines.length, 1);
  t.like(JSON.parse(lines[0] ?? ''), {
    event: 'token_expired',
    user: 'ann',
    expired: '1970-01-01T00:01:00.000Z',
  });
});

test('a flood of refusals is counted in a separate log and evicts no audit records', async (t) => {
  const server = await startAccessServer(
    undefined,
    'acl.audit.file.size=4000',
    'acl.audit.file.count=2',
  );
  t.teardown(() => server.stop());
  await run(server, 'CREATE TABLE evidence (i INT)');
  const before = await readFile(join(server.root, 'audit.jsonl'), 'utf8');
  const tokens = Array.from({ length: 60 }, (_, index) => `tdm_${index}`);
  const names = Array.from({ length: 60 }, (_, index) => `junk${index}:p`);
  for (const who of [...tokens, ...names]) {
    t.true([401, 503].includes((await exec(server, who, 'SELECT 1')).status));
  }
  t.is(await readFile(join(server.root, 'audit.jsonl'), 'utf8'), before);
  t.is(await server.stop(), 0);
});

test('repeated refusals are logged as one line with a count', (t) => {
  const lines: (readonly [string, string, AuditFields])[] = [];
  const refusals = new Refusals({
    write: (event, user, fields) => {
      lines.push([event, user, fields ?? {}]);
    },
  });
  for (let round = 0; round < 1_000; round += 1) {
    refusals.add('ann', 'HTTP', '10.0.0.1');
    refusals.add('', 'HTTP', '10.0.0.2');
    refusals.add(`junk${round}`, 'PGWIRE', '10.0.0.3');
  }
  t.is(lines.length, 100, 'each of a hundred names is logged immediately, the others later');
  refusals.flush();
  const found = new Map(
    lines.slice(100).map(([event, user, fields]) => [`${event} ${user}`, fields]),
  );
  t.like(found.get('sign_in_refused ann'), { address: '10.0.0.1', count: 999 });
  t.like(found.get('sign_in_refused '), { address: '10.0.0.2', count: 999 });
  t.like(found.get('sign_ins_refused '), {
    address: '10.0.0.3',
    count: 902,
    names: 'junk98, junk99, junk100, junk101, junk102',
  });
  t.is(lines.length, 103);
  for (let address = 0; address < 100_000; address += 1) {
    refusals.add('ann', 'HTTP', `10.1.${address >> 8}.${address & 255}`);
  }
  refusals.flush();
  t.true(
    lines.length < 103 + 100 + 102,
    'the number of lines is independent of the number of addresses',
  );
});

test('the head of the hash chain is reported at each new file and at close', async (t) => {
  const path = join(await folder(t), 'audit.jsonl');
  const ends: { sequence: number; hash: string }[] = [];
  const failed = (error: unknown): void => t.fail(String(error));
  const setting = { fileBytes: 1000, files: 9, failed, anchor: (end: ChainEnd) => ends.push(end) };
  const log = await AuditLog.open(path, setting);
  for (let line = 0; line < 10; line += 1) {
    log.write('statement', 'ann', { text: `statement ${line}` });
  }
  await log.close();
  const files = await Promise.all(['.1', ''].map((end) => readFile(path + end, 'utf8')));
  const lasts = files.map((text) => JSON.parse(text.trim().split('\n').at(-1) ?? '') as ChainEnd);
  t.deepEqual(
    ends.slice(-2),
    lasts.map(({ sequence, hash }) => ({ sequence, hash })),
  );
  t.true(ends.length >= 3);
  await (await AuditLog.open(path, setting)).close();
  t.is(ends.at(-1)?.sequence, 10, 'without new records the head is not logged again');
});

test('the server log contains the head of the hash chain', async (t) => {
  const server = await startAccessServer();
  await run(server, 'CREATE TABLE x (i INT)');
  const lines = await linesOf(server);
  t.is(await server.stop(), 0);
  const found = server
    .log()
    .split('\n')
    .find((line) => line.includes('"audit_chain"') && line.includes('"audit.jsonl"'));
  t.true(found?.includes(lines.at(-1)?.hash ?? 'none'), found);
});
