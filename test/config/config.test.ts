/** Sources and valid ranges of configuration values. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { ConfigError, KEYS, loadConfig } from '../../ts/config/index.js';
import { ALL_KEYS } from '../../ts/config/registry.js';
import { parseProperties } from '../../ts/config/properties.js';
import { isLoopback, parseDurationMs, parseEndpoint, parseSize } from '../../ts/config/units.js';

function file(text: string, name = 'server.conf'): string {
  const path = join(mkdtempSync(join(tmpdir(), 'tidemark-config-')), name);
  writeFileSync(path, text);
  return path;
}

test('every default in the configuration registry is valid', (t) => {
  const config = loadConfig();
  for (const key of ALL_KEYS) {
    t.is(config.source(key), 'default', key.name);
  }
  t.deepEqual(config.get(KEYS.httpBindTo), { host: null, port: 9000 });
  t.is(config.get(KEYS.commitMode), 'sync');
  t.is(config.get(KEYS.queryTimeout), 60_000);
});

test('--set overrides the environment, which overrides the file', (t) => {
  const path = file('query.timeout=1s\npg.user=filed\nhttp.user=filed\n');
  const environment = { QDB_PG_USER: 'env', QDB_HTTP_USER: 'env' };
  const config = loadConfig({ file: path, environment, set: ['http.user=set'] });
  t.is(config.get(KEYS.queryTimeout), 1000);
  t.is(config.get(KEYS.pgUser), 'env');
  t.is(config.get(KEYS.httpUser), 'set');
  t.is(config.source(KEYS.httpUser), 'set');
});

test('older key names and both environment prefixes are accepted', (t) => {
  const set = ['http.net.bind.to=0.0.0.0:9001'];
  t.is(loadConfig({ set }).get(KEYS.httpBindTo).port, 9001);
  const read = (name: string): string =>
    loadConfig({ environment: { [name]: 'debug' } }).get(KEYS.logLevel);
  t.is(read('TIDEMARK_LOG_LEVEL'), 'debug');
  t.is(read('QDB_LOG_LEVEL'), 'debug');
  const environment = { QDB_HTTP_KEEP_ALIVE_TIMEOUT: '7' };
  t.is(loadConfig({ environment }).get(KEYS.httpKeepAlive), 7000);
});

test('unknown keys cause notices, or errors in strict mode', (t) => {
  const config = loadConfig({ set: ['no.such.key=1'], environment: { QDB_NOPE: '1', HOME: 'x' } });
  t.is(config.notices.length, 2);
  t.throws(() => loadConfig({ set: ['no.such.key=1', 'config.validation.strict=true'] }), {
    instanceOf: ConfigError,
    message: /no\.such\.key/,
  });
});

test('a mistyped key is reported with the most similar known key', (t) => {
  const notices = (set: string[], environment = {}, path?: string): readonly string[] =>
    loadConfig({ set, environment, ...(path === undefined ? {} : { file: path }) }).notices;
  const ignored = (name: string): string =>
    `configuration key '${name}' is unsupported and ignored`;
  t.deepEqual(notices(['htp.bind.to=1']), [
    `${ignored('htp.bind.to')}; did you mean 'http.bind.to'?`,
  ]);
  t.deepEqual(notices([], {}, file('Query.Timout=5s\n')), [
    `${ignored('Query.Timout')}; did you mean 'query.timeout'?`,
  ]);
  t.deepEqual(notices([], { QDB_LOG_LEVL: 'info' }), [
    `${ignored('QDB_LOG_LEVL')}; did you mean 'QDB_LOG_LEVEL'?`,
  ]);
  t.deepEqual(notices(['no.such.key=1']), [ignored('no.such.key')]);
  t.throws(() => loadConfig({ set: ['pg.pasword=x', 'config.validation.strict=true'] }), {
    message: "unknown configuration keys: pg.pasword (did you mean 'pg.password'?)",
  });
});

test('an invalid value is reported with its key and source', (t) => {
  const bad = [
    ['query.timeout=soon', /^query\.timeout \(--set\): expected a duration/],
    ['http.bind.to=localhost', /^http\.bind\.to \(--set\): expected host:port/],
    ['http.bind.to=127.0.0.1:70000', /expected host:port/],
    ['http.enabled=yes', /expected true or false/],
    ['cairo.commit.mode=often', /expected one of sync, async, nosync, adaptive/],
    ['http.text.analysis.max.lines=1', /expected at least 2 lines, found '1'/],
    ['nonsense', /--set expects key=value/],
  ] as const;
  for (const [setting, message] of bad) {
    t.throws(() => loadConfig({ set: [setting] }), { instanceOf: ConfigError, message });
  }
});

test('a secret may be read from a separate file, which takes precedence', (t) => {
  const path = file(' hidden \n', 'secret');
  const config = loadConfig({
    set: ['http.password=shown'],
    environment: { QDB_HTTP_PASSWORD_FILE: path },
  });
  t.is(config.get(KEYS.httpPassword), 'hidden');
  const shown = config.parameters().find(({ name }) => name === 'http.password');
  t.is(shown?.value, '****');
  t.is(shown?.source, 'file');
  const refused = (value: string, reason: string): void => {
    t.throws(() => loadConfig({ set: [`http.password.file=${value}`] }), {
      instanceOf: ConfigError,
      message: `http.password: cannot use the secret file '${value}': ${reason}`,
    });
  };
  refused('/dev/zero', 'this path is not allowed');
  refused('/a/../b', 'this path is not allowed');
  refused('/does/not/exist', 'no such file or directory');
  refused(tmpdir(), 'expected a regular file of at most 64 KB');
  refused(file('x'.repeat(65_537), 'long'), 'expected a regular file of at most 64 KB');
  const longest = file('x'.repeat(65_536), 'longest');
  const accepted = loadConfig({ set: [`http.password.file=${longest}`] });
  t.is(accepted.get(KEYS.httpPassword), 'x'.repeat(65_536));
});

test('an explicitly named configuration file must exist', (t) => {
  const missing = join(tmpdir(), 'no-such-folder', 'server.conf');
  t.notThrows(() => loadConfig({ file: missing }));
  t.throws(() => loadConfig({ file: missing, fileRequired: true }), {
    message: /cannot read the configuration .*no such file/,
  });
});

test('properties files support comments, escapes and continuation lines', (t) => {
  const text = [
    '# comment',
    '! another',
    'a = 1',
    'b: two words  ',
    'path=C\\:\\\\data',
    'long=one,\\',
    '   two',
    'a=3',
    'empty=',
  ].join('\r\n');
  t.deepEqual(
    [...parseProperties(text)],
    [
      ['a', '3'],
      ['b', 'two words'],
      ['path', 'C:\\data'],
      ['long', 'one,two'],
      ['empty', ''],
    ],
  );
});

test('sizes, durations and addresses are parsed', (t) => {
  t.is(parseSize('64K'), 65_536);
  t.is(parseSize('2mb'), 2_097_152);
  t.is(parseDurationMs('2m'), 120_000);
  t.is(parseDurationMs('7', 1000), 7000);
  t.deepEqual(parseEndpoint('[::1]:9'), { host: '::1', port: 9 });
  t.deepEqual(parseEndpoint('0'), { host: null, port: 0 });
  t.true(isLoopback('127.8.0.1'));
  t.false(isLoopback('0.0.0.0'));
  t.false(isLoopback('127.0.0.1.example'));
});

test('table defaults are validated: row counts fit INT, lag accepts units', (t) => {
  const rows = (text: string): number =>
    loadConfig({ set: [`cairo.max.uncommitted.rows=${text}`] }).get(KEYS.maxUncommittedRows);
  t.is(rows('0'), 0);
  t.is(rows('2147483647'), 2_147_483_647);
  for (const wrong of ['-1', '2147483648', 'many']) {
    t.throws(() => rows(wrong), { instanceOf: ConfigError }, wrong);
  }
  const lag = (text: string): number =>
    loadConfig({ set: [`cairo.o3.max.lag=${text}`] }).get(KEYS.o3MaxLag);
  t.is(loadConfig().get(KEYS.o3MaxLag), 600_000);
  t.is(lag('5000'), 5000);
  t.is(lag('2m'), 120_000);
});
