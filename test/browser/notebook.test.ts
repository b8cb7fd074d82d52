/** Notebooks: cells are written, run, moved and saved; files are exported and imported. */
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
  // Uses the keyboard, because the completion list of another cell may cover this one.
  await cell(page, name).locator('.cm-content').focus();
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
  await page.getByRole('menuitem', { name: 'Open notebook file' }).click();
  await (await chooser).setFiles(path);
}

/** Returns the notebook in its file format. */
async function exported({ page }: ConsolePage): Promise<string> {
  await page.getByRole('button', { name: 'More notebook actions' }).click();
  const download = page.waitForEvent('download');
  await page.getByRole('menuitem', { name: 'Export to file' }).click();
  return await readFile(await (await download).path(), 'utf8');
}

function names(page: Page): Promise<string[]> {
  return page
    .getByRole('textbox', { name: 'Cell name' })
    .evaluateAll((all) => all.map((one) => (one as unknown as { value: string }).value));
}

browserTest('cells are written and run, reference each other, and survive a reload', async (t) => {
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
    await page.getByLabel('Markdown text').fill('# Prices\n\nOf **one** day.');
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
});

browserTest('a notebook is saved to a file and reopened without running anything', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await newNotebook(shown);
    await write(page, 'cell_1', 'SELECT 1 AS one');
    await add(page, 'Text');
    await page.getByLabel('Markdown text').fill('Text');
    const text = await exported(shown);
    t.is(
      text,
      '---\ntidemark-notebook: 1\n---\n\n```sql cell=cell_1\nSELECT 1 AS one\n```\n\n' +
        '<!-- cell -->\nText\n',
    );
    const requested: string[] = [];
    page.on('request', (request) => requested.push(statementOf(request)));
    await openFile(shown, 'mine.md', text.replace('SELECT 1 AS one', 'DROP TABLE trades'));
    await page.getByRole('tab', { name: 'mine', exact: true }).waitFor();
    await page
      .getByText('Nothing has run, and nothing will run until you run it')
      .first()
      .waitFor();
    await page.waitForTimeout(1000);
    t.deepEqual(
      requested.filter((one) => one.includes('DROP')),
      [],
    );
    t.is((await rows("SELECT * FROM tables() WHERE table_name = 'trades'")).length, 1);
  });
});

