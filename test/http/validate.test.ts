/** Describes the result of a statement without running it. */
import test from 'ava';

import { type Harness, startHarness } from './harness.js';

const JSON_TYPE = 'application/json; charset=utf-8';

let harness: Harness;
test.before(async () => {
  harness = await startHarness();
});
test.after.always(() => harness.server.close());

async function validate(text: string): Promise<[number, string]> {
  const query = new URLSearchParams({ query: text });
  const response = await fetch(`${harness.url}/api/v1/sql/validate?${query.toString()}`);
  if (response.headers.get('content-type') !== JSON_TYPE) {
    throw new Error('not JSON');
  }
  return [response.status, await response.text()];
}

test('validating a query returns its columns without executing it', async (t) => {
  const query = 'rows 424242';
  t.deepEqual(await validate(query), [
    200,
    `{"query":"${query}","columns":[{"name":"x","type":"LONG"}],"timestamp":-1}`,
  ]);
  t.false(harness.database.journal.executed.includes(query));
});

test('validating other statements returns their kind without executing them', async (t) => {
  t.deepEqual(await validate('insert 424243'), [200, '{"queryType":"insert"}']);
  t.deepEqual(await validate('create 424244'), [200, '{"queryType":"create"}']);
  t.deepEqual(await validate('EXPLAIN rows 424245'), [200, '{"queryType":"EXPLAIN"}']);
  t.deepEqual(await validate('-- nothing'), [200, '{"queryType":"EMPTY"}']);
  t.false(harness.database.journal.executed.some((text) => text.includes('42424')));
});

test('validation errors have a position', async (t) => {
  t.deepEqual(await validate('rows !'), [
    400,
    '{"query":"rows !","error":"unexpected token [!]","position":5}',
  ]);
  t.deepEqual(await validate('missing'), [
    400,
    '{"query":"missing","error":"table does not exist [table=missing]","position":0}',
  ]);
  t.deepEqual(await validate(''), [200, '{"error":"empty query","query":"","position":"0"}']);
});

test('a statement can be validated from the URL or from a form', async (t) => {
  const target = `${harness.url}/api/v1/sql/validate`;
  const long = `rows 1 -- ${'x'.repeat(200_000)}`;
  const body = new URLSearchParams({ query: long });
  const request = await fetch(target, { method: 'POST', body });
  t.is(request.status, 200);
  t.deepEqual(((await request.json()) as { columns: unknown }).columns, [
    { name: 'x', type: 'LONG' },
  ]);
  t.is((await fetch(`${target}?query=rows+1`, { method: 'PUT' })).status, 405);
  const bad = await fetch(`${harness.url}/api/v1/sql/validate?query=%ff`);
  t.is(bad.status, 400);
  t.regex(await bad.text(), /Bad UTF8/);
});
