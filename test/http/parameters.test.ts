/** URL and form parameter names and values: decoding and invalid UTF-8. */
import test from 'ava';

import { Parameters } from '../../ts/http/request/parameters.js';
import { suiteSeed } from '../seed.js';
import { randomFrom } from '../sql/time-series/random-table.js';

function read(encoded: string): readonly [text: string | undefined, isInvalid: boolean] {
  const parameters = new Parameters();
  parameters.addEncoded(`x=${encoded}`);
  return [parameters.get('x'), parameters.isInvalid('x')];
}

for (const [encoded, text, isInvalid] of [
  ['', '', false],
  ['a', 'a', false],
  ['a+b%20c', 'a b c', false],
  ['%2B%26%3D', '+&=', false],
  ['a=b', 'a=b', false],
  ['%c3%A4', 'ä', false],
  ['\u00c3\u00a4', 'ä', false],
  ['%EF%BB%BFa', '\ufeffa', false],
  ['%F0%9F%99%82', '🙂', false],
  ['%00', '\0', false],
  ['%', '%', true],
  ['%a', '%a', true],
  ['%zz+', '%zz ', true],
  ['%FF', '\ufffd', true],
  ['%C0%80', '\ufffd\ufffd', true],
  ['%ED%A0%80', '\ufffd\ufffd\ufffd', true],
  ['%F4%90%80%80', '\ufffd\ufffd\ufffd\ufffd', true],
  ['%C3', '\ufffd', true],
] as const) {
  test(`x=${encoded} is ${isInvalid ? 'invalid' : 'decoded'}`, (t) => {
    t.deepEqual(read(encoded), [text, isInvalid]);
  });
}

test('short and long strings are decoded alike', (t) => {
  const random = randomFrom(suiteSeed());
  const chunks = ['a', '+', '%20', '%2B', '%C3%A4', '%F0%9F%99%82', '%FF', '%C3', '%zz', '\u00e4'];
  const long = 'x'.repeat(10_000);
  for (let round = 0; round < 2_000; round += 1) {
    const encoded = Array.from(
      { length: random(8) },
      () => chunks[random(chunks.length)] ?? `%${random(256).toString(16).padStart(2, '0')}`,
    ).join('');
    const [text = '', isInvalid] = read(encoded);
    t.deepEqual(read(long + encoded), [long + text, isInvalid], encoded);
  }
});
