/** Rectangular cell selections: by pointer and keyboard, with copying and summaries. */
import type { ConsolePage } from './console-page.js';
import { seriousViolations } from './axe.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage } = browserSuite('selections in the grid');

const FIVE = 'SELECT x, x * 10 y FROM long_sequence(5)';

async function clipboard(shown: ConsolePage): Promise<string> {
  await shown.page.locator('.toast', { hasText: 'copied' }).waitFor();
  return await shown.page.evaluate<string>('navigator.clipboard.readText()');
}

async function drag(shown: ConsolePage, from: string, to: string): Promise<void> {
  const { page } = shown;
  const [start, end] = [
    await page.locator(from).boundingBox(),
    await page.locator(to).boundingBox(),
  ];
  await page.mouse.move((start?.x ?? 0) + 5, (start?.y ?? 0) + 10);
  await page.mouse.down();
  await page.mouse.move((end?.x ?? 0) + 8, (end?.y ?? 0) + 12, { steps: 4 });
  await page.mouse.up();
}

browserTest('dragged cells are copied in spreadsheet format', async (t) => {
  await onPage(t, async (shown) => {
    await shown.query(FIVE);
    await drag(shown, '#cell-0-0', '#cell-2-1');
    await shown.page.keyboard.press('Control+C');
    t.is(await clipboard(shown), '1\t10\n2\t20\n3\t30');
    t.is(await shown.page.locator('.grid-cell.chosen').count(), 6);
    t.is(await shown.page.evaluate<string>('getSelection().toString()'), '');
  });
});

browserTest('keys select cells, copy them with headers and clear the selection', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await shown.query(FIVE);
    await page.locator('#cell-1-0').click();
    await page.keyboard.press('Shift+ArrowDown');
    await page.keyboard.press('Shift+ArrowRight');
    await page.keyboard.press('Control+Shift+C');
    t.is(await clipboard(shown), 'x\ty\n2\t20\n3\t30');
    const facts = await page.locator('.grid-facts').innerText();
    t.regex(facts, /2 × 2 cells\s+Sum 55\s+Average 13\.75\s+Min 2\s+Max 30/);
    await page.keyboard.press('Escape');
    t.is(await page.locator('.grid-cell.chosen').count(), 0);
    t.is(await page.locator('.grid-facts').count(), 0);
    await page.keyboard.press('Control+A');
    t.is(await page.locator('.grid-cell.chosen').count(), 10);
    await page.locator('#cell-0-0').click();
    await page.locator('#cell-4-0').click({ modifiers: ['Shift'] });
    t.regex(await page.locator('.grid-facts').innerText(), /5 × 1 cells\s+Sum 15/);
  });
});

browserTest('row numbers select rows; integer sums are exact, and nulls are counted', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await shown.query(
      'SELECT 9223372036854775807 a, null::long b UNION ALL SELECT 9223372036854775807, 1::long',
    );
    await page.locator('.grid-row[aria-rowindex="2"] .grid-number').click();
    t.is(await page.locator('.grid-cell.chosen').count(), 2);
    await page.keyboard.press('Shift+ArrowDown');
    const facts = await page.locator('.grid-facts').innerText();
    t.regex(facts, /2 × 2 cells\s+Null 1\s+Sum 18,446,744,073,709,551,615/);
  });
});

browserTest('a selection is visible in three themes, and axe finds no violation', async (t) => {
  for (const width of [1440, 1024, 390]) {
    await onPage(
      t,
      async (shown) => {
        await shown.query(FIVE);
        await shown.page.locator('#cell-0-0').click();
        await shown.page.locator('#cell-2-1').click({ modifiers: ['Shift'] });
        await inEveryTheme(shown, async (theme) => {
          await shown.screenshot(picture(`selection-${width}-${theme}`));
          t.deepEqual(await seriousViolations(shown.page), []);
        });
      },
      { width },
    );
  }
});
