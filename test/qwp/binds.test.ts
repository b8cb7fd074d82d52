/** QWP parameters that the server itself decodes. */
import test from 'ava';

import { ParameterBatch, parameterHeader } from '../../ts/session/index.js';
import { int64 } from './requests.js';

test('binary integer parameters are little-endian', (t) => {
  const header = parameterHeader([
    { format: 2, oid: 0x05 },
    { format: 2, oid: 0x03 },
    { format: 1, oid: 21 },
  ]);
  const row = [int64(-5), Buffer.from([1, 2]), Buffer.from([1, 2])];
  const batch = ParameterBatch.of([row], header);
  t.is(batch.integerAt(0), '-5');
  t.is(batch.integerAt(1), '513');
  t.is(batch.integerAt(2), '258');
});
