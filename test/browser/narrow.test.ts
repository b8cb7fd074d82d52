/** Small windows: nothing important is truncated, hidden or outside the window. */
import { seriousViolations } from './axe.js';
import { leavePicture } from './console-page.js';
import { openBrowser, BrowserUser, serverFor } from './user.js';
import { browserSuite, picture } from './suite.js';

const { browserTest, onPage } = browserSuite('narrow windows', { args: ['--demo'] });

openBrowser();

browserTest('a lost connection is reported on a phone', async (t) => {
  const server = await serverFor(t, []);
  const { page } = await BrowserUser.arrive(t);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${server.url}/#sql`);
  const status = page.locator('.status');
  await status.locator('.ok').waitFor({ state: 'attached' });
  t.false(await status.isVisible());
  await server.stop();
  await status.getByText('The server is not responding. Your drafts are safe.').waitFor();
  t.true(await page.locator('.rail').isVisible());
  t.deepEqual(await seriousViolations(page), []);
  await leavePicture(page, picture('lost-390-light'));
});

browserTest('a user signed in on a phone can sign out there', async (t) => {
  const server = await serverFor(t, ['http.user=joe', 'http.password=s3cret']);
  const joe = await BrowserUser.arrive(t);
  await joe.page.setViewportSize({ width: 390, height: 844 });
  await joe.page.goto(`${server.url}/#sql`);
  await joe.isOut();
  await joe.page.getByLabel('User', { exact: true }).fill('joe');
  await joe.page.getByLabel('Password').fill('s3cret');
  await joe.page.keyboard.press('Enter');
  await joe.page.locator('.status .account', { hasText: 'joe' }).waitFor();
  await leavePicture(joe.page, picture('signed-in-390-light'));
  await joe.page.getByRole('button', { name: 'Sign out' }).click();
  await joe.isOut();
  t.deepEqual(joe.complaints, []);
});

browserTest('the result bar does not truncate words and leaves space for the filter', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const query = 'SELECT x, timestamp_sequence(0, 1000) ts FROM long_sequence(300000)';
    for (const width of [1440, 1320, 1319, 1024, 760]) {
      await shown.resize(width, 800);
      t.is(await shown.query(query), 'done');
      t.is(await shown.summary(), '300,000 rows');
      const cut = await page.evaluate<string[]>(`(() => {
        const bar = document.querySelector('.summary');
        const { left, right, top, bottom } = bar.getBoundingClientRect();
        return [...bar.querySelectorAll('b, span')].filter((one) => {
          const box = one.getBoundingClientRect();
          const isSeen = box.top < bottom && box.bottom > top;
          return isSeen ? box.left < left || box.right > right + 1 : one.tagName === 'B';
        }).map((one) => one.textContent);
      })()`);
      t.deepEqual(cut, [], String(width));
      const filter = await page.locator('.result-bar .inline-filter').boundingBox();
      t.true((filter?.width ?? 0) >= 120, `${width}: ${filter?.width}`);
      await shown.screenshot(picture(`result-bar-${width}`));
    }
  });
});

browserTest('on a phone the result bar summarizes the run', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      for (const [query, expected] of [
        ['SELECT x FROM long_sequence(300000)', '300,000 rows'],
        ['SELECT x FROM long_sequence(3)', '3 rows'],
      ] as const) {
        t.is(await shown.query(query), 'done');
        const bar = await page.locator('.summary').boundingBox();
        const text = await page.locator('.summary b', { hasText: expected }).boundingBox();
        t.true(bar !== null && text !== null);
        const [end, low] = [(text?.x ?? 0) + (text?.width ?? 0), (text?.y ?? 0) + 10];
        t.true(
          end <= 390 && low < (bar?.y ?? 0) + (bar?.height ?? 0),
          `${expected} ends at ${end}`,
        );
      }
      t.true(await page.evaluate<boolean>('document.body.scrollWidth <= innerWidth'));
      await shown.screenshot(picture('result-bar-390'));
    },
    { width: 390, height: 844 },
  );
});

browserTest('the help is readable on a phone', async (t) => {
  await onPage(
    t,
    async ({ page }) => {
      await page.getByRole('button', { name: /shortcuts/i }).click();
      const text = await page.locator('.shortcuts dd').first().boundingBox();
      t.true((text?.width ?? 0) > 250);
    },
    { width: 390, height: 844 },
  );
});
