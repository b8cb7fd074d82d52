/** Query plans as a tree. */
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage } = browserSuite('plans in a browser', { args: ['--demo'] });

const HOURLY = "SELECT symbol, avg(price) FROM trades WHERE side = 'buy' SAMPLE BY 1h";

browserTest('a plan is a tree of operators, analyzed on request', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await shown.write(HOURLY);
    await page.keyboard.press('Alt+E');
    const items = page.getByRole('treeitem').and(page.locator('.plan li'));
    await items.first().waitFor();
    const operators = await items.count();
    t.true(operators >= 2);
    t.is(await page.locator('.plan-cost').count(), 0);
    // A hidden result has no Copy or Export button.
    const ofResult = page.locator('.result-bar').getByRole('button', { name: /^(Copy|Export)/ });
    t.is(await ofResult.count(), 0);
    await page.getByRole('button', { name: 'Log', exact: true }).click();
    await page.getByText('No queries yet').waitFor();
    t.is(await ofResult.count(), 0);
    await page.keyboard.press('Alt+E');
    await items.first().waitFor();
    await page.getByRole('button', { name: 'Run and measure' }).click();
    await page.locator('.plan-cost').first().waitFor();
    t.regex(await page.locator('.plan-head').innerText(), /Rows\s+\d+[^]*Time\s+[\d.]+ ms/);
    t.regex(await page.locator('.plan-rows').first().innerText(), /^[\d,.]+ .*rows$/);
    await items.first().focus();
    await page.keyboard.press('End');
    t.is(
      await page.locator(':focus').getAttribute('aria-level'),
      await items.last().getAttribute('aria-level'),
    );
    await inEveryTheme(shown, async (theme) => {
      await shown.screenshot(picture(`plan-${theme}`));
    });
  });
});

browserTest('the reason is shown if a statement cannot be planned', async (t) => {
  await onPage(t, async (shown) => {
    await shown.write('SELECT nothing FROM trades');
    await shown.page.getByRole('button', { name: 'Plan' }).click();
    await shown.page.locator('.plan-pane', { hasText: 'nothing' }).waitFor();
    t.pass();
  });
});
