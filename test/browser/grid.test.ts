/** Actions on loaded rows: sort, filter, arrange, inspect, copy. */
import type { Locator } from 'playwright-core';

import type { ConsolePage } from './console-page.js';
import { browserSuite, picture } from './suite.js';

const { browserTest, onPage } = browserSuite('the grid in a browser', { args: ['--demo'] });

const VALUES =
  'SELECT x AS id, 9223372036854775800 + x AS big, ' +
  'CASE WHEN x % 3 = 0 THEN NULL ELSE x * 0.5 END AS half, ' +
  "CASE WHEN x % 2 = 0 THEN 'even' ELSE 'odd, \"x\"' END AS kind " +
  'FROM long_sequence(7)';

function head({ page }: ConsolePage, name: string): Locator {
  return page.locator('.grid-head-cell').filter({ has: page.getByText(name, { exact: true }) });
}

async function column({ page }: ConsolePage, position: number): Promise<string[]> {
  return await page.locator(`.grid-cell[aria-colindex="${position + 1}"]`).allInnerTexts();
}

async function clipboard({ page }: ConsolePage): Promise<string> {
  await page.locator('.toast').waitFor();
  return await page.evaluate<string>('navigator.clipboard.readText()');
}

browserTest('clicking a header sorts the loaded rows, nulls last', async (t) => {
  await onPage(t, async (shown) => {
    t.is(await shown.query(VALUES), 'done');
    await head(shown, 'big').click();
    await head(shown, 'big').click();
    t.is(await head(shown, 'big').getAttribute('aria-sort'), 'descending');
    t.deepEqual(await column(shown, 1), ['7', '6', '5', '4', '3', '2', '1']);
    await head(shown, 'half').click();
    t.deepEqual(await column(shown, 3), ['0.5', '1', '2', '2.5', '3.5', 'null', 'null']);
    await head(shown, 'half').click();
    t.deepEqual(await column(shown, 3), ['3.5', '2.5', '2', '1', '0.5', 'null', 'null']);
    await head(shown, 'half').click();
    t.deepEqual(await column(shown, 1), ['1', '2', '3', '4', '5', '6', '7']);
  });
});

browserTest('the filter searches all columns or compares one column', async (t) => {
  await onPage(t, async (shown) => {
    t.is(await shown.query(VALUES), 'done');
    const filter = shown.page.getByLabel('Filter loaded rows');
    const counted = shown.page.locator('.inline-filter .hint');
    for (const [text, ids, count] of [
      ['even', ['2', '4', '6'], '3 of 7'],
      ['half >= 1', ['2', '4', '5', '7'], '4 of 7'],
      ['half = null', ['3', '6'], '2 of 7'],
      ['big = 9,223,372,036,854,775,803', ['3'], '1 of 7'],
      ['kind: ODD', ['1', '3', '5', '7'], '4 of 7'],
    ] as const) {
      await filter.fill(text);
      await counted.filter({ hasText: count }).waitFor();
      t.deepEqual(await column(shown, 1), [...ids], text);
    }
    await filter.fill('nothing has this');
    await shown.page.getByText('No matching rows').waitFor();
    await filter.press('Escape');
    await counted.waitFor({ state: 'detached' });
    t.is((await column(shown, 1)).length, 7);
  });
});

browserTest('columns are moved, frozen, widened and reset', async (t) => {
  await onPage(t, async (shown) => {
    t.is(await shown.query('SELECT * FROM trades LIMIT 50'), 'done');
    const before = await shown.columns();
    const last = before.at(-1) ?? '';
    const from = await head(shown, last).boundingBox();
    const to = await head(shown, before[0] ?? '').boundingBox();
    t.truthy(from && to);
    await shown.page.mouse.move((from?.x ?? 0) + 20, (from?.y ?? 0) + 12);
    await shown.page.mouse.down();
    await shown.page.mouse.move((to?.x ?? 0) + 4, (to?.y ?? 0) + 12, { steps: 5 });
    await shown.page.mouse.up();
    t.deepEqual(await shown.columns(), [last, ...before.slice(0, -1)]);
    await shown.page.locator('.grid').focus();
    await shown.page.keyboard.press('End');
    await shown.page.keyboard.press('/');
    t.is((await shown.columns())[0], before.at(-2));
    await shown.page.keyboard.press('Shift+F10');
    await shown.page.getByRole('menuitemcheckbox', { name: 'Freeze up to here' }).click();
    t.is(await shown.page.locator('.grid-head .frozen').count(), 1);
    await shown.page.keyboard.press('Control+B');
    t.deepEqual(await shown.columns(), before);
    t.is(await shown.page.locator('.frozen').count(), 0);
  });
});