browserTest('malformed files and files from a newer version are shown as plain text', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const newer = '---\ntidemark-notebook: 7\nshape: round\n---\n\n<script>alert(1)</script>\n';
    await openFile(shown, 'newer.md', newer);
    await page.getByText('has format version 7').first().waitFor();
    t.is(await page.getByRole('region', { name: 'Notebook text' }).innerText(), newer);
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

browserTest(
  'cells are moved by keyboard or mouse and deleted, and both can be undone',
  async (t) => {
    await onPage(t, async (shown) => {
      const { page } = shown;
      await newNotebook(shown);
      await write(page, 'cell_1', 'SELECT 1');
      await add(page, 'SQL');
      await add(page, 'SQL');
      t.deepEqual(await names(page), ['cell_1', 'cell_2', 'cell_3']);
      await cell(page, 'cell_1').getByLabel('Move cell').focus();
      await page.keyboard.press('Alt+ArrowDown');
      t.deepEqual(await names(page), ['cell_2', 'cell_1', 'cell_3']);
      await page.keyboard.press('Alt+ArrowDown');
      t.deepEqual(
        await names(page),
        ['cell_2', 'cell_3', 'cell_1'],
        'the focus moved with the cell',
      );
      const handle = cell(page, 'cell_1').getByLabel('Move cell');
      await handle.dragTo(cell(page, 'cell_2').locator('.cell-head'));
      t.deepEqual(await names(page), ['cell_1', 'cell_2', 'cell_3']);
      await cell(page, 'cell_1').getByLabel('More cell actions').click();
      await page.getByRole('menuitem', { name: 'Delete' }).click();
      t.deepEqual(await names(page), ['cell_2', 'cell_3']);
      await page.locator('.toast').getByRole('button', { name: 'Undo' }).click();
      t.deepEqual(await names(page), ['cell_1', 'cell_2', 'cell_3']);
      t.is(await cell(page, 'cell_1').locator('.cm-content').innerText(), 'SELECT 1');
      await page.getByRole('button', { name: 'Undo', exact: true }).click();
      t.deepEqual(await names(page), ['cell_2', 'cell_3', 'cell_1']);
      await page.getByRole('button', { name: 'Redo', exact: true }).click();
      await cell(page, 'cell_1').getByLabel('Cell name').fill('cell_2');
      await page.keyboard.press('Enter');
      await page.getByText('Another cell is already named cell_2.').waitFor();
      await cell(page, 'cell_1').getByLabel('Cell name').fill('prices');
      await page.keyboard.press('Enter');
      t.deepEqual(await names(page), ['prices', 'cell_2', 'cell_3']);
      await cell(page, 'prices').getByLabel('Maximise').click();
      t.deepEqual(await names(page), ['prices']);
      await shown.screenshot(picture('notebook-maximised-light'));
      await page.keyboard.press('Escape');
      t.deepEqual(await names(page), ['prices', 'cell_2', 'cell_3']);
    });
  },
);

browserTest('cells run from a given cell onwards and stop at the first failure', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await newNotebook(shown);
    await write(page, 'cell_1', 'SELECT 1 AS one');
    await add(page, 'SQL');
    await write(page, 'cell_2', '-- wrong\nSELECT two FROM cell_1');
    await add(page, 'SQL');
    await write(page, 'cell_3', 'SELECT 3; SELECT 4');
    await page.keyboard.press('Control+Shift+Enter');
    await cell(page, 'cell_2').getByText('Invalid column: two').waitFor();
    await summary(page, 'cell_1', /^1 row/);
    t.is(await cell(page, 'cell_3').locator('.cell-summary').innerText(), '');
    await inEveryTheme(shown, async (theme) => {
      t.deepEqual(await seriousViolations(page), [], theme);
      await shown.screenshot(picture(`notebook-failed-${theme}`));
    });
    await write(page, 'cell_2', 'SELECT one FROM cell_1');
    await cell(page, 'cell_2').getByText('edited since the last run').waitFor();
    await cell(page, 'cell_2').getByLabel('More cell actions').click();
    await page.getByRole('menuitem', { name: 'Run from here' }).click();
    await cell(page, 'cell_3').getByText('The cell has 2 statements').waitFor();
    await page.getByRole('button', { name: 'Split into cells' }).click();
    t.deepEqual(await names(page), ['cell_1', 'cell_2', 'cell_3', 'cell_4']);
    await page.getByRole('button', { name: 'Run all' }).click();
    await summary(page, 'cell_4', /^1 row/);
  });
});

browserTest('a long query is stopped while others run', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await newNotebook(shown);
    await run(page, 'cell_1', 'SELECT count() FROM long_sequence(1000000) a CROSS JOIN trades');
    await cell(page, 'cell_1').getByRole('button', { name: 'Stop cell_1' }).waitFor();
    await add(page, 'SQL');
    await run(page, 'cell_2', 'SELECT 2');
    await summary(page, 'cell_2', /^1 row/);
    await cell(page, 'cell_1').getByRole('button', { name: 'Stop cell_1' }).click();
    await summary(page, 'cell_1', /^Cancelled after/);
    await run(page, 'cell_1', 'SELECT count() FROM long_sequence(1000000) a CROSS JOIN trades');
    await cell(page, 'cell_1').getByRole('button', { name: 'Stop cell_1' }).waitFor();
    await page.keyboard.press('Alt+k');
    await summary(page, 'cell_1', /^Cancelled after/);
  });
});

