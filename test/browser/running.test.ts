/** Running statements: run markers, error positions, and the log. */
import { seriousViolations } from './axe.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage } = browserSuite('running statements in a browser');

browserTest('clicking the marker next to a statement runs it', async (t) => {
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
    // Elements without a title are only placeholders.
    const done = page.locator('.cm-run-done[title*="row"]');
    await press(2);
    await done.waitFor();
    t.deepEqual(await shown.columns(), ['two']);
    t.is(
      await page.locator('.cm-run-ready').count(),
      0,
      'the run marker is replaced by the result marker',
    );
    await press(0);
    await done.nth(1).waitFor();
    t.deepEqual(await shown.columns(), ['one']);
  });
});

browserTest("a statement's run marker is removed when the statement changes", async (t) => {
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

browserTest('an error in a selection is marked at its position in the editor', async (t) => {
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

browserTest('the log shows each run with its tab and the total and server times', async (t) => {
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

browserTest(
  'the log is saved with times and plans but no secrets; it becomes a notebook',
  async (t) => {
    await onPage(t, async (shown) => {
      const { page } = shown;
      t.is(await shown.query('SELECT x FROM long_sequence(3)'), 'done');
      await page.getByRole('button', { name: 'Explain' }).click();
      await page.locator('.plan-pane').waitFor();
      t.is(await shown.query('SELECT 1 AS kept'), 'done');
      await shown.query("ALTER USER nobody WITH PASSWORD 'secret-1'");
      await page.getByRole('button', { name: 'Log' }).click();
      t.is(await page.locator('.log li').count(), 3);
      await page.waitForTimeout(500);
      await shown.reload();
      await page.locator('.log li').first().waitFor();
      const texts = await page.locator('.log li').allInnerTexts();
      t.is(texts.length, 2);
      t.regex(texts[1] ?? '', /long_sequence\(3\)[^]*3 rows in .*, server /);
      await page.getByRole('button', { name: 'Plan', exact: true }).last().click();
      t.regex(await page.locator('.log-plan').innerText(), /ProjectionExec/);
      await inEveryTheme(shown, async (theme) => {
        await shown.screenshot(picture(`log-${theme}`));
        t.deepEqual(await seriousViolations(page), [], theme);
      });
      for (const width of [1024, 390]) {
        await shown.resize(width, 800);
        await shown.screenshot(picture(`log-${width}`));
        t.deepEqual(await seriousViolations(page), [], `${width}`);
      }
      await shown.resize(1440, 900);
      await page.getByLabel('Filter log').fill('kept');
      t.is(await page.locator('.log li').count(), 1);
      await page.getByRole('button', { name: 'Create notebook' }).click();
      await page.locator('.notebook').waitFor();
      t.is(await page.locator('[data-cell]').count(), 1);
    });
  },
);
