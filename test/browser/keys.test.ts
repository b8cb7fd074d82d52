/** Presses each key of the help dialog once. */
import { browserSuite } from './suite.js';

const { browserTest, onPage, server } = browserSuite('keys in a browser');

browserTest('keyboard shortcuts run and cancel queries, switch views and move focus', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const { keyboard } = page;
    const front = (): Promise<string> => page.locator('.tab[aria-selected="true"]').innerText();
    const hasFocus = (what: string): Promise<boolean> =>
      page.evaluate<boolean>(`document.activeElement.matches('${what}')`);
    await shown.write('SELECT x, x * 2 AS y FROM long_sequence(500)');
    await keyboard.press('F9');
    await page.locator('.summary[data-state="done"]').waitFor();
    for (const [key, view] of [
      ['Alt+4', '.log'],
      ['Alt+3', '.plan-pane'],
      ['Alt+2', '.chart'],
      ['Alt+1', '.grid'],
    ] as const) {
      await keyboard.press(key);
      await page.locator(view).first().waitFor();
    }
    await keyboard.press('F2');
    t.true(await hasFocus('.grid'));
    // After scrolling, a cell has no position until it is drawn.
    const grid = page.locator('.grid[aria-activedescendant^="cell-"]');
    const activeCell = (): Promise<string | null> => grid.getAttribute('aria-activedescendant');
    const first = await activeCell();
    const seen = new Set([first]);
    for (const key of ['PageDown', 'End', 'Control+End', 'Home', 'ArrowUp', 'PageUp']) {
      await keyboard.press(key);
      seen.add(await activeCell());
    }
    t.is(seen.size, 7, 'each key moves to another cell');
    await keyboard.press('Control+Home');
    t.is(await activeCell(), first);
    await keyboard.press('Control+Shift+C');
    await page.locator('.toast', { hasText: 'copied' }).waitFor();
    t.is(await page.evaluate<string>('navigator.clipboard.readText()'), 'x\ty\n1\t2');
    await keyboard.press('?');
    await page.getByRole('dialog', { name: 'Shortcuts' }).waitFor();
    await keyboard.press('Escape');
    await page.locator('.grid').focus();
    await keyboard.press('F2');
    t.true(await hasFocus('.editor-host'));
    const regions = new Set<string>();
    for (let step = 0; step < 6; step += 1) {
      await keyboard.press('F6');
      regions.add(
        await page.evaluate<string>(
          "document.activeElement.closest('[data-region]')?.dataset.region ?? ''",
        ),
      );
    }
    t.true(regions.has('grid') && regions.has('views') && !regions.has(''), [...regions].join());
    await keyboard.press('Alt+T');
    t.is(await front(), 'Query 2');
    await keyboard.press('Alt+PageUp');
    t.is(await front(), 'Query 1');
    await keyboard.press('Alt+PageDown');
    t.is(await front(), 'Query 2');
    await shown.write('SELECT count() FROM long_sequence(4000000000000)');
    await keyboard.press('Control+Enter');
    await page.locator('.summary[data-state="running"]').waitFor();
    await keyboard.press('Alt+K');
    await page.locator('.summary[data-state="cancelled"]').waitFor();
    await keyboard.press('Alt+L');
    const link = await page.evaluate<string>('navigator.clipboard.readText()');
    t.is(link, `${server().url}/#query=SELECT%20count()%20FROM%20long_sequence(4000000000000)`);
    await keyboard.press('Alt+W');
    t.is(await front(), 'Query 1');
  });
});
