/**
 * Gate S2: browser requests from cross-site pages, with every combination of headers. Refused
 * requests do not execute anything.
 */
import { request } from 'node:http';

import test from 'ava';

import { type Harness, startHarness } from '../http/harness.js';

const HOST = 'localhost:9000';
const HOSTS: readonly (readonly [host: string, ours: boolean])[] = [
  [HOST, true],
  ['127.0.0.1:9000', true],
  ['LOCALHOST.:9000', true],
  ['rebound.example:9000', false],
  ['localhost@evil.example', false],
  ['2130706433:9000', false],
];
const SITES = [undefined, 'same-origin', 'none', 'same-site', 'cross-site', 'nonsense'] as const;
const ROUTES = [
  ['GET', '/exec?query=insert+77'],
  ['POST', '/exec?query=insert+77'],
  ['GET', '/exp?query=rows+77'],
  ['POST', '/imp?name=x'],
  ['GET', '/chk?j=x'],
  ['PUT', '/settings?version=0'],
] as const;

/** Returns the Origin headers that a page may send, for a given `host`. */
function origins(host: string): readonly (readonly [origin: string | undefined, ours: boolean])[] {
  return [
    [undefined, true],
    [`http://${host.toLowerCase()}`, true],
    ['http://evil.example', false],
    ['null', false],
  ];
}

let harness: Harness;
test.before(async () => {
  harness = await startHarness();
});
test.after.always(() => harness.server.close());

interface Case {
  readonly host: string;
  readonly origin: string | undefined;
  readonly site: string | undefined;
  readonly referer: string | undefined;
}

function statusOf(method: string, path: string, one: Case): Promise<number> {
  const headers = {
    Host: one.host,
    ...(one.origin === undefined ? {} : { Origin: one.origin }),
    ...(one.site === undefined ? {} : { 'Sec-Fetch-Site': one.site }),
    ...(one.referer === undefined ? {} : { Referer: one.referer }),
  };
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port: harness.port, method, path, headers });
    sent.on('error', reject);
    sent.on('response', (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.end();
  });
}

function cases(): { readonly one: Case; readonly expected: 'in' | 403 | 421 }[] {
  const referers = [undefined, 'http://evil.example/'];
  return HOSTS.flatMap(([host, isOurs]) =>
    origins(host).flatMap(([origin, isOwnPage]) =>
      SITES.flatMap((site) =>
        referers.map((referer) => {
          // An Origin header takes precedence. Without one, the Sec-Fetch-Site and Referer headers
          // must match.
          const fromUs = site === undefined || site === 'same-origin' || site === 'none';
          const own = origin === undefined ? fromUs && referer === undefined : isOwnPage;
          const expected: 'in' | 403 | 421 = !isOurs ? 421 : own ? 'in' : 403;
          return { one: { host, origin, site, referer }, expected };
        }),
      ),
    ),
  );
}

for (const [method, path] of ROUTES) {
  test.serial(`${method} ${path} accepts requests only from this server’s pages`, async (t) => {
    const { executed } = harness.database.journal;
    let refused = 0;
    for (const { one, expected } of cases()) {
      const before = executed.length;
      const status = await statusOf(method, path, one);
      const what = JSON.stringify(one);
      if (expected === 'in') {
        t.false([403, 421].includes(status), `${what}: ${status}`);
      } else {
        t.is(status, expected, what);
        t.is(executed.length, before, what);
        refused += 1;
      }
    }
    t.true(refused > 200, String(refused));
    t.log(`${cases().length} requests, ${refused} refused`);
  });
}