browserTest('a frozen column stays in view while others scroll', async (t) => {
  await onPage(t, async (shown) => {
    const wide = Array.from({ length: 60 }, (_, index) => `x + ${index} AS c${index}`).join(', ');
    t.is(await shown.query(`SELECT ${wide} FROM long_sequence(100)`), 'done');
    await shown.page.locator('.grid').focus();
    await shown.page.keyboard.press('Shift+F10');
    await shown.page.getByRole('menuitemcheckbox', { name: 'Freeze up to here' }).click();
    await shown.page.locator('.grid').focus();
    await shown.page.keyboard.press('End');
    await head(shown, 'c59').waitFor();
    const grid = await shown.page.locator('.grid').boundingBox();
    const headBox = await head(shown, 'c0').boundingBox();
    t.true((headBox?.x ?? 0) - (grid?.x ?? 0) < 60, 'c0 is still at the left edge');
    const cell = shown.page.locator('.grid-row').first().locator('.grid-cell.frozen');
    t.is(await cell.innerText(), '1');
  });
});

browserTest('rows and cells are in DOM order after scrolling', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const columns = Array.from({ length: 60 }, (_, index) => `x + ${index} AS c${index}`);
    t.is(await shown.query(`SELECT ${columns.join(', ')} FROM long_sequence(1000)`), 'done');
    const indexes = (selector: string, name: string): Promise<number[]> =>
      page.evaluate<number[]>(
        `[...document.querySelectorAll('${selector}')].map((one) => +one.getAttribute('${name}'))`,
      );
    const areSorted = (numbers: number[]): boolean =>
      numbers.every((number, at) => at === 0 || number > (numbers[at - 1] ?? 0));
    const first = await indexes('.grid-row', 'aria-rowindex');
    await page.locator('.grid').hover();
    await page.mouse.wheel(400, 130);
    const settled = async (): Promise<boolean> =>
      areSorted(await indexes('.grid-row', 'aria-rowindex')) &&
      areSorted(await indexes('.grid-row:nth-child(3) .grid-cell', 'aria-colindex'));
    while ((await indexes('.grid-row', 'aria-rowindex')).join() === first.join()) {
      await page.waitForTimeout(20);
    }
    while (!(await settled())) {
      await page.waitForTimeout(20);
    }
    const [row] = await indexes('.grid-row:nth-child(3)', 'aria-rowindex');
    const [column] = await indexes('.grid-row:nth-child(3) .grid-cell', 'aria-colindex');
    const text = await page.locator('.grid-row:nth-child(3) .grid-cell').first().innerText();
    t.is(text, ((row ?? 0) - 1 + (column ?? 0) - 2).toLocaleString('en'));
  });
});

browserTest('rows of a volatile query are loaded in pages of 100,000', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const note = page.locator('.grid-note');
    const after = page.getByRole('button', { name: 'Next rows' });
    const before = page.getByRole('button', { name: 'Previous rows' });
    t.is(await shown.query('SELECT x * 10 AS v, now() FROM long_sequence(250000)'), 'done');
    t.true(await before.isDisabled());
    await after.click();
    await note.getByText('Rows 100,001 to 200,000 of 250,000.').waitFor();
    t.is((await shown.row(1))[0], '1,000,010');
    t.is(await page.locator('.grid-row .grid-number').first().innerText(), '100001');
    await after.click();
    await note.getByText('Rows 200,001 to 250,000 of 250,000.').waitFor();
    t.true(await after.isDisabled());
    await page.locator('.grid').focus();
    await page.keyboard.press('Control+End');
    const last = page.locator('.grid-row[aria-rowindex="50001"]');
    await last.waitFor();
    t.is(await last.locator('.grid-number').innerText(), '250000');
    t.is(await last.locator('.grid-cell').first().innerText(), '2,500,000');
    await before.click();
    await note.getByText('Rows 100,001 to 200,000 of 250,000.').waitFor();
  });
});

