/** Configured paths, and paths derived from the console path. */
import test from 'ava';

import { loadConfig } from '../../ts/config/index.js';
import { httpPaths } from '../../ts/http/paths.js';
import type { StaticFile } from '../../ts/http/response/static-files.js';
import { sendRaw, startHarness } from './harness.js';

const PAGE: StaticFile = {
  body: Buffer.from('<!doctype html>'),
  compressed: null,
  type: 'text/html',
  etag: '"x"',
  immutable: false,
};
const FILES = new Map([
  ['/', PAGE],
  ['/index.html', PAGE],
]);

test('by default all paths start at the root', (t) => {
  t.deepEqual(httpPaths(loadConfig()), {
    base: '',
    execute: '/exec',
    export: '/exp',
    import: '/imp',
    importPreview: '/api/v1/import/preview',
    importFile: '/api/v1/import/file',
    agents: '/mcp',
    notebooks: '/api/v1/notebooks',
    notebook: '/api/v1/notebook',
    workspace: '/api/v1/workspace',
    tableStatus: '/chk',
    settings: '/settings',
    warnings: '/warnings',
    validate: '/api/v1/sql/validate',
    ping: '/ping',
    lineProtocol: ['/write', '/api/v2/write'],
  });
});

test('paths that are not set start with the console path, except /write', async (t) => {
  const { url, server } = await startHarness({
    set: ['http.context.web.console=/db/', 'http.context.export=/files'],
    files: FILES,
  });
  const expected = {
    '/db/exec?query=rows+1': 200,
    '/db/api/v1/sql/validate?query=rows+1': 200,
    '/db/chk': 200,
    '/db/settings': 200,
    '/db/warnings': 200,
    '/db/status': 200,
    '/db/': 200,
    '/db/index.html': 200,
    '/files?query=rows+1': 200,
    '/ping': 204,
    '/write': 405,
    '/exec?query=rows+1': 404,
    '/db/exp?query=rows+1': 404,
    '/db/ping': 404,
    '/': 404,
  };
  for (const [target, status] of Object.entries(expected)) {
    t.is((await fetch(url + target)).status, status, target);
  }
  const moved = await fetch(`${url}/db`, { redirect: 'manual' });
  t.is(moved.status, 301);
  t.is(moved.headers.get('location'), '/db/');
  await server.close();
});

test('a path is matched literally, and never parsed as a URL', async (t) => {
  const { port, server } = await startHarness();
  const expected = {
    '/ping': 204,
    '///ping': 204,
    '/ping?': 204,
    '/ping/': 404,
    '/PING': 404,
    '/%70ing': 404,
    '/ping#x': 404,
    'http://localhost/ping': 404,
    'http://[': 404,
    '//[/ping': 404,
    '/__proto__': 404,
  };
  for (const [target, status] of Object.entries(expected)) {
    const head = `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
    t.is(Number((await sendRaw(port, head)).slice(9, 12)), status, target);
  }
  await server.close();
});

for (const path of ['exec', '', '/a b', '/a?b', '/:x', '/(.*)', '/../x', '/a/./b', '/%41']) {
  test(`'${path}' is not a valid path`, (t) => {
    const set = [`http.context.execute=${path}`];
    t.throws(() => loadConfig({ set }), { message: /http\.context\.execute.*expected a path/ });
  });
}
