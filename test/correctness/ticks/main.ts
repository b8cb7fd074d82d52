/**
 * Compares interval expressions with QuestDB: which are accepted, and which intervals they denote.
 *
 *     npm run tick-differential -- --peer HTTP_PORT --expressions N --seed S
 *
 * With `--record 1` the answers are written to a file for the tests, which do not need QuestDB.
 */
import { writeFileSync } from 'node:fs';

import { execute } from '../../golden/http-client.js';
import { Harness } from '../../torture/harness.js';
import { Tidemark } from '../databases.js';
import { agree, answerOf, type Query, shown, type TickAnswer } from './answers.js';
import { decidedBy } from './differences.js';
import { TickExpressions } from './expressions.js';
import { recordOf, RECORDED, type Recorded } from './recorded.js';

const TABLES = [
  'CREATE TABLE ticks (ts TIMESTAMP, v INT) TIMESTAMP(ts) PARTITION BY YEAR',
  'CREATE TABLE ticks_ns (ts TIMESTAMP_NS, v INT) TIMESTAMP(ts) PARTITION BY YEAR',
];

/** An answer with at least this many values is considered long. */
const LONG = 40;

const harness = new Harness('tick-differential', ['peer', 'expressions', 'record', 'shown']);
const port = harness.number('peer', 0);
if (port === 0) {
  harness.skip('no peer: --peer gives the HTTP port of a QuestDB on this machine');
}
const tidemark = await Tidemark.start();

const queryBy = (url: string): Query => {
  return async (sql) => JSON.parse((await execute(url, sql, {})).body.toString()) as unknown;
};
const ours = queryBy(tidemark.server.url);
const peer = queryBy(`http://127.0.0.1:${port}`);

for (const sql of TABLES) {
  await ours(sql);
  await peer(sql.replace('CREATE TABLE', 'CREATE TABLE IF NOT EXISTS'));
}

const expressions = new TickExpressions(harness.random);
const texts = new Map<string, boolean>();
const expected = harness.number('expressions', 4000);
while (texts.size < expected) {
  const { text, isMalformed } = expressions.next();
  texts.set(text, isMalformed);
}
const recorded: Recorded[] = [];
const tally = new Map<string, number>();

function count(what: string): void {
  tally.set(what, (tally.get(what) ?? 0) + 1);
}

/** Compares the answers for one timestamp type. Returns the difference unless it is intentional. */
function judge(text: string, [own, other]: readonly [TickAnswer, TickAnswer]): string | undefined {
  if (agree(own, other)) {
    count('refused' in own ? 'both refuse' : 'equal');
    return undefined;
  }
  const decision = decidedBy({
    text,
    isMalformed: texts.get(text) === true,
    ours: own,
    peer: other,
  });
  count(decision ?? 'DIFFERENT');
  const lines = `${text}\n   ours ${shown(own)}\n   peer ${shown(other)}`;
  return decision === undefined ? lines : undefined;
}

let left = harness.number('shown', 0);
for (const text of texts.keys()) {
  const pairs: (readonly [TickAnswer, TickAnswer])[] = [];
  for (const table of ['ticks', 'ticks_ns']) {
    pairs.push(await Promise.all([answerOf(ours, table, text), answerOf(peer, table, text)]));
  }
  const [micros, nanos] = pairs.map((pair) => judge(text, pair));
  harness.judge(micros ?? nanos);
  const [pair] = pairs;
  if (pair !== undefined && micros === undefined) {
    const line = recordOf(text, pair, texts.get(text) === true);
    // Only a sample of the long answers is recorded.
    const numbers = [...(line.peer ?? []), ...(line.ours ?? [])];
    const isLong = numbers.length > LONG;
    if (!numbers.every(Number.isSafeInteger)) {
      // QuestDB interpreted the string as a time outside its calendar, so the answer is not
      // recorded.
    } else if (!isLong || harness.random.next() < 0.05) {
      recorded.push(line);
    }
    if (left > 0 && !agree(...pair)) {
      left -= 1;
      const [own, other] = pair;
      harness.say(`${text}\n   ours ${shown(own)}\n   peer ${shown(other)}`);
    }
  }
}
for (const [what, number] of [...tally].toSorted(([, a], [, b]) => b - a)) {
  harness.say(`${String(number).padStart(6)} ${what}`);
}
if (harness.number('record', 0) === 1 && harness.failures === 0) {
  writeFileSync(RECORDED, recorded.map((line) => `${JSON.stringify(line)}\n`).join(''));
}
await tidemark.close();
harness.finish();
