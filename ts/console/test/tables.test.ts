import test from 'ava';
import { bytesText, timestampText } from '../src/model/format.js';
import { Rates, sparkline } from '../src/model/rates.js';

test('sizes and timestamps are formatted briefly', (t) => {
  t.is(bytesText(0), '0 B');
  t.is(bytesText(1536), '1.5 KiB');
  t.is(bytesText(3 * 1024 ** 3), '3.0 GiB');
  t.is(timestampText('2026-01-01T10:30:00.123456Z'), '2026-01-01 10:30:00');
  t.is(timestampText(undefined), '–');
});

test('the ingestion rate covers the last ten seconds', (t) => {
  const rates = new Rates();
  const count = (at: number, rows: number): void => rates.note(at, [{ name: 'a', rows }]);
  count(0, 0);
  t.is(rates.of('a'), undefined);
  count(10_000, 0);
  count(15_000, 500);
  t.is(rates.of('a'), 100);
  t.deepEqual(rates.history('a'), [0, 100]);
  count(16_000, 0);
  t.is(rates.of('a'), 0, 'a shrinking table has a rate of zero');
});

test('a sparkline fills its area', (t) => {
  t.is(sparkline([], 10, 4), 'M0 4H10');
  t.is(sparkline([0, 2, 1], 10, 4), 'M0.0 4.0L5.0 0.0L10.0 2.0');
});
