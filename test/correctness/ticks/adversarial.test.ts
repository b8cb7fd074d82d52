/**
 * Interval strings that exceed limits on memory or time. Every entry point accepts them or refuses
 * them with a short message, and the server survives.
 */
import test from 'ava';

import { startTestServer } from '../../golden/server.js';
import { internalWord } from '../../internal-words.js';
import {
  clientMessage,
  errorFields,
  RawClient,
  type ServerMessage,
} from '../../pgwire/raw-client.js';
import { quoted } from './answers.js';

const list = (item: string, count: number): string =>
  `[${Array.from({ length: count }, () => item).join(',')}]`;
const MANY = 'too many intervals';
const SETUP: readonly string[] = [
  'CREATE TABLE h (ts TIMESTAMP, other TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY',
  "INSERT INTO h VALUES ('2024-01-01', '2024-01-01'), ('2024-06-01', '2024-06-01')",
];

/**
 * Interval strings, each with the start of its error message or the number of rows (out of two)
 * that it selects.
 */
const CASES: readonly (readonly [text: string, answer: string | number])[] = [
  [list('2024-01-01', 95_000), 1],
  [list('2024-01-[01..28]', 40_000), MANY],
  [list('2024#Mon', 50_000), MANY],
  [list('$today-2147bd..$today-2140bd', 30_000), MANY],
  ['2024-01-[1..9999999]', MANY],
  ['2024-01-[9..1]', 'Range must be ascending: 9..1'],
  ['2024-[01..12]-[01..28]T[00..23]:[00..59]', MANY],
  [`2024-${'[1,2]'.repeat(200_000)}`, 'too many brackets'],
  ['[1]'.repeat(330_000), "Expected 'T' and a time"],
  ['['.repeat(1_000_000), "Unclosed '['"],
  [']'.repeat(1_000_000), 'Invalid date: '],
  ['2'.repeat(1_000_000), 'Invalid date: '],
  ['..'.repeat(400_000), 'Invalid date: '],
  ['2024-01-01;1h;1d;9223372036854775807', MANY],
  ['2024-01-01;1h;1d;99999999999999999999', 'Count not a number'],
  ['2024-01-01;1h;0d;99999999', MANY],
  ['2024-01-06#Sun;1h;7d;99999999', MANY],
  [`2024-01-01;${'1h'.repeat(400_000)}`, 'too many units'],
  [`2024-01-01${';'.repeat(900_000)}`, 'Invalid interval format: '],
  [`2024-01-01@${'x'.repeat(900_000)}`, 'invalid timezone: '],
  [`2024-01-01#${'Mon,'.repeat(200_000)}`, 1],
  ['$today..$today+2147483647d', 'interval is out of range'],
  ['$today+2147483647bd', 'interval is out of range'],
  ['$now+2147483647y', 'interval is out of range'],
  ['9999-12-31;9999y', 0],
  ['', 'Invalid date: '],
  ['[]', 'Empty bracket expansion'],
  ['2024-01-[]', 'Empty bracket expansion'],
  ['2024-01-01T\u{1f600}', 'Invalid date: '],
  ['$\u{1f600}', 'Unknown date variable: '],
];

const FAILURE_BYTES = 400;

function answerOf(messages: readonly ServerMessage[]): string | number {
  const row = messages.find(({ type }) => type === 'D');
  const failure = messages.find(({ type }) => type === 'E');
  return row === undefined
    ? (errorFields(failure)['M'] ?? 'no answer')
    : Number(row.body.toString('utf8', 6));
}

test('strings that expand too far are refused with a short message', async (t) => {
  t.timeout(300_000);
  const server = await startTestServer({ set: ['pg.auth.method=cleartext'] });
  t.teardown(() => server.stop());
  const client = await RawClient.login(Number(server.pg.split(':')[1]));
  t.teardown(() => {
    client.close();
  });
  for (const sql of SETUP) {
    client.send(clientMessage('Q', sql));
    await client.until('Z');
  }
  const check = async (
    [text, expected]: (typeof CASES)[number],
    form: string,
    messages: readonly Buffer[],
  ): Promise<void> => {
    client.send(...messages);
    const answer = answerOf(await client.until('Z'));
    const label = `${text.slice(0, 60)} by ${form}`;
    if (typeof answer === 'number' || typeof expected === 'number') {
      t.is(answer, expected, label);
    } else {
      t.true(answer.startsWith(expected), `${label}: ${answer}`);
      t.true(Buffer.byteLength(answer) < FAILURE_BYTES, label);
      t.is(internalWord(answer), null, label);
    }
  };
  for (const one of CASES) {
    const [text] = one;
    const value = Buffer.from(text);
    for (const column of ['ts', 'other']) {
      const sql = `SELECT count() FROM h WHERE ${column} IN`;
      await check(one, column, [clientMessage('Q', `${sql} ${quoted(text)}`)]);
      await check(one, `${column} and a parameter`, [
        clientMessage('P', '', `${sql} $1`, [1], 25),
        clientMessage('B', '', '', [1], [0], [1], value.length, value, [0]),
        clientMessage('E', '', 0),
        clientMessage('S'),
      ]);
    }
  }
});

test('the number of intervals is limited on columns that are not in time order', async (t) => {
  const server = await startTestServer({ set: ['pg.auth.method=cleartext'] });
  t.teardown(() => server.stop());
  const client = await RawClient.login(Number(server.pg.split(':')[1]));
  const counts: (string | number)[] = [];
  for (const sql of [
    ...SETUP,
    "SELECT count() FROM h WHERE ts IN '2024-01-01;1s;1h;99999'",
    "SELECT count() FROM h WHERE other IN '2024-01-01;1s;1h;99999'",
    "SELECT count() FROM h WHERE other IN '2024-01-01;1s;1h;4000'",
  ]) {
    client.send(clientMessage('Q', sql));
    counts.push(answerOf(await client.until('Z')));
  }
  client.close();
  t.is(counts[2], 2);
  t.regex(String(counts[3]), /^the plan of the statement is too large/);
  t.is(counts[4], 2);
});
