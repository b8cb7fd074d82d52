/** Reports about host limits. */
import test from 'ava';

import { hostWarnings } from '../../ts/observability/index.js';

const HOST: Readonly<Record<string, string>> = {
  '/proc/self/limits':
    'Limit                     Soft Limit           Hard Limit           Units     \n' +
    'Max cpu time              unlimited            unlimited            seconds   \n' +
    'Max open files            1024                 1048576              files     \n',
  '/proc/sys/fs/file-max': '9223372036854775807\n',
  '/proc/sys/vm/max_map_count': '65530\n',
};

test('limits that are too low are reported, with the recommended values', (t) => {
  t.deepEqual(
    hostWarnings((path) => HOST[path] ?? ''),
    [
      {
        tag: 'TOO MANY OPEN FILES',
        warning: 'open files limit is too low [current=1024, recommended=1048576]',
      },
      {
        tag: 'OUT OF MMAP AREAS',
        warning: 'vm.max_map_count limit is too low [current=65530, recommended=1048576]',
      },
    ],
  );
});

test('sufficient and unknown limits are not reported', (t) => {
  const enough: Readonly<Record<string, string>> = {
    '/proc/self/limits': 'Max open files            1048576   1048576   files\n',
    '/proc/sys/fs/file-max': '1048576\n',
  };
  t.deepEqual(
    hostWarnings((path) => enough[path] ?? ''),
    [],
  );
});
