/** Notebooks: cells are written, run, moved, kept, taken away as a file and brought back. */
import { readFile, writeFile, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Locator, Page } from 'playwright-core';

import { seriousViolations } from './axe.js';
import { statementOf, type ConsolePage } from './console-page.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage, rows } = browserSuite('notebooks in a browser', { args: ['--demo'] });

function cell(page: Page, name: string): Locator {
  return page.getByRole('article', { name: `Cell ${name}`, exact: true });
}

async function newNotebook({ page }: ConsolePage): Promise<void> {
  await page.getByRole('button', { name: 'Tabs', exact: true }).click();
  await page.getByRole('menuitem', { name: 'New notebook' }).click();
  await cell(page, 'cell_1').waitFor();
}

/** Replaces the statement of a cell. */
async function write(page: Page, name: string, text: string): Promise<void> {
  const content = cell(page, name).locator('.cm-content');
  await content.click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(text);
}

async function run(page: Page, name: string, text: string): Promise<void> {
  await write(page, name, text);
  await page.keyboard.press('Control+Enter');
}

async function add(page: Page, kind: 'SQL' | 'Chart' | 'Text'): Promise<void> {
  const group = page.getByRole('group', { name: 'Add a cell' });
  await group.getByRole('button', { name: kind }).click();
}

function summary(page: Page, name: string, text: RegExp): Promise<void> {
  return cell(page, name).locator('.cell-summary', { hasText: text }).waitFor();
}

async function openFile({ page }: ConsolePage, name: string, text: string): Promise<void> {
  const path = join(await mkdtemp(join(tmpdir(), 'notebook-')), name);
  await writeFile(path, text);
  await page.getByRole('button', { name: 'Tabs', exact: true }).click();
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('menuitem', { name: 'Open a notebook file' }).click();
  await (await chooser).setFiles(path);
}

/** The notebook as a file. */
async function exported({ page }: ConsolePage): Promise<string> {
  await page.getByRole('button', { name: 'More of the notebook' }).click();
  const download = page.waitForEvent('download');
  await page.getByRole('menuitem', { name: 'Export as a file' }).click();
  return await readFile(await (await download).path(), 'utf8');
}

function names(page: Page): Promise<string[]> {
  return page
    .getByRole('textbox', { name: 'Name of the cell' })
    .evaluateAll((all) => all.map((one) => (one as unknown as { value: string }).value));
}

browserTest(
  'cells are written and run, see each other, and are there after a reload',
  async (t) => {
    await onPage(t, async (shown) => {
      const { page } = shown;
      await newNotebook(shown);
      await run(page, 'cell_1', "SELECT * FROM trades WHERE symbol = 'BTC-USD' LIMIT 50;");
      await summary(page, 'cell_1', /^50 rows/);
      await add(page, 'SQL');
      await run(page, 'cell_2', 'SELECT count() AS many FROM cell_1');
      await summary(page, 'cell_2', /^1 row/);
      t.is(await cell(page, 'cell_2').locator('.grid-cell').innerText(), '50');
      await add(page, 'Text');
      await page.getByLabel('Text in Markdown').fill('# Prices\n\nOf **one** day.');
      await page.keyboard.press('Control+Enter');
      await page.getByRole('heading', { name: 'Prices' }).waitFor();
      await add(page, 'Chart');
      await run(page, 'cell_3', 'SELECT timestamp, avg(price) AS price FROM trades SAMPLE BY 1h');
      await cell(page, 'cell_3').locator('.plot canvas').waitFor();
      await page.waitForTimeout(500);
      await page.evaluate('localStorage.clear()');
      await shown.reload();
      await page.getByRole('heading', { name: 'Prices' }).waitFor();
      t.deepEqual(await names(page), ['cell_1', 'cell_2', 'cell_3']);
      t.is(
        await cell(page, 'cell_2').locator('.cm-content').innerText(),
        'SELECT count() AS many FROM cell_1',
      );
      await page.getByRole('button', { name: 'Run all' }).click();
      await summary(page, 'cell_3', /rows/);
      await page.locator('.cells').evaluate('(cells) => cells.scrollTo(0, 0)');
      await inEveryTheme(shown, async (theme) => {
        t.deepEqual(await seriousViolations(page), [], theme);
        await shown.screenshot(picture(`notebook-${theme}`));
      });
    });
  },
);

browserTest(
  'a notebook is a file, and comes back from it; nothing of it runs by itself',
  async (t) => {
    await onPage(t, async (shown) => {
      const { page } = shown;
      await newNotebook(shown);
      await write(page, 'cell_1', 'SELECT 1 AS one');
      await add(page, 'Text');
      await page.getByLabel('Text in Markdown').fill('Text');
      const text = await exported(shown);
      t.is(
        text,
        '---\ntidemark-notebook: 1\n---\n\n```sql cell=cell_1\nSELECT 1 AS one\n```\n\n' +
          '<!-- cell -->\nText\n',
      );
      const asked: string[] = [];
      page.on('request', (request) => asked.push(statementOf(request)));
      await openFile(shown, 'mine.md', text.replace('SELECT 1 AS one', 'DROP TABLE trades'));
      await page.getByRole('tab', { name: 'mine', exact: true }).waitFor();
      await page.getByText('Nothing of it has run').first().waitFor();
      await page.waitForTimeout(1000);
      t.deepEqual(
        asked.filter((one) => one.includes('DROP')),
        [],
      );
      t.is((await rows("SELECT * FROM tables() WHERE table_name = 'trades'")).length, 1);
    });
  },
);

browserTest('a broken file and one of a newer version are shown as a text', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const newer = '---\ntidemark-notebook: 7\nshape: round\n---\n\n<script>alert(1)</script>\n';
    await openFile(shown, 'newer.md', newer);
    await page.getByText('is of version 7 of the format').first().waitFor();
    t.is(await page.getByRole('region', { name: 'Text of the notebook' }).innerText(), newer);
    t.is(await page.getByRole('button', { name: 'Run all' }).count(), 0);
    await inEveryTheme(shown, async (theme) => {
      t.deepEqual(await seriousViolations(page), [], theme);
      await shown.screenshot(picture(`notebook-newer-${theme}`));
    });
    await openFile(shown, 'broken.md', '---\ntidemark-notebook: 1\n---\n\nSELECT 1\n');
    await page
      .getByText(/line 5: expected a cell/i)
      .first()
      .waitFor();
  });
});
