import test from 'ava';
import type { Column, Row } from '../src/api/answer.js';
import { chartData, chooseChart, milliseconds, spoken } from '../src/chart/model.js';

const at = (second: number): string =>
  `2024-01-01T00:00:${String(second).padStart(2, '0')}.000000Z`;
const ms = (second: number): number => Date.UTC(2024, 0, 1, 0, 0, second);

function columns(...pairs: [string, string][]): Column[] {
  return pairs.map(([name, type]) => ({ name, type }));
}

const OHLC = columns(
  ['ts', 'TIMESTAMP'],
  ['open', 'DOUBLE'],
  ['high', 'DOUBLE'],
  ['low', 'DOUBLE'],
  ['close', 'DOUBLE'],
  ['volume', 'LONG'],
);

test('time and numbers become lines, fractions before whole numbers', (t) => {
  const cols = columns(['id', 'LONG'], ['ts', 'TIMESTAMP'], ['price', 'DOUBLE'], ['s', 'SYMBOL']);
  const rows: Row[] = [
    ['1', at(0), 1.5, 'a'],
    ['2', at(1), 2.5, 'b'],
  ];
  const { plan } = chooseChart(cols.slice(0, 3), 1, rows);
  t.like(plan, { time: 1, key: undefined, values: [2, 0], drawn: 1, candles: undefined });
  const whole = chooseChart(columns(['ts', 'TIMESTAMP'], ['n', 'LONG']), 0, [[at(0), '1']]);
  t.is(whole.plan?.drawn, 1);
});

test('a key column splits the rows into series', (t) => {
  const cols = columns(['ts', 'TIMESTAMP'], ['symbol', 'SYMBOL'], ['price', 'DOUBLE']);
  const rows: Row[] = [
    [at(0), 'a', 1],
    [at(0), 'b', 10],
    [at(1), 'b', 11],
    [at(2), 'a', 3],
    [at(2), 'b', null],
  ];
  const { plan } = chooseChart(cols, 0, rows);
  t.is(plan?.key, 1);
  const data = chartData(cols, rows, { time: 0, key: 1 }, [2]);
  t.deepEqual(data.times, [ms(0), ms(1), ms(2)]);
  t.deepEqual(
    data.series.map(({ label, points }) => [label, ...points]),
    [
      ['a', 1, undefined, 3],
      ['b', 10, 11, null],
    ],
  );
});

test('candles are chosen for open, high, low and close', (t) => {
  const { plan } = chooseChart(OHLC, 0, [[at(0), 1, 2, 0, 1, '5']]);
  t.deepEqual(plan?.candles, { open: 1, high: 2, low: 3, close: 4, volume: 5 });
});

test('rows in any order are drawn in time order', (t) => {
  const cols = columns(['ts', 'TIMESTAMP'], ['v', 'DOUBLE']);
  const rows: Row[] = [
    [at(2), 3],
    [null, 9],
    [at(0), 1],
    [at(1), null],
  ];
  const data = chartData(cols, rows, { time: 0, key: undefined }, [1]);
  t.deepEqual(data.times, [ms(0), ms(1), ms(2)]);
  t.deepEqual(data.series[0]?.points, [1, null, 3]);
});

test('what cannot be drawn is said in a sentence', (t) => {
  const time = columns(['ts', 'TIMESTAMP'], ['s', 'SYMBOL']);
  t.regex(chooseChart(time, 0, []).why ?? '', /no rows/);
  t.regex(chooseChart(time, 0, [[at(0), 'a']]).why ?? '', /number column/);
  t.regex(chooseChart(columns(['n', 'INT']), -1, [[1]]).why ?? '', /time column/);
});

test('64-bit and decimal text is drawn as numbers, anything else as a gap', (t) => {
  const cols = columns(['ts', 'TIMESTAMP'], ['n', 'LONG']);
  const rows: Row[] = [
    [at(0), '42'],
    [at(1), 'x'],
  ];
  t.deepEqual(chartData(cols, rows, { time: 0, key: undefined }, [1]).series[0]?.points, [
    42,
    null,
  ]);
});

test('times keep their microseconds', (t) => {
  t.is(milliseconds('2024-01-01T00:00:00.000500Z'), ms(0) + 0.5);
  t.is(milliseconds('2024-01-01T00:00:00Z'), ms(0));
  t.is(milliseconds('x'), undefined);
  t.is(milliseconds(5), undefined);
});

test('the spoken summary names low, high and last', (t) => {
  t.deepEqual(spoken([3, null, 1, undefined, 2]), { low: 1, high: 3, last: 2 });
  t.is(spoken([null, undefined]), undefined);
});
