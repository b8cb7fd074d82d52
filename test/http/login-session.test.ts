/**
 * A session cookie in place of credentials: valid only for pages of this server, and for a limited
 * time.
 */
import test from 'ava';

import { LoginSessions } from '../../ts/auth/login-sessions.js';
import { type Harness, startHarness } from './harness.js';

const BASIC = { Authorization: `Basic ${btoa('joe:secret')}` };
const OWN_PAGE = { 'Sec-Fetch-Site': 'same-origin' };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let harness: Harness;
let open: Harness;
test.before(async () => {
  harness = await startHarness({ set: ['http.user=joe', 'http.password=secret'] });
  open = await startHarness();
});
test.after.always(() => Promise.all([harness.server.close(), open.server.close()]));

async function exec(parameters: string, headers: Record<string, string>, at = harness) {
  const response = await fetch(`${at.url}/exec?query=rows+1${parameters}`, { headers });
  await response.text();
  return { status: response.status, cookie: response.headers.get('set-cookie') };
}

async function openSession(): Promise<string> {
  const { cookie } = await exec('&session=true', BASIC);
  return (cookie ?? '').split(';')[0] ?? '';
}

test('a login with session=true gets an HttpOnly, SameSite cookie', async (t) => {
  const { status, cookie } = await exec('&session=true', BASIC);
  t.is(status, 200);
  t.regex(
    cookie ?? '',
    /^qdb_session=[\w-]{43}; HttpOnly; Path=\/; SameSite=Strict; Max-Age=2592000$/,
  );
  t.is((await exec('', BASIC)).cookie, null);
  t.is((await exec('&session=true', {})).cookie, null);
  t.is((await exec('&session=true', {}, open)).cookie, null);
});

test('only this server’s pages can use the cookie', async (t) => {
  const Cookie = `theme=dark; ${await openSession()}`;
  const code = async (headers: Record<string, string>): Promise<number> =>
    (await exec('', { Cookie, ...headers })).status;
  t.is(await code(OWN_PAGE), 200);
  t.is(await code({ Origin: harness.url }), 200);
  t.is(await code({}), 401);
  t.is(await code({ 'Sec-Fetch-Site': 'none' }), 401);
  t.is(await code({ 'Sec-Fetch-Site': 'cross-site' }), 403);
  t.is(await code({ ...OWN_PAGE, Cookie: 'qdb_session=guess' }), 401);
  t.is(await code({ ...OWN_PAGE, Cookie: `${Cookie}; qdb_session=guess` }), 401);
  const wrong = { ...OWN_PAGE, Authorization: `Basic ${btoa('joe:wrong')}` };
  t.is(await code(wrong), 401, 'explicit credentials override the cookie');
});

test('session=false ends the session', async (t) => {
  const Cookie = await openSession();
  const headers = { Cookie, ...OWN_PAGE };
  t.is((await exec('&session=true', headers)).cookie, null, 'no second session is created');
  const { cookie } = await exec('&session=false', headers);
  t.regex(cookie ?? '', /^qdb_session=; .*Max-Age=0$/);
  t.is((await exec('', headers)).status, 401);
});

test('a session ends after an idle timeout and a maximum age', (t) => {
  let now = 0;
  const sessions = new LoginSessions(() => now);
  const idle = sessions.open({ kind: 'known', identity: { name: 'idle', kind: 'user' } });
  const busy = sessions.open({ kind: 'known', identity: { name: 'busy', kind: 'user' } });
  t.is(sessions.find('guess'), null);
  for (; now <= 30 * DAY_MS; now += 12 * HOUR_MS) {
    t.is(sessions.find(busy)?.identity.name, 'busy');
  }
  t.is(sessions.find(busy), null);
  t.is(sessions.find(idle), null);
  t.not(sessions.open({ kind: 'known', identity: { name: 'busy', kind: 'user' } }), busy);
});
