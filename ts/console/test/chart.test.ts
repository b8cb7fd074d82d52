import test from 'ava';
import type { Column, Row } from '../src/api/answer.js';
import { decimated, onSecondAxis } from '../src/chart/decimate.js';
import { chartData, chooseChart, milliseconds, spoken, type Series } from '../src/chart/model.js';

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
  t.like(plan, {
    axis: 'time',
    x: 1,
    key: undefined,
    values: [2, 0],
    drawn: 1,
    candles: undefined,
  });
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
  const data = chartData(cols, rows, { axis: 'time', x: 0, key: 1 }, [2]);
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
  const data = chartData(cols, rows, { axis: 'time', x: 0, key: undefined }, [1]);
  t.deepEqual(data.times, [ms(0), ms(1), ms(2)]);
  t.deepEqual(data.series[0]?.points, [1, null, 3]);
});

test('what cannot be drawn is said in a sentence', (t) => {
  const time = columns(['ts', 'TIMESTAMP'], ['s', 'SYMBOL']);
  t.regex(chooseChart(time, 0, []).why ?? '', /no rows/);
  t.regex(chooseChart(time, 0, [[at(0), 'a']]).why ?? '', /number column/);
  t.regex(chooseChart(columns(['n', 'INT']), -1, [[1]]).why ?? '', /time column, names, or/);
  t.regex(chooseChart(columns(['s', 'SYMBOL']), -1, [['a']]).why ?? '', /number column/);
});

test('64-bit and decimal text is drawn as numbers, anything else as a gap', (t) => {
  const cols = columns(['ts', 'TIMESTAMP'], ['n', 'LONG']);
  const rows: Row[] = [
    [at(0), '42'],
    [at(1), 'x'],
  ];
  t.deepEqual(
    chartData(cols, rows, { axis: 'time', x: 0, key: undefined }, [1]).series[0]?.points,
    [42, null],
  );
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

test('names and numbers become bars, the largest first', (t) => {
  const cols = columns(['s', 'SYMBOL'], ['n', 'LONG']);
  const rows: Row[] = [
    ['a', '1'],
    [null, '3'],
    ['c', null],
    ['d', '2'],
  ];
  const { plan } = chooseChart(cols, -1, rows);
  t.like(plan, { axis: 'names', x: 0, values: [1], drawn: 1 });
  const data = chartData(cols, rows, { axis: 'names', x: 0, key: undefined }, [1]);
  t.deepEqual(data.names, ['null', 'd', 'a', 'c']);
  t.deepEqual(data.series[0]?.points, [3, 2, 1, null]);
  const many: Row[] = Array.from({ length: 100 }, (_, index) => [`s${index}`, String(index)]);
  t.is(chartData(cols, many, { axis: 'names', x: 0, key: undefined }, [1]).left, 60);
});

test('two numbers become a cloud in the order of the first', (t) => {
  const cols = columns(['a', 'DOUBLE'], ['b', 'LONG']);
  const rows: Row[] = [
    [3, '1'],
    [null, '9'],
    [1, '2'],
  ];
  const { plan } = chooseChart(cols, -1, rows);
  t.like(plan, { axis: 'number', x: 0, values: [1], drawn: 1 });
  const data = chartData(cols, rows, { axis: 'number', x: 0, key: undefined }, [1]);
  t.deepEqual(data.times, [1, 3]);
  t.deepEqual(data.series[0]?.points, [2, 1]);
});

test('a million points keep extremes, ends and gaps in few', (t) => {
  const count = 250_000;
  const times = Array.from({ length: count }, (_, index) => index);
  const wave = (shift: number): (number | null)[] =>
    times.map((at) => (at === 77_777 ? null : Math.sin(at / 900 + shift)));
  const data = { times, series: [0, 1, 2, 3].map((n) => ({ label: `s${n}`, points: wave(n) })) };
  const [first] = data.series;
  const spiked = { ...data, series: [...data.series, { label: 'x', points: times.map(() => 0) }] };
  (spiked.series[4]?.points as number[])[123_456] = 99;
  const few = decimated(spiked, undefined, 300);
  t.true(few.times.length < 300 * 4 * 5, `${few.times.length} points`);
  t.is(few.times[0], 0);
  t.is(few.times.at(-1), count - 1);
  t.is(few.series[4]?.points[few.times.indexOf(123_456)], 99);
  t.is(few.series[0]?.points[few.times.indexOf(77_777)], null);
  const highest = (points: Series['points'] = []): number =>
    points.reduce<number>((most, point) => Math.max(most, point ?? most), -2);
  t.is(highest(few.series[0]?.points), highest(first?.points));
  const part = decimated(data, { from: 1000.5, to: 1010 }, 300);
  t.deepEqual([part.times[0], part.times.at(-1)], [1000, 1011], 'lines lead out of the picture');
});

test('one point, no points and all gaps are left as they are', (t) => {
  for (const points of [[], [5], [null, null]]) {
    const data = { times: points.map((_point, index) => index), series: [{ label: 'a', points }] };
    t.is(decimated(data, undefined, 10), data);
  }
});

test('series of another size go by a second axis', (t) => {
  const of = (...sizes: number[]) => ({
    times: [0],
    series: sizes.map((size, index) => ({ label: `s${index}`, points: [size] })),
  });
  t.deepEqual(onSecondAxis(of(100, 3000, 90, 2), [true, true, true, true]), [
    false,
    true,
    false,
    true,
  ]);
  t.deepEqual(onSecondAxis(of(100, 3000), [true, false]), [false, false]);
});
