/** Refused logins must not flood the server log. */
import test from 'ava';

import { refusedLogins } from '../../ts/observability/index.js';

test('the first lines of each minute are logged; the rest are counted', (t) => {
  const lines: (readonly [string, unknown])[] = [];
  const log = refusedLogins({
    info: (event, fields) => {
      lines.push([event, fields]);
    },
  });
  for (let round = 0; round < 1_000; round += 1) {
    log.add({ user: `user${round}`, address: '10.0.0.1' });
  }
  t.is(lines.length, 60);
  t.deepEqual(lines[0], ['login_failed', { user: 'user0', address: '10.0.0.1' }]);
  log.flush();
  t.deepEqual(lines.at(-1), ['logins_failed', { count: 940 }]);
  log.add({ user: 'ann', address: '10.0.0.1' });
  log.flush();
  t.is(lines.length, 62, 'after a minute lines are logged again, and the counter was reset');
});
