import test from 'ava';
import type { Column, Value } from '../src/api/answer.js';
import {
  approximate,
  cellText,
  copyRows,
  copyText,
  duration,
  fractionDigits,
  grouped,
  withHiddenShown,
} from '../src/model/format.js';
import { Result, typeName } from '../src/model/result.js';

function shown(value: Value, type: string, digits = 0): string {
  const cell = cellText(value, { name: 'c', type }, 'utc', digits);
  return `${cell.kind}: ${cell.text}${cell.faint === undefined ? '' : ` + ${cell.faint}`}`;
}

test('null is displayed differently from all other values', (t) => {
  for (const type of ['INT', 'DOUBLE', 'STRING', 'TIMESTAMP', 'BOOLEAN', 'ARRAY']) {
    t.is(shown(null, type), 'null: null');
  }
  t.is(shown('null', 'STRING'), 'plain: null');
  t.is(shown('', 'STRING'), 'special: empty');
});

test('numbers are shown exactly and with separators', (t) => {
  t.is(shown('9223372036854775807', 'LONG'), 'number: 9,223,372,036,854,775,807');
  t.is(shown(-1234.5, 'DOUBLE'), 'number: -1,234.5');
  t.is(shown(1e21, 'DOUBLE'), 'number: 1e+21');
  t.is(shown(-0, 'DOUBLE'), 'special: -0.0');
  t.is(shown('1234.5000', 'DECIMAL(18,4)'), 'number: 1,234.5000');
  t.is(grouped('100'), '100');
  t.is(grouped('1000'), '1,000');
});

test('times show the fractional digits that their column needs', (t) => {
  const time = '2024-01-02T03:04:05.678901Z';
  t.is(shown(time, 'TIMESTAMP', 0), 'time: 2024-01-02 03:04:05');
  t.is(shown(time, 'TIMESTAMP', 3), 'time: 2024-01-02 03:04:05.678');
  t.is(shown(time, 'TIMESTAMP', 6), 'time: 2024-01-02 03:04:05.678 + 901');
  t.is(
    shown('2024-01-02T03:04:05.678901234Z', 'TIMESTAMP_NS', 9),
    'time: 2024-01-02 03:04:05.678 + 901234',
  );
  t.is(shown('not a time', 'TIMESTAMP'), 'plain: not a time');
  t.is(fractionDigits('2024-01-02T03:04:05.000000Z'), 0);
  t.is(fractionDigits('2024-01-02T03:04:05.500000Z'), 3);
  t.is(fractionDigits('2024-01-02T03:04:05.500001Z'), 6);
});

test('arrays, booleans, binary values and long strings stay on one line', (t) => {
  t.is(shown([1, null, [2.5]], 'ARRAY'), 'array: 1, null, [2.5]');
  t.is(shown([1, 2, 3, 4, 5, 6, 7], 'ARRAY'), 'array: 1, 2, 3, 4, 5 + … +2');
  t.is(shown(true, 'BOOLEAN'), 'boolean: true');
  t.is(shown(['any'], 'BINARY'), 'special: binary');
  t.is(shown('a\n\tb', 'STRING'), 'plain: a b');
  t.true(shown('x'.repeat(1000), 'STRING').endsWith(' …'));
});

test('copied values are exact', (t) => {
  t.is(copyText('9223372036854775807'), '9223372036854775807');
  t.is(copyText(1234.5), '1234.5');
  t.is(copyText(-0), '-0.0');
  t.is(copyText(null), '');
  t.is(copyText([1, null]), '[1,null]');
  const columns: Column[] = [
    { name: 'a', type: 'INT' },
    { name: 'b', type: 'STRING' },
  ];
  t.is(copyRows(columns, [[1, 'x\ty']]), 'a\tb\n1\tx y');
});

test('sizes and durations are formatted briefly', (t) => {
  t.is(approximate(1204), '1,204');
  t.is(approximate(66_400), '66.4 k');
  t.is(approximate(48_213_004), '48.2 M');
  t.is(approximate(412_000_000), '412 M');
  t.is(duration(0.42), '0.4 ms');
  t.is(duration(14.2), '14 ms');
  t.is(duration(1532), '1.53 s');
  t.is(duration(95_000), '1 min 35 s');
});

test('the layout is updated when a result grows', (t) => {
  const head = {
    query: '',
    columns: [
      { name: 'ts', type: 'TIMESTAMP' },
      { name: 'text', type: 'VARCHAR' },
    ],
    timestamp: 0,
  };
  const result = new Result(head, 'select');
  result.append([['2024-01-01T00:00:00.000000Z', 'a']]);
  t.is(result.layout[0]?.digits, 0);
  result.append([['2024-01-01T00:00:00.000001Z', 'a longer text']]);
  t.is(result.layout[0]?.digits, 6);
  t.is(result.layout[1]?.chars, 13);
  t.is(result.rows.length, 2);
  t.is(result.cell(1, 1), 'a longer text');
  t.is(result.cell(9, 9), null);
});

test('array types are displayed with element type and dimension count', (t) => {
  t.is(typeName({ name: 'a', type: 'ARRAY', dim: 2, elemType: 'DOUBLE' }), 'DOUBLE[][]');
  t.is(typeName({ name: 'a', type: 'INT' }), 'INT');
});

test('only a repeated local time shows its UTC offset', (t) => {
  const before = process.env['TZ'];
  process.env['TZ'] = 'America/New_York';
  const column: Column = { name: 'ts', type: 'TIMESTAMP' };
  const local = (iso: string): string => {
    const { text, faint = '' } = cellText(iso, column, 'local', 0);
    return text + faint;
  };
  t.is(local('2026-11-01T05:30:00Z'), '2026-11-01 01:30:00 -04:00');
  t.is(local('2026-11-01T06:30:00Z'), '2026-11-01 01:30:00 -05:00');
  t.is(local('2026-11-01T04:59:59Z'), '2026-11-01 00:59:59');
  t.is(local('2026-11-01T07:00:00Z'), '2026-11-01 02:00:00');
  t.is(local('2026-03-08T06:59:59Z'), '2026-03-08 01:59:59');
  t.is(local('2026-03-08T07:00:00Z'), '2026-03-08 03:00:00');
  process.env['TZ'] = 'Australia/Lord_Howe';
  t.is(local('2026-04-04T14:45:00Z'), '2026-04-05 01:45:00 +11:00');
  t.is(local('2026-04-04T15:15:00Z'), '2026-04-05 01:45:00 +10:30');
  if (before === undefined) {
    delete process.env['TZ'];
  } else {
    process.env['TZ'] = before;
  }
});

test('the numbers of a column are aligned at their decimal points', (t) => {
  const price = { name: 'price', type: 'DOUBLE' };
  const short = (value: number | string, digits: number): number | undefined =>
    cellText(value, price, 'utc', digits).short;
  t.deepEqual([short(64097.7088, 5), short(63818.087, 5), short(7, 5)], [undefined, 1, 5]);
  t.is(short('1.5e30', 5), undefined);
  const result = new Result({ query: '', columns: [price], timestamp: -1 }, '');
  result.append([[63818.087], [64097.7088], [0.1234567890123456], [null]]);
  t.like(result.layout[0], { digits: 5, chars: 18 });
});

test('invisible and direction-changing characters are shown as code points', (t) => {
  t.is(withHiddenShown('DROP TABLE \u202eesrever\u200b'), 'DROP TABLE [U+202E]esrever[U+200B]');
  t.is(withHiddenShown('größe 🙂\n\t"x"'), 'größe 🙂\n\t"x"');
});