browserTest('notebook variables can be text, numbers, times or lists from a query', async (t) => {
  await rows('CREATE TABLE IF NOT EXISTS many AS (SELECT x AS n FROM long_sequence(1000000))');
  await onPage(t, async (shown) => {
    const { page } = shown;
    await newNotebook(shown);
    await page.getByRole('button', { name: 'More notebook actions' }).click();
    await page.getByRole('menuitem', { name: 'Variables' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('symbol');
    await dialog.getByLabel('Kind').selectOption('List from a query');
    await dialog.getByLabel('Query for the values').fill('SELECT DISTINCT symbol FROM trades');
    await dialog.getByRole('button', { name: 'Add variable' }).click();
    await dialog.getByLabel('Name').last().fill('from');
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await dialog.getByText('@from belongs to the time range').waitFor();
    await dialog.getByLabel('Name').last().fill('least');
    await dialog.getByLabel('Kind').last().selectOption('Number');
    await dialog.getByLabel('Value', { exact: true }).last().fill('1e3');
    t.deepEqual(await seriousViolations(page), []);
    await shown.screenshot(picture('notebook-variables-light'));
    await dialog.getByRole('button', { name: 'Apply' }).click();
    const sent: string[] = [];
    page.on('request', (request) => sent.push(statementOf(request)));
    const symbol = page.getByRole('group', { name: 'Variables' }).getByLabel('@symbol');
    const fields = page.locator('.parameters label');
    await fields.filter({ hasText: '@symbol' }).locator('.choices-arrow').waitFor();
    t.is(
      await page.locator('.choices-arrow').count(),
      1,
      'only the list variable has a menu arrow',
    );
    await symbol.focus();
    await page.locator('datalist option').first().waitFor({ state: 'attached' });
    await symbol.fill("x' OR 1 = 1 --");
    await run(
      page,
      'cell_1',
      'SELECT symbol FROM trades WHERE symbol = @symbol AND price > @least LIMIT 5',
    );
    await summary(page, 'cell_1', /^0 rows/);
    t.true(
      sent.some((one) => one.startsWith("DECLARE @symbol := 'x'' OR 1 = 1 --', @least := 1e3")),
    );
    await symbol.fill('BTC-USD');
    await symbol.blur();
    await summary(page, 'cell_1', /^5 rows/);
    await inEveryTheme(shown, async (theme) => {
      t.deepEqual(await seriousViolations(page), [], theme);
      await shown.screenshot(picture(`notebook-with-variables-${theme}`));
    });
    const least = page.getByRole('group', { name: 'Variables' }).getByLabel('@least');
    await least.fill('many');
    await least.blur();
    await page.getByText('"many" is not a number.').first().waitFor();
    await page.getByRole('button', { name: 'Edit variables' }).click();
    await dialog.getByLabel('Value', { exact: true }).last().fill('1');
    await dialog.getByLabel('Query for the values').fill('SELECT n FROM many');
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await symbol.blur();
    await symbol.focus();
    await page.getByText('Only the first 1,000 values are listed').waitFor();
    t.is(await page.locator('datalist option').count(), 1000);
  });
});

browserTest(
  'markup in text, names and values is plain text; only external links work',
  async (t) => {
    await onPage(t, async (shown) => {
      const { page } = shown;
      const markup = '<img src=x onerror=alert(1)><script>alert(2)</script>';
      const text = [
        `# ${markup}`,
        '[bad](javascript:alert(3)) [data](data:text/html,x) [good](https://example.com/a)',
        '![picture](https://example.com/b.png)',
        '| a | b |\n|---|---|\n| **1** | `2` |',
        '- [x] done\n- open &amp; &#x3C;',
        `${'> '.repeat(12)}deep`,
        markup,
      ].join('\n\n');
      const file = `---\ntidemark-notebook: 1\n---\n\n<!-- cell -->\n${text}\n`;
      await openFile(shown, '<b>name.md', file);
      await page.locator('.markdown table').waitFor();
      const shownText = await page.locator('.markdown').innerText();
      t.true(shownText.includes('<script>alert(2)</script>'));
      t.true(shownText.includes('open & <'));
      t.is(await page.locator('.markdown :is(img, script)').count(), 0);
      t.deepEqual(
        await page
          .locator('.markdown a')
          .evaluateAll((all) =>
            all.map((one) => (one as unknown as { href: string; rel: string }).href),
          ),
        ['https://example.com/a'],
      );
      t.regex((await page.locator('.markdown a').getAttribute('rel')) ?? '', /noopener/);
      t.deepEqual(await seriousViolations(page), []);
      await shown.screenshot(picture('notebook-markdown-light'));
      // Text that the library cannot parse is shown unformatted.
      const deep = '> '.repeat(20_000);
      await openFile(shown, 'deep.md', file.replace(text, `${deep}deep`));
      await page.locator('.markdown > pre', { hasText: 'deep' }).waitFor();
    });
  },
);

browserTest('the query log becomes a notebook with the oldest query first', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    t.is(await shown.query('SELECT 1 AS one'), 'done');
    t.is(await shown.query('SELECT 2 AS two'), 'done');
    await page.keyboard.press('Control+K');
    await page.getByRole('combobox', { name: 'Type a table' }).fill('notebook from query log');
    await page.keyboard.press('Enter');
    await cell(page, 'cell_2').waitFor();
    t.is(await cell(page, 'cell_1').locator('.cm-content').innerText(), 'SELECT 1 AS one');
    // A notebook is a tab: it can be closed and reopened.
    await page.keyboard.press('Alt+w');
    await cell(page, 'cell_2').waitFor({ state: 'detached' });
    await page.keyboard.press('Alt+Shift+T');
    await cell(page, 'cell_2').waitFor();
    t.is(await page.getByRole('button', { name: 'Format' }).isVisible(), false);
    await page.keyboard.press('Alt+Shift+F');
    await page.keyboard.press('Control+Enter');
    await page.waitForTimeout(400);
    t.is(await cell(page, 'cell_2').locator('.cm-content').innerText(), 'SELECT 2 AS two');
  });
});

