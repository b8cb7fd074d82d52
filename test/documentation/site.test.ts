/** The documentation site builds, its links and anchors exist, and its search works. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import test from 'ava';

import { launchBrowser, leavePicture } from '../browser/console-page.js';
import { browserTest } from '../browser/user.js';
import { picture } from '../browser/suite.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const SITE = join(ROOT, 'build', 'docs');
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
};

test.before(async (t) => {
  t.timeout(5 * 60_000);
  await promisify(execFile)('npm', ['run', 'docs'], { cwd: ROOT });
});

/** Returns the pages of the built site by their URLs. */
function pages(): ReadonlyMap<string, string> {
  const files = readdirSync(SITE, { recursive: true, encoding: 'utf8' });
  const html = files.filter((file) => file.endsWith('.html'));
  return new Map(
    html.map((file) => [
      `/${file.replaceAll(sep, '/').replace(/(^|\/)index\.html$|\.html$/, '$1')}`,
      readFileSync(join(SITE, file), 'utf8'),
    ]),
  );
}

test('every link on the site leads to a page, and every anchor to a heading', (t) => {
  const all = pages();
  const broken: string[] = [];
  let anchors = 0;
  for (const [address, html] of all) {
    const ids = (page: string): Set<string | undefined> =>
      new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    for (const [, href = ''] of html.matchAll(/<a [^>]*?href="([^"]+)"/g)) {
      if (/^(https?:|mailto:)/.test(href)) {
        continue;
      }
      const { pathname, hash } = new URL(href, `http://site${address}`);
      const target = all.get(pathname) ?? all.get(posix.join(pathname, '/'));
      const anchor = decodeURIComponent(hash.slice(1));
      anchors += anchor === '' ? 0 : 1;
      if (target === undefined || (anchor !== '' && !ids(target).has(anchor))) {
        broken.push(`${address}: ${href}`);
      }
    }
  }
  t.deepEqual(broken, []);
  t.true(anchors > 500, `${anchors} anchors`);
});

browserTest('search and dark mode work without contacting any other host', async (t) => {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const file = extname(pathname) === '' ? join(pathname, 'index.html') : pathname;
    const names = [file, `${pathname}.html`];
    for (const name of names) {
      try {
        const body = readFileSync(join(SITE, name));
        response.setHeader('content-type', TYPES[extname(name)] ?? 'application/octet-stream');
        return void response.end(body);
      } catch {
        // This file does not exist; the next candidate may.
      }
    }
    response.statusCode = 404;
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const browser = await launchBrowser();
  t.teardown(async () => {
    await browser.close();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(url)) {
      complaints.push(request.url());
    }
  });
  await page.goto(`${url}/`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await leavePicture(page, picture('documentation-start'));
  await page.goto(`${url}/joins`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await leavePicture(page, picture('documentation-joins'));
  await page.getByRole('switch', { name: /dark/i }).first().click();
  await page.locator('html.dark').waitFor();
  await leavePicture(page, picture('documentation-dark'));
  await page.getByRole('button', { name: 'Search' }).click();
  await page.locator('#localsearch-input').fill('ASOF JOIN tolerance');
  await page.locator('.VPLocalSearchBox .result').first().waitFor();
  await leavePicture(page, picture('documentation-search'));
  await page.keyboard.press('Enter');
  await page.getByText('TOLERANCE').first().waitFor();
  t.deepEqual(complaints, []);
});
