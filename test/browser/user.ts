/** A user's browser for the sign-in tests, and the servers for these tests. */
import test, { type ExecutionContext } from 'ava';
import type { Browser, BrowserContext, Page } from 'playwright-core';

import { startTestServer, type TestServer } from '../golden/server.js';
import { seriousViolations } from './axe.js';
import { chromiumPath, launchBrowser, leavePicture } from './console-page.js';
import { picture, THEMES } from './suite.js';

const WAIT_MS = 60_000;

/** Skipped if no Chromium is installed. */
export const browserTest: typeof test.serial =
  chromiumPath === undefined ? (test.serial.skip as typeof test.serial) : test.serial;

let browser: Browser;

/** Opens a browser for the tests in a file. */
export function openBrowser(): void {
  if (chromiumPath !== undefined) {
    test.before(async () => {
      browser = await launchBrowser();
    });
    test.after.always(() => browser.close());
  }
}

/** A user whose browser can reach only the test's servers. */
export class BrowserUser {
  readonly page: Page;
  readonly requests: URL[] = [];
  readonly complaints: string[] = [];
  readonly #context: BrowserContext;

  private constructor(context: BrowserContext, page: Page) {
    this.#context = context;
    this.page = page;
    page.on('request', (request) => this.requests.push(new URL(request.url())));
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('console', (message) => {
      if (message.text().includes('CSP violation')) {
        this.complaints.push(message.text());
      }
    });
  }

  static async arrive(t: ExecutionContext): Promise<BrowserUser> {
    const context = await browser.newContext({ reducedMotion: 'reduce' });
    context.setDefaultTimeout(WAIT_MS);
    await context.route(
      ({ hostname }) => hostname !== '127.0.0.1',
      (route) => route.abort(),
    );
    await context.addInitScript(
      'addEventListener("securitypolicyviolation", (event) => console.error("CSP violation: " + ' +
        'event.violatedDirective + " " + event.blockedURI))',
    );
    const user = new BrowserUser(context, await context.newPage());
    t.teardown(() => context.close());
    return user;
  }

  /** Logs in on the provider's pages and consents. */
  async logIn(login: string, password = 'secret'): Promise<void> {
    await this.page.locator('input[name=login]').fill(login);
    await this.page.locator('input[name=password]').fill(password);
    await this.page.locator('button[type=submit]').click();
    await this.page.getByRole('button', { name: 'Continue' }).click();
  }

  /** Signs in with a name and password on the console page. */
  async signIn(name: string, password: string): Promise<void> {
    await this.isOut();
    await this.page.getByLabel('User', { exact: true }).fill(name);
    await this.page.getByLabel('Password').fill(password);
    await this.page.keyboard.press('Enter');
    await this.isIn(name);
  }

  async isIn(name: string): Promise<void> {
    await this.page.locator('.account', { hasText: name }).waitFor();
    await this.page.locator('.signin').waitFor({ state: 'detached' });
  }

  async isOut(): Promise<void> {
    await this.page.locator('.signin-card').waitFor();
  }

  problem(): Promise<string> {
    return this.page.locator('.signin-problem').innerText();
  }

  /** Returns everything that scripts of this origin could read. */
  async stored(): Promise<string> {
    return await this.page.evaluate<string>(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
    );
  }

  /** Returns the response to a request that the page itself sends. */
  async query(statement: string): Promise<string> {
    await this.page.locator('.cm-content').click();
    await this.page.keyboard.press('Control+A');
    await this.page.keyboard.insertText(statement);
    await this.page.keyboard.press('Control+Enter');
    const summary = this.page.locator('.summary:not([data-state="running"])');
    await summary.waitFor();
    return (await summary.getAttribute('data-state')) ?? '';
  }

  /** Returns the file that an entry of the export menu produces. */
  async export(format: string): Promise<Buffer> {
    await this.page.getByRole('button', { name: 'Export rows' }).click();
    const coming = this.page.waitForEvent('download');
    await this.page.getByRole('menuitem', { name: `All rows as ${format}` }).click();
    const stream = await (await coming).createReadStream();
    return Buffer.concat((await stream.toArray()) as Buffer[]);
  }

  async cookies(): Promise<
    readonly { name: string; httpOnly: boolean; sameSite: string; path: string }[]
  > {
    return await this.#context.cookies();
  }

  /** Deletes the session cookie. */
  async forgetSession(): Promise<void> {
    await this.#context.clearCookies({ name: 'qdb_session' });
  }

  async forgetServer(url: string): Promise<void> {
    await this.forgetSession();
    // The page may go on to the identity provider before it has loaded.
    await this.page.goto(url, { waitUntil: 'commit' });
  }
}

export async function serverFor(t: ExecutionContext, set: readonly string[]): Promise<TestServer> {
  const server = await startTestServer({ set });
  t.teardown(() => server.stop());
  return server;
}

/** Checks the page with axe in each theme at a given size, and saves a screenshot. */
export async function inThemes(
  t: ExecutionContext,
  page: Page,
  name: string,
  size = { width: 1440, height: 900 },
): Promise<void> {
  await page.setViewportSize(size);
  for (const theme of THEMES) {
    await page.evaluate(`document.documentElement.dataset.theme = '${theme}'`);
    t.deepEqual(await seriousViolations(page), [], `${name}, ${theme}`);
    const path = picture(`${name}-${size.width}-${theme}`);
    await leavePicture(page, path);
  }
  await page.evaluate("document.documentElement.dataset.theme = 'light'");
}