browserTest('a notebook among exported tabs is imported without running anything', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await newNotebook(shown);
    await write(page, 'cell_1', 'DROP TABLE trades');
    const menu = async (name: string): Promise<void> => {
      await page.getByRole('button', { name: 'Tabs', exact: true }).click();
      await page.getByRole('menuitem', { name }).click();
    };
    const download = page.waitForEvent('download');
    await menu('Export all tabs');
    const path = await (await download).path();
    await page.keyboard.press('Alt+w');
    const chooser = page.waitForEvent('filechooser');
    await menu('Import tabs');
    await (await chooser).setFiles(path);
    await page.getByText('Nothing has run, and nothing will run until you run it').waitFor();
    t.is(await cell(page, 'cell_1').locator('.cm-content').innerText(), 'DROP TABLE trades');
    t.is((await rows("SELECT * FROM tables() WHERE table_name = 'trades'")).length, 1);
  });
});

browserTest('a notebook fits every window width', async (t) => {
  for (const [width, height] of [
    [1024, 768],
    [390, 844],
  ] as const) {
    await onPage(
      t,
      async (shown) => {
        const { page } = shown;
        await newNotebook(shown);
        await run(page, 'cell_1', 'SELECT timestamp, avg(price) AS price FROM trades SAMPLE BY 1h');
        await summary(page, 'cell_1', /rows/);
        await add(page, 'Text');
        await page.getByLabel('Markdown text').fill('# Prices\n\n- of *one* day');
        await page.keyboard.press('Control+Enter');
        await page.getByRole('heading', { name: 'Prices' }).waitFor();
        await inEveryTheme(shown, async (theme) => {
          t.deepEqual(await seriousViolations(page), [], `${theme} at ${width}`);
          await shown.screenshot(picture(`notebook-${width}-${theme}`));
        });
        const isWide = 'document.documentElement.scrollWidth > innerWidth';
        t.false(await page.evaluate<boolean>(isWide));
      },
      { width, height },
    );
  }
});
