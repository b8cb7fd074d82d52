/** Drives the console in a real browser as a user would: types, runs statements, reads cells. */
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';

import { type Browser, chromium, type Locator, type Page, type Request } from 'playwright-core';

const CHROMIUM_PATHS = [
  process.env['TIDEMARK_CHROMIUM'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Path of a Chromium installation, if there is one. */
export const chromiumPath = CHROMIUM_PATHS.find((path) => path !== undefined && existsSync(path));

/** Starts a browser without a profile and without background requests. */
export async function launchBrowser(): Promise<Browser> {
  return await chromium.launch({
    executablePath: chromiumPath ?? '',
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** Returns the statement in the body of a request from the page. */
export function statementOf(request: Request): string {
  return new URLSearchParams(request.postData() ?? '').get('query') ?? '';
}

export interface PageOptions {
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: 'light' | 'dark';
  /** The browser's time zone; defaults to the machine's. */
  readonly timezone?: string;
  /** URL fragment; defaults to the workspace. */
  readonly page?: string;
}

/** Saves a screenshot for review, if screenshots are requested. */
export async function leavePicture(page: Page, path: string, fullPage = false): Promise<void> {
  if (process.env['TIDEMARK_PICTURES'] !== undefined) {
    await mkdir(dirname(path), { recursive: true });
    // Playwright's default caret hiding uses an inline style, which the content policy forbids.
    await page.screenshot({ path, caret: 'initial', fullPage });
  }
}

/** Maximum time to wait for something to appear. */
const WAIT_MS = 60_000;

/** Reports content policy violations. Installed before any script on the page runs. */
const REPORT_VIOLATIONS =
  'addEventListener("securitypolicyviolation", (event) => console.error("CSP violation: " + ' +
  'event.violatedDirective + " " + event.blockedURI + " " + event.sample))';

/** If the server refuses a statement, it answers with status 400, which the browser always logs. */
const REFUSED_STATEMENT = 'Failed to load resource: the server responded with a status of 400';

export class ConsolePage {
  readonly page: Page;
  /** Script errors, content policy violations, and requests to other hosts. */
  readonly complaints: string[];

  private constructor(page: Page, url: string, complaints: string[] = []) {
    this.page = page;
    this.complaints = complaints;
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error' && !message.text().startsWith(REFUSED_STATEMENT)) {
        this.complaints.push(message.text());
      }
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(url) && !request.url().startsWith('blob:')) {
        this.complaints.push(`request to another host: ${request.url()}`);
      }
    });
  }

  static async open(
    browser: Browser,
    url: string,
    options: PageOptions = {},
  ): Promise<ConsolePage> {
    const context = await browser.newContext({
      viewport: { width: options.width ?? 1440, height: options.height ?? 900 },
      colorScheme: options.scheme ?? 'light',
      ...(options.timezone === undefined ? {} : { timezoneId: options.timezone }),
      // Screenshots and waits must not happen in the middle of a colour transition.
      reducedMotion: 'reduce',
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    context.setDefaultTimeout(WAIT_MS);
    await context.addInitScript(REPORT_VIOLATIONS);
    const shown = new ConsolePage(await context.newPage(), url);
    await shown.page.goto(`${url}/#${options.page ?? 'sql'}`);
    await shown.ready();
    return shown;
  }

  /** Opens another window in the same browser, with the same storage. */
  async another(): Promise<ConsolePage> {
    const { origin } = new URL(this.page.url());
    const shown = new ConsolePage(await this.page.context().newPage(), origin, this.complaints);
    await shown.page.goto(`${origin}/#sql`);
    await shown.ready();
    return shown;
  }

  get editor(): Locator {
    return this.page.locator('.cm-content');
  }

  async editorReady(): Promise<void> {
    // A notebook has one editor per cell.
    await this.page.locator('.editor-host.ready').first().waitFor({ state: 'attached' });
  }

  /** Waits until the editor exists and the tables are loaded. */
  async ready(): Promise<void> {
    await this.editorReady();
    await this.page.locator('.status .ok').waitFor({ state: 'attached' });
    await this.page.locator('.side[aria-busy="false"]').waitFor({ state: 'attached' });
  }

  async reload(): Promise<void> {
    await this.page.reload();
    await this.ready();
  }

  /** Replaces the whole text, as a paste does. */
  async write(text: string): Promise<void> {
    await this.editor.click();
    await this.page.keyboard.press('Control+A');
    await this.page.keyboard.insertText(text);
  }

  /** Runs the statement under the cursor and waits until it ends. Resolves to the final state. */
  async run(): Promise<string> {
    await this.editor.focus();
    await this.page.keyboard.press('Control+Enter');
    const summary = this.page.locator('.summary:not([data-state="running"])');
    await summary.waitFor();
    return (await summary.getAttribute('data-state')) ?? '';
  }

  async query(text: string): Promise<string> {
    await this.write(text);
    return await this.run();
  }

  async summary(): Promise<string> {
    return await this.page.locator('.summary b').innerText();
  }

  /** Returns the cell text of one visible row, without the row number. */
  async row(number: number): Promise<string[]> {
    const row = this.page.locator(`.grid-row[aria-rowindex="${number + 1}"]`);
    return await row.locator('.grid-cell').allInnerTexts();
  }

  async columns(): Promise<string[]> {
    return await this.page.locator('.grid-head-cell .grid-head-name').allInnerTexts();
  }

  /** Returns the number of drawn pixels on the chart canvas. */
  async inkOfChart(): Promise<number> {
    await this.page.locator('.plot canvas').first().waitFor();
    return await this.page.evaluate<number>(`(() => {
      const canvas = document.querySelector('.plot canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      let ink = 0;
      for (let at = 3; at < data.length; at += 4) if (data[at] > 0) ink += 1;
      return ink;
    })()`);
  }

  /** Resizes the window and waits until the page has adapted. */
  async resize(width: number, height: number): Promise<void> {
    await this.page.setViewportSize({ width, height });
    const frame = 'new Promise((seen) => requestAnimationFrame(seen))';
    await this.page.evaluate(`${frame}.then(() => ${frame})`);
  }

  async theme(): Promise<string> {
    return (await this.page.locator('html').getAttribute('data-theme')) ?? '';
  }

  async screenshot(path: string): Promise<void> {
    await leavePicture(this.page, path);
  }

  /** Opens another page from the navigation rail. */
  async go(name: string): Promise<void> {
    await this.page.getByRole('navigation', { name: 'Main' }).getByLabel(name).click();
    await this.isAt(name);
  }

  /** Waits until a page is shown. A link changes the URL first and the page a little later. */
  async isAt(name: string): Promise<void> {
    await this.page.getByRole('heading', { level: 1, name }).waitFor();
  }

  async close(): Promise<void> {
    await this.page.context().close();
  }
}
