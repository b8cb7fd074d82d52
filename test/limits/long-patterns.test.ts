/**
 * Compiled patterns are many times larger than their source, so each kind of pattern has a length
 * limit, which the refusal names.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rowsOf, send } from './client.js';

/**
 * Maximum length in bytes of LIKE patterns and regular expressions that need more than a plain
 * comparison.
 */
const MAX_BYTES = 256 * 1024;
/** Maximum length of timestamp patterns in bytes. */
const MAX_TIMESTAMP_BYTES = 1_000;

/** A pattern that requires an automaton. */
const pattern = (bytes: number): string => `a_${'b'.repeat(bytes - 2)}`;
const literal = (bytes: number): string => `'${pattern(bytes)}'`;
/** The same pattern, computed at run time. */
const computed = (bytes: number): string => `rpad('a_', ${bytes}, 'b')`;

const STATEMENTS: Readonly<Record<string, (text: string) => string>> = {
  like: (text) => `select count() from v where v like ${text}`,
  'not like': (text) => `select count() from v where v not like ${text}`,
  ilike: (text) => `select count() from v where v ilike ${text}`,
  '~': (text) => `select count() from v where v ~ ${text}`,
  '!~': (text) => `select count() from v where v !~ ${text}`,
  'symbol ~': (text) => `select count() from v where s ~ ${text}`,
  regexp_replace: (text) => `select regexp_replace(v, ${text}, 'x') from v`,
  'a projection': (text) => `select v like ${text} from v`,
  'a join': (text) => `select count() from v a join v b on a.s = b.s and a.v like ${text}`,
  'a case': (text) => `select case when v ~ ${text} then 1 else 2 end from v`,
};

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
  await rowsOf(
    server,
    'create table v as (select x::varchar v, x::varchar::symbol s from long_sequence(3))',
  );
});

test.after.always(async () => {
  await server.stop();
});

for (const [name, statement] of Object.entries(STATEMENTS)) {
  test.serial(`a pattern over the length limit is refused: ${name}`, async (t) => {
    const words = new RegExp(`pattern is ${MAX_BYTES + 1} bytes long: at most ${MAX_BYTES} bytes`);
    for (const text of [literal, computed]) {
      t.regex((await send(server, statement(text(MAX_BYTES + 1)))).error ?? '', words);
    }
    // A pattern of the maximum length is either compiled or refused for lack of memory.
    const { error = '' } = await send(server, statement(literal(MAX_BYTES)));
    t.notRegex(error, /pattern has/);
  });
}

const TIMES: Readonly<Record<string, (text: string) => string>> = {
  to_timestamp: (text) => `select to_timestamp('2026', ${text})`,
  to_timestamp_ns: (text) => `select to_timestamp_ns('2026', ${text})`,
  to_date: (text) => `select to_date('2026', ${text})`,
  to_str: (text) => `select to_str(now(), ${text})`,
};

for (const [name, statement] of Object.entries(TIMES)) {
  test.serial(`a timestamp pattern over the length limit is refused: ${name}`, async (t) => {
    const maximum = MAX_TIMESTAMP_BYTES;
    const words = new RegExp(
      `the timestamp pattern is ${maximum + 1} bytes long: at most ${maximum} bytes`,
    );
    for (const text of [`'${'y'.repeat(maximum + 1)}'`, `rpad('y', ${maximum + 1}, 'y')`]) {
      t.regex((await send(server, statement(text))).error ?? '', words);
    }
    t.is((await send(server, statement(`'${'y'.repeat(maximum)}'`))).error, undefined);
  });
}

/** Imports one row with a column pattern of `bytes` bytes. */
async function imported(bytes: number): Promise<string> {
  const schema = [{ name: 'd', type: 'TIMESTAMP', pattern: 'y'.repeat(bytes) }];
  const form = new FormData();
  form.append('schema', JSON.stringify(schema));
  form.append('data', new Blob(['d,x\n2026,1\n']), 'd.csv');
  const response = await fetch(`${server.url}/imp?name=d&fmt=json&forceHeader=true`, {
    method: 'POST',
    body: form,
  });
  return await response.text();
}

test.serial('a timestamp pattern over the length limit is refused in a CSV column', async (t) => {
  const maximum = MAX_TIMESTAMP_BYTES;
  const words = new RegExp(
    `the timestamp pattern is ${maximum + 1} bytes long: at most ${maximum} bytes`,
  );
  t.regex(await imported(maximum + 1), words);
  t.is((await send(server, 'select count() from d')).status, 400, 'no table was created');
  t.notRegex(await imported(maximum), /the timestamp pattern has/);
});