browserTest('wide rows are loaded as far as they fit, and more on request', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const note = page.locator('.grid-note');
    t.is(
      await shown.query("SELECT x, lpad('', 2000, 'y') AS t, now() FROM long_sequence(60000)"),
      'done',
    );
    t.regex(await shown.summary(), /^more than [\d,]+ rows$/);
    const end = Number(/to ([\d,]+) of more/.exec(await note.innerText())?.[1]?.replace(',', ''));
    t.true(end > 25_000 && end < 40_000, String(end));
    await page.getByRole('button', { name: 'Next rows' }).click();
    await note.getByText(`Rows ${(end + 1).toLocaleString('en')} to 60,000 of 60,000.`).waitFor();
    t.is((await shown.row(1))[0], (end + 1).toLocaleString('en'));
  });
});

browserTest('the inspector shows a value in full and profiles its column', async (t) => {
  await onPage(t, async (shown) => {
    const json = '{"fw":"2.4.1","big":9007199254740993}';
    t.is(
      await shown.query(
        `SELECT x AS id, '${json}' AS note, ARRAY[[1.5, x], [2, 3]] AS grid_of ` +
          'FROM long_sequence(40)',
      ),
      'done',
    );
    await shown.page.locator('.grid').focus();
    await shown.page.keyboard.press('ArrowRight');
    await shown.page.keyboard.press('Enter');
    const inspector = shown.page.locator('.inspector');
    const value = inspector.locator('.snippet');
    t.is(await value.innerText(), '{\n  "fw": "2.4.1",\n  "big": 9007199254740993\n}');
    t.regex(await inspector.innerText(), /row 1, \w+, 37 characters/);
    t.regex(await inspector.locator('.profile-facts').innerText(), /Distinct\s+1\b/);
    await shown.page.keyboard.press('ArrowRight');
    t.is(await value.innerText(), '[\n  [1.5, 1],\n  [2, 3]\n]');
    await shown.page.keyboard.press('Home');
    t.regex(await inspector.locator('.profile-facts').innerText(), /Mean\s+20\.5/);
    t.is(await inspector.locator('.histogram rect').count(), 24);
    await shown.screenshot(picture('inspector-light'));
    await shown.page.keyboard.press('Escape');
    t.is(await inspector.count(), 0);
  });
});

browserTest('rows are copied as shown, in four formats', async (t) => {
  await onPage(t, async (shown) => {
    t.is(await shown.query(VALUES), 'done');
    await head(shown, 'id').click();
    await head(shown, 'id').click();
    await shown.page.getByLabel('Filter loaded rows').fill('id > 5');
    await shown.page.locator('.inline-filter .hint', { hasText: '2 of 7' }).waitFor();
    const copyAs = async (form: string): Promise<string> => {
      await shown.page.getByRole('button', { name: 'Copy rows' }).click();
      await shown.page.getByRole('menuitem', { name: form }).click();
      return await clipboard(shown);
    };
    t.is(
      await copyAs('CSV'),
      'id,big,half,kind\r\n7,9223372036854775807,3.5,"odd, ""x"""\r\n' +
        '6,9223372036854775806,,even\r\n',
    );
    t.is(
      await copyAs('Markdown table'),
      '| id | big | half | kind |\n| ---: | ---: | ---: | --- |\n' +
        '| 7 | 9223372036854775807 | 3.5 | odd, "x" |\n| 6 | 9223372036854775806 | null | even |\n',
    );
    t.is(
      await copyAs('JSON'),
      '[\n  {"id": 7, "big": 9223372036854775807, "half": 3.5, "kind": "odd, \\"x\\""},\n' +
        '  {"id": 6, "big": 9223372036854775806, "half": null, "kind": "even"}\n]\n',
    );
    t.regex(await copyAs('Tab-separated'), /^id\tbig\thalf\tkind\n7\t/);
  });
});
