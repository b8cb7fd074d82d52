/** Which statement runs, where its error is, and what is remembered of it. */
import { browserSuite } from './suite.js';

const { browserTest, onPage } = browserSuite('running statements in a browser');

browserTest('a press beside a statement runs it', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await shown.write('SELECT 1 AS one;\nSELECT\n  2 AS two;\n');
    await page.keyboard.press('Control+Home');
    const gutter = await page.locator('.cm-run-gutter').boundingBox();
    const press = async (line: number): Promise<void> => {
      const box = await page.locator('.cm-line').nth(line).boundingBox();
      await page.mouse.click((gutter?.x ?? 0) + 12, (box?.y ?? 0) + 8);
    };
    await page.locator('.cm-run-ready').waitFor();
    // Whatever has no title only keeps the room for the others.
    const done = page.locator('.cm-run-done[title*="row"]');
    await press(2);
    await done.waitFor();
    t.deepEqual(await shown.columns(), ['two']);
    t.is(await page.locator('.cm-run-ready').count(), 0, 'the mark of the run stands there');
    await press(0);
    await done.nth(1).waitFor();
    t.deepEqual(await shown.columns(), ['one']);
  });
});

browserTest('what a run has left beside a statement goes when the statement changes', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await shown.write('SELECT 1 AS one;\nSELECT 2 AS two;\n');
    await page.keyboard.press('Control+Shift+Enter');
    const done = page.locator('.cm-run-done[title*="row"]');
    await done.nth(1).waitFor();
    await page.keyboard.press('Control+End');
    await page.keyboard.insertText('-- a word behind');
    t.is(await done.count(), 2);
    await page.keyboard.press('Control+Home');
    await page.keyboard.press('Control+ArrowRight');
    await page.keyboard.insertText('0 + ');
    await page.locator('.cm-run-ready').waitFor();
    t.is(await done.count(), 1);
  });
});

browserTest('of a selection the error stands where it is in the text', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await shown.write("SELECT 1 AS one;\n  SELECT '😀é🙂' AS a, nonesuch;\n");
    await page.keyboard.press('Control+Home');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Home');
    await page.keyboard.press('Shift+End');
    t.is(await shown.run(), 'failed');
    t.is(await page.locator('.cm-squiggle').innerText(), 'nonesuch');
    t.is(await page.locator('.problem .where').innerText(), '2:24');
    const excerpt = page.locator('.outcome-excerpt pre');
    const line = await excerpt.first().innerText();
    const caret = await excerpt.last().innerText();
    t.is(caret.length - 1, line.indexOf('nonesuch'));
  });
});

browserTest('the log tells what ran in which tab, with both times', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    t.is(await shown.query('SELECT x FROM long_sequence(3)'), 'done');
    t.is(await shown.query('SELECT nonesuch'), 'failed');
    await page.getByRole('button', { name: 'Log' }).click();
    const entries = await page.locator('.log li').allInnerTexts();
    t.is(entries.length, 2);
    t.regex(entries[0] ?? '', /SELECT nonesuch[^]*Failed: .*nonesuch/);
    t.regex(entries[1] ?? '', /Query 1[^]*long_sequence[^]*3 rows in .*, server /);
  });
});
