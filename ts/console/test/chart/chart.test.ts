import test from 'ava';
import type { Column, Row } from '../../src/api/answer.js';
import { asChange, decimated, isFlat, onSecondAxis } from '../../src/chart/decimate.js';
import {
  chartData,
  chooseChart,
  keysOf,
  milliseconds,
  rowsOfKey,
  spoken,
  type Series,
} from '../../src/chart/model.js';
import { mergedCandles, MIN_CANDLE_PX } from '../../src/chart/candles.js';
import { extentQuery, sampledQuery } from '../../src/sql/ranges.js';

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

test('a time column with numbers becomes a line chart that prefers doubles to integers', (t) => {
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

test('candles are the default chart for open, high, low and close', (t) => {
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

test('the reason is shown when a result cannot be drawn', (t) => {
  const time = columns(['ts', 'TIMESTAMP'], ['s', 'SYMBOL']);
  t.regex(chooseChart(time, 0, []).why ?? '', /no rows/);
  t.regex(chooseChart(time, 0, [[at(0), 'a']]).why ?? '', /numeric column/);
  t.regex(chooseChart(columns(['s', 'SYMBOL']), -1, [['a']]).why ?? '', /numeric column/);
});

test('64-bit and decimal strings are drawn as numbers; other strings become gaps', (t) => {
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

test('times keep their microseconds in charts', (t) => {
  t.is(milliseconds('2024-01-01T00:00:00.000500Z'), ms(0) + 0.5);
  t.is(milliseconds('2024-01-01T00:00:00Z'), ms(0));
  t.is(milliseconds('x'), undefined);
  t.is(milliseconds(5), undefined);
});

test('the screen reader summary contains the lowest, highest and last value', (t) => {
  t.deepEqual(spoken([3, null, 1, undefined, 2]), { low: 1, high: 3, last: 2 });
  t.is(spoken([null, undefined]), undefined);
});

test('a column of names with a column of numbers becomes bars, largest first', (t) => {
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

test('two numeric columns become a scatter plot, ordered by the first column', (t) => {
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

test('decimating a million points keeps extremes, ends and gaps', (t) => {
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
    points.reduce<number>((max, point) => Math.max(max, point ?? max), -2);
  t.is(highest(few.series[0]?.points), highest(first?.points));
  const range = decimated(data, { from: 1000.5, to: 1010 }, 300);
  t.deepEqual(
    [range.times[0], range.times.at(-1)],
    [1000, 1011],
    'lines continue beyond the visible range',
  );
});

test('series with one point, no points or only gaps are not decimated', (t) => {
  for (const points of [[], [5], [null, null]]) {
    const data = { times: points.map((_point, index) => index), series: [{ label: 'a', points }] };
    t.is(decimated(data, undefined, 10), data);
  }
});

test('series of a different magnitude use the second axis', (t) => {
  const of = (...sizes: number[]) => ({
    times: [0],
    series: sizes.map((size, index) => ({ label: `s${index}`, points: [size] })),
  });
  t.deepEqual(onSecondAxis(of(100, 3000, 90, 2), [true, true, true, true]), [
    false,
    false,
    false,
    true,
  ]);
  t.deepEqual(onSecondAxis(of(100, 3000), [true, false]), [false, false]);
});

test('candle columns are found by common or function names, next to a key column', (t) => {
  const rows: Row[] = [
    [at(0), 'a', 1, 2, 0, 1],
    [at(0), 'b', 5, 6, 4, 5],
    [at(1), 'a', 2, 3, 1, 2],
  ];
  for (const names of [
    ['open', 'high', 'low', 'close'],
    ['o', 'h', 'l', 'c'],
    ['open_price', 'high_price', 'low_price', 'close_price'],
    ['first', 'max', 'min', 'last'],
  ]) {
    const cols = columns(
      ['timestamp', 'TIMESTAMP'],
      ['symbol', 'SYMBOL'],
      ...names.map((name): [string, string] => [name, 'DOUBLE']),
    );
    const { plan } = chooseChart(cols, 0, rows);
    t.is(plan?.key, 1, names.join());
    t.like(plan?.candles, { open: 2, high: 3, low: 4, close: 5 }, names.join());
  }
  t.deepEqual(keysOf(rows, 1), ['a', 'b']);
  t.is(rowsOfKey(rows, 1, 'a').length, 2);
});

test('candle columns are found by functions of one column, in any order', (t) => {
  const candlesOf = (names: readonly string[]): unknown => {
    const cols = columns(
      ['ts', 'TIMESTAMP'],
      ...names.map((name): [string, string] => [name, 'DOUBLE']),
    );
    return chooseChart(cols, 0, [[at(0), ...names.map(() => 1)]]).plan?.candles;
  };
  const whole = { open: 1, high: 2, low: 3, close: 4, volume: undefined };
  const suffixes = ['price', 'bid', 't.price', 'midPrice', 'cast(price as double)'];
  const forms = suffixes.flatMap((subject) => [
    ['first', 'max', 'min', 'last'].map((aggregate) => `${aggregate}(${subject})`),
    ['first', 'max', 'min', 'last'].map((aggregate) => `${aggregate.toUpperCase()}( ${subject} )`),
    ['first_not_null', 'max', 'min', 'last_not_null'].map(
      (aggregate) => `${aggregate}(${subject})`,
    ),
  ]);
  for (const names of [
    ...forms,
    ['bid_open', 'bid_high', 'bid_low', 'bid_close'],
    ['first_bid', 'max_bid', 'min_bid', 'last_bid'],
    ['openPrice', 'highPrice', 'lowPrice', 'closePrice'],
    ['first(open)', 'max(high)', 'min(low)', 'last(close)'],
    ['open', 'max(price)', 'min(price)', 'close'],
  ]) {
    t.deepEqual(candlesOf(names), whole, names.join());
    const turned = { open: 4, high: 3, low: 2, close: 1, volume: undefined };
    t.deepEqual(candlesOf(names.toReversed()), turned, names.join());
    t.like(candlesOf([...names, 'sum(amount)']), { ...whole, volume: 5 }, names.join());
  }
  const mixed = ['max(ask)', 'first(bid)', 'max(bid)', 'min(bid)', 'min(ask)', 'last(bid)'];
  t.deepEqual(candlesOf(mixed), { open: 2, high: 3, low: 4, close: 6, volume: undefined });
  t.is(candlesOf(['first(bid)', 'max(ask)', 'min(bid)', 'last(ask)']), undefined);
  t.is(candlesOf(['first(price)', 'max(price)', 'min(price)', 'avg(price)']), undefined);
});

test('candles keep the query interval while there is enough space for each candle', (t) => {
  const quarter = 15 * 60_000;
  const maxCandles = (432 - 90) / MIN_CANDLE_PX;
  for (const count of [2, 24, 96, 97, 150]) {
    const times = Array.from({ length: count }, (_, index) => index * quarter);
    const series = [{ label: 'open', points: times.map(() => 1) }];
    t.is(mergedCandles({ times, series }, maxCandles).span, 1, `${count} candles`);
  }
  const times = Array.from({ length: 1000 }, (_, index) => index * quarter);
  const data = { times, series: [{ label: 'open', points: times.map(() => 1) }] };
  t.is(mergedCandles(data, maxCandles).span, 6);
  const day = { from: 0, to: 95 * quarter };
  t.is(
    mergedCandles(data, maxCandles, day).span,
    1,
    'candles outside the visible range do not count',
  );
});

test('any four numeric columns can be chosen for candles', (t) => {
  const of = (...names: string[]): boolean | undefined => {
    const cols = columns(
      ['ts', 'TIMESTAMP'],
      ...names.map((name): [string, string] => [name, 'DOUBLE']),
    );
    return chooseChart(cols, 0, [[at(0), 1, 2, 3, 4]]).plan?.mayBeCandles;
  };
  t.true(of('a', 'b', 'c', 'd'));
  t.false(of('a', 'b', 'c'));
});

test('dense candles are merged by first, highest, lowest and last value and by sum', (t) => {
  const times = [0, 1, 2, 3, 4, 5].map((minute) => minute * 60_000);
  const series = [
    { label: 'open', points: [1, 2, 3, 4, 5, 6] },
    { label: 'high', points: [9, 8, 7, 6, 5, 6] },
    { label: 'low', points: [1, 0, 3, 4, 2, 6] },
    { label: 'close', points: [2, 3, 4, 5, 6, 7] },
    { label: 'volume', points: [1, 1, 1, 1, 1, null] },
  ];
  const { data, span } = mergedCandles({ times, series }, 2);
  t.is(span, 3);
  t.deepEqual(data.times, [0, 180_000]);
  t.deepEqual(
    data.series.map(({ points }) => points),
    [
      [1, 4],
      [9, 6],
      [0, 2],
      [4, 7],
      [3, 2],
    ],
  );
  t.is(mergedCandles({ times, series }, 6).span, 1);
});

test('the largest gap in magnitude separates the two axes; flat series are detected', (t) => {
  const of = (...sizes: number[]): { times: number[]; series: Series[] } => ({
    times: [0],
    series: sizes.map((size) => ({ label: String(size), points: [size] })),
  });
  const all = [true, true, true, true];
  t.deepEqual(onSecondAxis(of(64_000, 3_100, 150), all), [false, false, true]);
  t.deepEqual(onSecondAxis(of(100, 5, 101), all), [false, false, false]);
  t.deepEqual(onSecondAxis(of(1, 2_000, 1_000), all), [false, true, true]);
  t.true(isFlat(of(64_000, 3_100, 150), all, [false, false, true]));
  t.false(isFlat(of(1, 2_000, 1_000), all, [false, true, true]));
});

test('prices that would look flat on a shared axis are detected', (t) => {
  const of = (...prices: [number, number][]): { times: number[]; series: Series[] } => ({
    times: [0, 1, 2],
    series: prices.map(([price, by], index) => ({
      label: String(index),
      points: [price - by, undefined, price + by],
    })),
  });
  const flat: readonly [number, number][][] = [
    [
      [64_000, 90],
      [150, 1],
    ],
    [
      [100, 1],
      [250, 2],
    ],
    [
      [0.45, 0.001],
      [0.52, 0.001],
    ],
    [
      [64_000, 900],
      [3100, 20],
      [150, 3],
    ],
  ];
  for (const prices of flat) {
    const all = prices.map(() => true);
    t.true(isFlat(of(...prices), all, []), prices.join());
    t.false(
      isFlat(
        of(...prices),
        all.map((_one, at) => at === 0),
        [],
      ),
      'a single visible series',
    );
  }
  t.false(isFlat(of([100, 10], [102, 12]), [true, true], []));
  t.false(
    isFlat(of([64_000, 90], [150, 1]), [true, true], [true, false]),
    'a separate axis per series',
  );
  t.true(isFlat(of([64_000, 90], [150, 1], [100, 1]), [true, true, true], [true, false, false]));
  t.false(isFlat(of([5, 0], [9, 0]), [true, true], []), 'constant series are not flat');
});

test('percent changes are relative to the first value of each series', (t) => {
  const data = asChange({
    times: [0, 1, 2],
    series: [
      { label: 'a', points: [undefined, 200, 210] },
      { label: 'b', points: [null, 0, 4] },
    ],
  });
  t.deepEqual(
    data.series[0]?.points.map((point) => point && Math.round(point * 1e6) / 1e6),
    [undefined, 0, 5],
  );
  t.deepEqual(data.series[1]?.points, [null, -100, 0]);
});

test('hidden series keep their name but have no points', (t) => {
  const cols = columns(['ts', 'TIMESTAMP'], ['k', 'SYMBOL'], ['a', 'DOUBLE'], ['b', 'DOUBLE']);
  const rows: Row[] = [
    [at(0), 'x', 1, 2],
    [at(1), 'y', 3, 4],
  ];
  const plain = chartData(
    cols,
    rows,
    { axis: 'time', x: 0, key: undefined },
    [2, 3],
    (name) => name === 'b',
  );
  t.deepEqual(plain.series, [
    { label: 'a', points: [] },
    { label: 'b', points: [2, 4] },
  ]);
  const keyed = chartData(
    cols,
    rows,
    { axis: 'time', x: 0, key: 1 },
    [2],
    (_name, index) => index === 0,
  );
  t.deepEqual(
    keyed.series.map(({ label, points }) => [label, points.length]),
    [
      ['x', 2],
      ['y', 0],
    ],
  );
});

test('a chart of all rows is queried in time buckets', (t) => {
  const statement = sampledQuery('SELECT * FROM trades', {
    time: 'timestamp',
    key: 'symbol',
    columns: [
      { name: 'price', by: 'ends' },
      { name: 'size of it', by: 'sum' },
    ],
    step: 1234.5,
  });
  t.is(
    statement,
    'SELECT timestamp, symbol, min(price) l0, max(price) h0, sum("size of it") v1 ' +
      'FROM (SELECT * FROM trades\n) SAMPLE BY 1235T',
  );
  t.is(extentQuery('SELECT 1', 'ts'), 'SELECT min(ts), max(ts) FROM (SELECT 1\n)');
});
