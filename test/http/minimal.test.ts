/** Health and metrics on a separate port with the same login. */
import test from 'ava';

import { freePort } from '../free-port.js';
import { startTestServer } from '../golden/server.js';

test('every path responds, /metrics has values, and all paths require the login', async (t) => {
  const port = await freePort();
  const server = await startTestServer({
    set: [
      'http.min.enabled=true',
      `http.min.bind.to=127.0.0.1:${port}`,
      'http.user=joe',
      'http.password=secret',
      'metrics.enabled=true',
    ],
  });
  const get = async (path: string, user = 'joe:secret'): Promise<[number, string]> => {
    const headers = { Authorization: `Basic ${btoa(user)}` };
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
    return [response.status, await response.text()];
  };
  for (const path of ['/', '/status', '/health', '/any/path']) {
    t.deepEqual(await get(path), [200, 'Status: Healthy'], path);
    t.deepEqual(await get(path, 'joe:wrong'), [401, 'Unauthorized\r\n'], path);
  }
  const [status, figures] = await get('/metrics');
  t.is(status, 200);
  t.regex(figures, /^# TYPE tidemark_\w+ (gauge|counter)$/m);
  t.regex(figures, /^tidemark_damaged_tables 0$/m);
  t.is((await get('/metrics', 'joe:wrong'))[0], 401);
  t.deepEqual(await get('/ready', 'joe:wrong'), [200, 'Status: Ready']);
  const posted = await fetch(`http://127.0.0.1:${port}/exec`, { method: 'POST' });
  t.true(posted.status >= 400, 'the port serves no data');
  await server.stop();
});
