/** Tests for the runners: an expected answer must pass, and a different one must fail. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import test from 'ava';

import { decidedCases, httpCases, sqlCases, superseded } from './cases.js';
import { parseExact, printExact, sameValue } from './exact-json.js';
import { type HttpCase, runHttpCase } from './http-runner.js';
import { parseSqlCase, type SqlCase, SqlRunner } from './sql-runner.js';

/** The response of the current fake server. */
interface Script {
  answer: (query: string) => { status: number; headers: Record<string, string>; body: Buffer };
}

const script: Script = { answer: () => ({ status: 500, headers: {}, body: Buffer.alloc(0) }) };
let server: Server;
let base: string;

test.before(async () => {
  server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const { status, headers, body } = script.answer(searchParams.get('query') ?? '');
    request.resume().on('end', () => {
      response.writeHead(status, headers).end(body);
    });
  });
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
test.after.always(() => {
  server.close();
  server.closeAllConnections();
});

const DONE = Buffer.from('{"ddl":"OK"}');

/** Answers a case's statement with `body`, everything else with success. */
async function answerWith(golden: SqlCase, body: string): Promise<string | null> {
  const status = body.includes('"error"') && 'error' in golden.members ? 400 : 200;
  script.answer = (query) =>
    query === golden.sql
      ? { status, headers: {}, body: Buffer.from(body) }
      : { status: 200, headers: {}, body: DONE };
  return await new SqlRunner(base).run(golden);
}

test.serial('every SQL case passes with its own expected result', async (t) => {
  for (const golden of sqlCases()) {
    const { members } = golden;
    // Cases with unspecified rows expect only a row count.
    if (!('row_count' in members || 'min_rows' in members)) {
      t.is(await answerWith(golden, printExact({ ...members })), null, golden.id);
    }
  }
});

test.serial('the golden runner detects a difference', async (t) => {
  const line = JSON.stringify({
    id: 'x',
    group: 'x',
    setup: [],
    sql: 'select 1',
    columns: [{ name: 'a', type: 'LONG' }],
    timestamp: -1,
    dataset: [[1], [2]],
  });
  const golden = parseSqlCase(line);
  const accepts = async (body: object): Promise<boolean> =>
    (await answerWith(golden, JSON.stringify(body))) === null;
  const columns = [{ name: 'a', type: 'LONG' }];
  t.true(await accepts({ columns, timestamp: -1, dataset: [[2], [1]] }));
  t.false(await accepts({ columns, timestamp: -1, dataset: [[2], [2]] }));
  t.false(await accepts({ columns, timestamp: -1, dataset: [[1]] }));
  t.false(await accepts({ columns, timestamp: 0, dataset: [[1], [2]] }));
  t.false(await accepts({ columns: [{ name: 'A', type: 'LONG' }], timestamp: -1, dataset: [] }));
  t.false(await accepts({ columns: [{ name: 'a', type: 'INT' }], timestamp: -1, dataset: [] }));
  t.false(await accepts({ ddl: 'OK' }));
});

function replay(golden: HttpCase, change: (body: Buffer) => Buffer): Promise<string | null> {
  const expected = golden.expect;
  const headers = Object.entries(expected.headers ?? {}).filter(([, v]) => !v.startsWith('re:'));
  const body = change(Buffer.from(expected.body ?? ''));
  script.answer = () => ({ status: expected.status, headers: Object.fromEntries(headers), body });
  // The case's preceding and following steps are omitted, because only this response is replayed.
  const { id, group, request, expect } = golden;
  return runHttpCase({ open: base, login: base }, { id, group, request, expect });
}

test.serial('every HTTP case with an exact body passes only with that body', async (t) => {
  const plain = httpCases().filter(
    ({ expect, request }) =>
      expect.body !== undefined &&
      request.method !== 'HEAD' &&
      !/[\udc80-\udcff](?<![\ud800-\udbff].)/.test(expect.body) &&
      !Object.values(expect.headers ?? {}).some((value) => value.startsWith('re:')),
  );
  t.true(plain.length > 250);
  for (const golden of plain) {
    t.is(await replay(golden, (body) => body), null, golden.id);
    const problem = await replay(golden, (body) => Buffer.concat([body, Buffer.from(' ')]));
    t.not(problem, null, golden.id);
  }
});

test('case ids are unique, and superseded cases are not run', (t) => {
  const ids = [...httpCases(), ...decidedCases(), ...sqlCases()].map(({ id }) => id);
  t.is(new Set(ids).size, ids.length);
  const skipped = [...superseded('http').keys(), ...superseded('sql').keys()];
  t.deepEqual(
    skipped.filter((id) => ids.includes(id)),
    [],
  );
});

/** Intentional differences that are not implemented yet. */
const UNDECIDED = new Set(['exec-errors-create-user-bob', 'exec-errors-grant-select-on-gc-t-to-u']);

test('every superseded case has a replacement or is listed as undecided', (t) => {
  const decided = decidedCases().flatMap(({ decides = [] }) => decides);
  t.is(new Set(decided).size, decided.length);
  t.deepEqual([...decided, ...UNDECIDED].toSorted(), [...superseded('http').keys()].toSorted());
});

test('integers are compared exactly, fractions approximately', (t) => {
  const same = (left: string, right: string): boolean =>
    sameValue(parseExact(left), parseExact(right));
  t.true(same('9223372036854775807', '9223372036854775807'));
  t.false(same('9223372036854775807', '9223372036854775806'));
  t.true(same('1.0', '1'));
  t.true(same('0.1', '0.10000000000000001'));
  t.true(same('1.0E10', '10000000000.000001'));
  t.false(same('1', '2'));
  t.false(same('1', '"1"'));
  t.false(same('null', '0'));
  t.false(same('true', '1'));
});
