/**
 * Gate S1: configurations with which the server refuses to start, and the listeners that it opens
 * with other configurations.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { loadConfig } from '../../ts/config/index.js';
import { plainTextListeners, refuseInsecureListeners } from '../../ts/insecure-listeners.js';
import { exitCode, runCli } from '../golden/server.js';
import { EXIT_CONFIG, StartError } from '../../ts/start-error.js';

const WIDE = 'http.bind.to=0.0.0.0:9000';
const WIDE_PG = 'pg.net.bind.to=0.0.0.0:8812';
const WIDE_LINES = 'line.tcp.net.bind.to=0.0.0.0:9009';
const LOGIN = ['http.user=joe', 'http.password=a good one'];

/** Settings, with the setting named in the refusal; `null` if the server starts. */
const STARTS: readonly (readonly [readonly string[], RegExp | null])[] = [
  [[], null],
  [[WIDE], /http\.bind\.to=0\.0\.0\.0:9000 .*no login.*http\.user.*127\.0\.0\.1.*insecure/],
  [['http.bind.to=[::]:9000'], /http\.bind\.to=::/],
  [['http.bind.to=192.0.2.7:9000'], /192\.0\.2\.7/],
  [[WIDE, 'http.user=joe'], /no login/],
  [[WIDE, 'http.password=x'], /no login/],
  [[WIDE, ...LOGIN], null],
  [[WIDE, 'http.enabled=false'], null],
  [[WIDE, 'security.insecure.public=true'], null],
  [[WIDE_PG], /pg\.net\.bind\.to=0\.0\.0\.0:8812 .*default password.*pg\.password/],
  [[WIDE_PG, 'pg.password=a good one'], null],
  [[WIDE_PG, 'pg.password=a good one', 'pg.readonly.user.enabled=true'], /default password/],
  [[WIDE, ...LOGIN, 'security.require.tls=true'], /plain text/],
  [[WIDE, 'acl.enabled=true'], /http\.bind\.to=0\.0\.0\.0:9000 .*acl\.admin\.password.*insecure/],
  [[WIDE_PG, 'acl.enabled=true'], /pg\.net\.bind\.to=0\.0\.0\.0:8812 .*acl\.admin\.password/],
  [['http.min.bind.to=0.0.0.0:9003', 'acl.enabled=true'], /http\.min.*administrator/],
  [[WIDE, WIDE_PG, 'acl.enabled=true', 'acl.admin.password=a good one'], null],
  [[WIDE, WIDE_PG, 'acl.enabled=true', 'acl.admin.user.enabled=false'], null],
  [[WIDE, 'acl.enabled=true', 'security.insecure.public=true'], null],
  [['http.bind.to=127.0.0.2:9000', 'pg.net.bind.to=localhost:8812'], null],
  [[WIDE_LINES], /line\.tcp\.net\.bind\.to=0\.0\.0\.0:9009 .*no login.*line\.tcp\.auth\.db\.path/],
  [[WIDE_LINES, 'line.tcp.enabled=false'], null],
  [[WIDE_LINES, 'line.tcp.auth.db.path=keys'], null],
  [[WIDE_LINES, 'security.insecure.public=true'], null],
  [[WIDE_LINES, 'acl.enabled=true', 'acl.admin.password=a good one'], null],
  [[WIDE_LINES, 'acl.enabled=true'], /line\.tcp.*acl\.admin/],
  // If other protocols require a login, this port stays closed unless there are keys.
  [[WIDE_LINES, ...LOGIN, 'security.require.tls=true'], null],
  [[WIDE_LINES, 'line.tcp.auth.db.path=keys', 'security.require.tls=true'], /plain text/],
  [[WIDE_LINES, 'line.tcp.auth.db.path=keys', 'acl.enabled=true'], /line\.tcp.*acl\.admin/],
];

for (const [set, refusal] of STARTS) {
  const outcome = refusal === null ? 'starts' : 'is refused';
  test(`${set.join(' ') || 'the default configuration'} ${outcome}`, (t) => {
    const check = (): void => {
      refuseInsecureListeners(loadConfig({ set }));
    };
    if (refusal === null) {
      t.notThrows(check);
      return;
    }
    const error = t.throws(check, { instanceOf: StartError, message: refusal });
    t.is(error.exitCode, EXIT_CONFIG);
  });
}

test('the server does not start with a default password on a public address', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-posture-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  const set = ['http.bind.to=0.0.0.0:0', 'acl.enabled=true'].flatMap((one) => ['--set', one]);
  const { process: child, err } = runCli(['serve', '--root', root, ...set]);
  t.is(await exitCode(child), EXIT_CONFIG);
  t.regex(err(), /default password: set acl\.admin\.password/);
});

test('only the local machine can connect by default', (t) => {
  const config = loadConfig({});
  t.deepEqual(plainTextListeners(config), []);
  const insecure = loadConfig({ set: [WIDE, 'security.insecure.public=true'] });
  t.deepEqual(plainTextListeners(insecure), ['http.bind.to=0.0.0.0:9000']);
});
