/** The console in a real browser, as a person uses it: types, runs, looks at cells. */
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';

import { type Browser, chromium, type Locator, type Page, type Request } from 'playwright-core';

const PLACES = [
  process.env['TIDEMARK_CHROMIUM'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Where a Chromium is, if this machine has one. */
export const chromiumPath = PLACES.find((path) => path !== undefined && existsSync(path));

/** A browser of our own: no profile, no calls of its own to anywhere. */
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

/** The statement that a request of the page carries in its body. */
export function statementOf(request: Request): string {
  return new URLSearchParams(request.postData() ?? '').get('query') ?? '';
}

export interface PageOptions {
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: 'light' | 'dark';
  /** The zone of the person; the machine's, if nothing else is said. */
  readonly timezone?: string;
  /** What follows the `#` of the address; the workspace, if nothing else is said. */
  readonly page?: string;
}

/** Leaves a picture for people to look at, where they asked for pictures. */
export async function leavePicture(page: Page, path: string, fullPage = false): Promise<void> {
  if (process.env['TIDEMARK_PICTURES'] === '1') {
    await mkdir(dirname(path), { recursive: true });
    // The usual hiding of the caret would be an inline style, which the policy refuses.
    await page.screenshot({ path, caret: 'initial', fullPage });
  }
}

/** How long something may take to appear. */
const WAIT_MS = 60_000;

/** Listens for what the content policy refuses, before any script of the page runs. */
const REPORT_VIOLATIONS =
  'addEventListener("securitypolicyviolation", (event) => console.error("CSP violation: " + ' +
  'event.violatedDirective + " " + event.blockedURI + " " + event.sample))';

/** An answer of 400 is how the server refuses a statement; the browser logs it by itself. */
const REFUSED_STATEMENT = 'Failed to load resource: the server responded with a status of 400';

export class ConsolePage {
  readonly page: Page;
  /** Errors of scripts, refusals of the policy, requests to other hosts. */
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
      // Pictures and waits must not meet a colour on its way to another.
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

  /** Another window of the same browser, with the same storage. */
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
    // A notebook has one for each of its cells.
    await this.page.locator('.editor-host.ready').first().waitFor({ state: 'attached' });
  }

  /** The editor is there and the tables have been read. */
  async ready(): Promise<void> {
    await this.editorReady();
    await this.page.locator('.status .ok').waitFor({ state: 'attached' });
    await this.page.locator('.side[aria-busy="false"]').waitFor({ state: 'attached' });
  }

  async reload(): Promise<void> {
    await this.page.reload();
    await this.ready();
  }

  /** Replaces the whole text, as by a paste. */
  async write(text: string): Promise<void> {
    await this.editor.click();
    await this.page.keyboard.press('Control+A');
    await this.page.keyboard.insertText(text);
  }

  /** Runs the statement under the cursor and waits for its end; resolves to its state. */
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

  /** Texts of the cells of one row that is in view, without the row's number. */
  async row(number: number): Promise<string[]> {
    const row = this.page.locator(`.grid-row[aria-rowindex="${number + 1}"]`);
    return await row.locator('.grid-cell').allInnerTexts();
  }

  async columns(): Promise<string[]> {
    return await this.page.locator('.grid-head-cell .grid-head-name').allInnerTexts();
  }

  /** How many points of the chart's canvas are drawn on. */
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

  /** Resizes the window, and waits until the page has taken notice of it. */
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

  /** Brings another page to the front by the rail. */
  async go(name: string): Promise<void> {
    await this.page.getByRole('navigation', { name: 'Main' }).getByLabel(name).click();
    await this.isAt(name);
  }

  /** Waits for a page to be in front: a link changes the address first, the page a little later. */
  async isAt(name: string): Promise<void> {
    await this.page.getByRole('heading', { level: 1, name }).waitFor();
  }

  async close(): Promise<void> {
    await this.page.context().close();
  }
}
