import test from 'ava';
import { AnswerReader, type Row } from '../src/api/answer.js';

const BODY =
  '{"query":"select \\"dataset\\":[ x","columns":[{"name":"a","type":"INT"},{"name":"b","type":' +
  '"STRING"}],"timestamp":-1,"dataset":[[1,"x]\\"[,\\\\"],[2,null],[3,"é\\u0001"]],' +
  '"count":3,"timings":{"execute":12}}';

function readIn(chunks: readonly string[]): { rows: Row[]; reader: AnswerReader } {
  const reader = new AnswerReader();
  const rows = chunks.flatMap((chunk) => reader.feed(chunk));
  return { rows, reader };
}

test('a response is parsed to the same result however it is split', (t) => {
  const expected = [
    [1, 'x]"[,\\'],
    [2, null],
    [3, 'é\u0001'],
  ];
  for (let size = 1; size <= BODY.length; size++) {
    const chunks = BODY.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
    const { rows, reader } = readIn(chunks);
    t.deepEqual(rows, expected, `chunks of ${size} characters`);
    t.is(reader.head?.query, 'select "dataset":[ x');
    t.is(reader.head?.timestamp, -1);
    t.deepEqual(reader.finish(), { count: 3, timings: { execute: 12 } });
  }
});

test('complete rows are returned before the response has ended', (t) => {
  const reader = new AnswerReader();
  const head = '{"columns":[{"name":"a","type":"INT"}],"dataset":[';
  t.deepEqual(reader.feed(`${head}[1],[2],[`), [[1], [2]]);
  t.is(reader.head?.columns[0]?.name, 'a');
  t.deepEqual(reader.feed('3]'), [[3]]);
  t.throws(() => reader.finish(), { instanceOf: SyntaxError });
});

test('the end of a nested array is not taken for the end of a row', (t) => {
  const { rows } = readIn(['{"columns":[],"dataset":[[[1.0,[2]],"a"],[null,"b"]],"count":2}']);
  t.deepEqual(rows, [
    [[1, [2]], 'a'],
    [null, 'b'],
  ]);
});

test('responses to statements, errors and empty results contain no rows', (t) => {
  const empty = readIn(['{"columns":[{"name":"a","type":"INT"}],"dataset":[],"count":0}']);
  t.deepEqual(empty.rows, []);
  t.is(empty.reader.finish().count, 0);
  t.deepEqual(readIn(['{"ddl":"OK"}']).reader.finish(), { ddl: 'OK' });
  t.is(readIn(['{"query":"x","error":"no","position":3}']).reader.finish().position, 3);
  t.throws(() => readIn(['<html>']).reader.finish(), { instanceOf: SyntaxError });
  t.throws(() => readIn(['[]']).reader.finish(), { instanceOf: SyntaxError });
});
