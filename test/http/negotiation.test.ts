/** Response content coding. */
import test from 'ava';

import { chooseCoding } from '../../ts/http/request/negotiation.js';

const CASES: readonly (readonly [header: string | undefined, coding: 'gzip' | 'br' | null])[] = [
  [undefined, null],
  ['', null],
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['GZIP', 'gzip'],
  ['br', 'br'],
  ['deflate', null],
  ['*', null],
  ['gzip, deflate, br, zstd', 'gzip'],
  ['gzip;q=0', null],
  ['gzip;q=0, br', 'br'],
  ['gzip;q=0.1, br;q=1', 'br'],
  ['br;q=0.5, gzip;q=0.5', 'gzip'],
  ['identity', null],
  ['identity;q=0.5, gzip', 'gzip'],
  ['identity, gzip;q=0.5', null],
  ['identity;q=0, br', 'br'],
  ['gzip;q=nonsense', null],
  ['gzip;q=2', null],
  ['gzip ; q=1.000', 'gzip'],
  [',,,;;,gzip', 'gzip'],
];

for (const [header, coding] of CASES) {
  test(`Accept-Encoding: ${header ?? 'absent'} selects ${coding ?? 'no compression'}`, (t) => {
    t.is(chooseCoding(header, ['gzip', 'br']), coding);
  });
}
