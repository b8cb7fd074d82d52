import test from 'ava';
import type { Column, Row } from '../../src/api/answer.js';
import { annotationsOf } from '../../src/chart/annotations.js';
import { pointsAsCsv } from '../../src/chart/files.js';
import { kindsOf, usualKind } from '../../src/chart/kinds.js';
import { chooseChart, type ChartData } from '../../src/chart/model.js';
import {
  levelOf,
  drawOptionsOf,
  optionTrouble,
  valueText,
  withoutEmpty,
} from '../../src/chart/options.js';
import { endsOf, figuresOf } from '../../src/chart/plot/figures.js';
import { heatColour } from '../../src/chart/plot/draw.js';
import { aboveZero, depthData, heatCells, histogram, stacked } from '../../src/chart/shapes.js';

function columns(...pairs: [string, string][]): Column[] {
  return pairs.map(([name, type]) => ({ name, type }));
}

const DATA: ChartData = {
  times: [0, 1, 2, 3],
  series: [
    { label: 'a', points: [1, 2, null, 4] },
    { label: 'b', points: [10, undefined, 30, 40] },
    { label: 'c', points: [100, 100, 100, 100] },
  ],
};

test('stacked charts add up visible series, and a gap affects only its own series', (t) => {
  const { series } = stacked(DATA, [true, true, true]);
  t.deepEqual(
    series.map(({ points }) => points),
    [
      [1, 2, null, 4],
      [11, 12, 30, 44],
      [111, 112, 130, 144],
    ],
  );
  t.deepEqual(stacked(DATA, [true, false, true]).series[2]?.points, [101, 102, 100, 104]);
});

test('a histogram counts every value once, in ranges of round width', (t) => {
  const values = Array.from({ length: 1000 }, (_, at) => at / 100);
  const { times, series, width } = histogram(values, 'v');
  t.is(series[0]?.label, 'count of v');
  t.is(
    series[0]?.points.reduce<number>((sum, point) => sum + (point ?? 0), 0),
    1000,
  );
  t.is(width, 0.5);
  t.is(times.length, 20);
  t.deepEqual(series[0]?.points.slice(0, 2), [50, 50]);
  t.deepEqual(histogram([7, 7, 7], 'v').series[0]?.points, [3]);
  t.deepEqual(histogram([], 'v').times, []);
  const far = histogram([-1e308, 1e308, 0], 'v').series[0]?.points ?? [];
  t.is(
    far.reduce<number>((sum, point) => sum + (point ?? 0), 0),
    3,
  );
});

test('a depth chart accumulates bids downwards and asks upwards', (t) => {
  const rows: Row[] = [
    ['buy', 99, 1],
    ['buy', 98, 2],
    ['sell', 101, 4],
    ['sell', 102, '8'],
    ['sell', null, 5],
  ];
  const cols = columns(['side', 'SYMBOL'], ['price', 'DOUBLE'], ['amount', 'LONG']);
  const { plan } = chooseChart(cols, -1, rows);
  t.deepEqual(plan?.depth, { kind: 'rows', side: 0, price: 1, amount: 2 });
  const data = depthData(rows, { kind: 'rows', side: 0, price: 1, amount: 2 });
  t.deepEqual(data.times, [98, 99, 101, 102]);
  t.deepEqual(data.series[0]?.points, [3, 1, undefined, undefined]);
  t.deepEqual(data.series[1]?.points, [undefined, undefined, 4, 12]);
});

test('a depth chart of arrays uses the last order book', (t) => {
  const cols = columns(['ts', 'TIMESTAMP'], ['bids', 'DOUBLE[][]'], ['asks', 'DOUBLE[][]']);
  const rows: Row[] = [
    ['2024-01-01T00:00:00Z', [[1], [1]], [[2], [1]]],
    [
      '2024-01-01T00:00:01Z',
      [
        [9, 8],
        [1, 2],
      ],
      [
        [10, 11],
        [3, null],
      ],
    ],
  ];
  const { plan } = chooseChart(cols, 0, rows);
  t.deepEqual(plan?.depth, { kind: 'arrays', bids: 1, asks: 2 });
  t.deepEqual(plan && kindsOf(plan), ['depth']);
  const data = depthData(rows, { kind: 'arrays', bids: 1, asks: 2 });
  t.deepEqual(data.times, [8, 9, 10]);
  t.deepEqual(data.series[0]?.points, [3, 1, undefined]);
  t.deepEqual(data.series[1]?.points, [undefined, undefined, 3]);
});

test('a heat map shows the mean per cell and leaves missing cells empty', (t) => {
  const cells = heatCells(DATA, 2);
  t.deepEqual(cells.starts, [0, 2]);
  t.deepEqual(cells.means, [
    [1.5, 4],
    [10, 35],
    [100, 100],
  ]);
  t.is(heatColour(cells.low, cells), 1);
  t.is(heatColour(cells.high, cells), 7);
  t.is(
    heatCells({ times: [0, 1], series: [{ label: '', points: [null, 1] }] }, 9).means[0]?.[0],
    undefined,
  );
});

