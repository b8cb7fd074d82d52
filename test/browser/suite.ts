/**
 * A server and a browser for the tests in one file, and pages that fail if the browser reports any
 * problem.
 */
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';
import type { Browser } from 'playwright-core';

import { startTestServer, type TestServer, type TestServerOptions } from '../golden/server.js';
import { chromiumPath, ConsolePage, launchBrowser, type PageOptions } from './console-page.js';

const SCREENSHOTS = fileURLToPath(new URL('../../screenshots', import.meta.url));

interface Suite {
  /** Skipped with a notice if no Chromium is installed. */
  readonly browserTest: typeof test.serial;
  readonly server: () => TestServer;
  /** Runs `work` on a fresh page and fails if the browser reports any problem. */
  readonly onPage: (
    t: ExecutionContext,
    work: (shown: ConsolePage) => Promise<void>,
    options?: PageOptions,
  ) => Promise<void>;
  /** Returns the rows of a query that is sent without the console. */
  readonly rows: (query: string) => Promise<unknown[][]>;
}

export function browserSuite(what: string, options: TestServerOptions = {}): Suite {
  let server: TestServer;
  let browser: Browser;
  if (chromiumPath === undefined) {
    process.stderr.write(`SKIPPED ${what}: no Chromium here; set TIDEMARK_CHROMIUM to its path\n`);
  } else {
    test.before(async () => {
      [server, browser] = await Promise.all([startTestServer(options), launchBrowser()]);
    });
    test.after.always(async () => {
      await browser.close();
      await server.stop();
    });
  }
  return {
    browserTest:
      chromiumPath === undefined ? (test.serial.skip as typeof test.serial) : test.serial,
    server: () => server,
    onPage: async (t, work, pageOptions) => {
      const shown = await ConsolePage.open(browser, server.url, pageOptions);
      try {
        await work(shown);
        t.deepEqual(shown.complaints, []);
      } finally {
        await shown.close();
      }
    },
    rows: async (query) => {
      const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
      const body = (await response.json()) as { dataset?: unknown[][]; error?: string };
      if (body.error !== undefined) {
        throw new Error(body.error);
      }
      return body.dataset ?? [];
    },
  };
}

/** Returns the path of a screenshot for review. */
export function picture(name: string): string {
  return join(SCREENSHOTS, `${name}.png`);
}

export const THEMES = ['light', 'dark', 'contrast'] as const;

/** Runs `work` once in each theme, light first. */
export async function inEveryTheme(
  shown: ConsolePage,
  work: (theme: (typeof THEMES)[number]) => Promise<void>,
): Promise<void> {
  for (const theme of THEMES) {
    await work(theme);
    await shown.page.locator('[data-action="theme"]').click();
  }
}