test('a numeric column becomes a histogram, and a single row becomes a number', (t) => {
  const one = columns(['v', 'DOUBLE']);
  const many = chooseChart(one, -1, [[1], [2], [3]]).plan;
  t.is(many && usualKind(many), 'histogram');
  const single = chooseChart(one, -1, [[1]]).plan;
  t.is(single && usualKind(single), 'number');
});

test('a logarithmic scale has gaps for zero and negative values', (t) => {
  const data = { times: [0, 1, 2], series: [{ label: '', points: [-1, 0, 5] }] };
  t.deepEqual(aboveZero(data).series[0]?.points, [null, null, 5]);
});

test('invalid chart options are refused with an explanation', (t) => {
  t.is(optionTrouble({}), undefined);
  t.is(
    optionTrouble({ unit: '%', decimals: '2', scale: 'log', least: '0', most: '1e3' }),
    undefined,
  );
  t.regex(optionTrouble({ decimals: '12' }) ?? '', /0 to 9/);
  t.regex(optionTrouble({ scale: 'square' }) ?? '', /linear or log/);
  t.regex(optionTrouble({ least: 'x' }) ?? '', /numbers/);
  t.regex(optionTrouble({ least: '2', most: '1' }) ?? '', /must be less than the maximum/);
  t.regex(optionTrouble({ thresholds: '80 loud' }) ?? '', /"80 loud" is not a valid threshold/);
  t.regex(optionTrouble({ thresholds: 'NaN warn' }) ?? '', /is not a valid threshold/);
  t.regex(optionTrouble({ thresholds: Array(9).fill('1').join() }) ?? '', /^At most 8/);
  t.regex(optionTrouble({ unit: 'x'.repeat(17) }) ?? '', /16 characters/);
  t.deepEqual(withoutEmpty({ scale: 'linear', unit: ' ', most: '5', other: 'x' }), { most: '5' });
});

test('thresholds are sorted and classify a value', (t) => {
  const { thresholds } = drawOptionsOf({ thresholds: '95 error, 80, -1 ok' });
  t.deepEqual(
    thresholds.map(({ at }) => at),
    [-1, 80, 95],
  );
  t.is(levelOf(-2, thresholds), undefined);
  t.is(levelOf(80, thresholds), 'warn');
  t.is(levelOf(1e9, thresholds), 'error');
});

test('values are formatted with their unit and decimals', (t) => {
  const text = (value: number, unit: string, decimals?: number): string =>
    valueText(value, { unit, decimals }, String);
  t.is(text(1.5, ''), '1.5');
  t.is(text(1234.567, '', 2), '1,234.57');
  t.is(text(50, '%'), '50%');
  t.is(text(3, 'req/s', 1), '3.0 req/s');
  t.is(text(1_234_567, 'short'), '1.2 M');
  t.is(text(-1500, 'short'), '-1.5 k');
  t.is(text(1536, 'bytes'), '1.5 KiB');
  t.is(text(-1536, 'bytes'), '-1.5 KiB');
  t.is(text(1500, 'ms'), '1.5 s');
  t.is(text(90, 's'), '1 min 30 s');
});

test('figures show the last values; gauge limits are rounded unless configured', (t) => {
  const [first, second] = figuresOf(DATA, [true, false, true]);
  t.like(first, { label: 'a', last: 4, before: 2 });
  t.is(second?.label, 'c');
  const figure = { last: 42, points: [3, 42] };
  t.deepEqual(endsOf(figure, drawOptionsOf({})), { low: 0, high: 50 });
  t.deepEqual(endsOf(figure, drawOptionsOf({ unit: '%' })), { low: 0, high: 100 });
  t.deepEqual(endsOf(figure, drawOptionsOf({ least: '10', most: '60' })), { low: 10, high: 60 });
  t.deepEqual(endsOf({ last: -3, points: [-3] }, drawOptionsOf({})), { low: -5, high: 1 });
});

test('exported points keep their values; times are in UTC, and gaps are empty', (t) => {
  const at = Date.UTC(2024, 0, 1);
  const data = {
    times: [at, at + 0.5],
    series: [
      { label: 'a "b"', points: [1.5, null] },
      { label: 'hidden', points: [7, 7] },
    ],
  };
  t.is(
    pointsAsCsv({ data, axis: 'time', shown: [true, false] }),
    'time,"a ""b"""\r\n2024-01-01T00:00:00.000Z,1.5\r\n2024-01-01T00:00:00.000500Z,\r\n',
  );
});

test('annotations have a time, an optional end and a label', (t) => {
  const cols = columns(['from', 'TIMESTAMP'], ['to', 'TIMESTAMP'], ['what', 'VARCHAR']);
  const rows: Row[] = [
    ['1970-01-01T00:00:01Z', null, 'deployed'],
    ['1970-01-01T00:00:02Z', '1970-01-01T00:00:03Z', null],
    [null, null, 'nowhere'],
  ];
  t.deepEqual(annotationsOf({ columns: cols, rows }), [
    { at: 1000, text: 'deployed' },
    { at: 2000, to: 3000, text: '' },
  ]);
  t.throws(() => annotationsOf({ columns: columns(['v', 'LONG']), rows }), {
    message: /no time column/,
  });
});
