/** Two console windows in one browser. Neither window loses the other's edits. */
import type { ConsolePage } from './console-page.js';
import { browserSuite } from './suite.js';

const { browserTest, onPage } = browserSuite('two windows of the console');

const SAVED_MS = 1000;

async function saved(shown: ConsolePage): Promise<void> {
  await shown.page.waitForTimeout(SAVED_MS);
}

const draftsOf = async (shown: ConsolePage): Promise<string[]> => {
  const drafts: string[] = [];
  const tabs = shown.page.locator('.tab');
  for (let index = 0; index < (await tabs.count()); index += 1) {
    await tabs.nth(index).click();
    drafts.push((await shown.editor.innerText()).trim());
  }
  return drafts;
};

browserTest('edits from two windows are merged', async (t) => {
  await onPage(t, async (first) => {
    const second = await first.another();
    await first.page.keyboard.press('Alt+T');
    await first.write('SELECT 1 AS important');
    await saved(first);
    await second.write('SELECT 2 AS other');
    await saved(second);
    await first.page.close();
    const later = await second.another();
    await second.page.close();
    t.deepEqual(await draftsOf(later), ['SELECT 2 AS other', 'SELECT 1 AS important']);
  });
});

browserTest("a tab's text, name, position and closing are synced across windows", async (t) => {
  await onPage(t, async (first) => {
    const second = await first.another();
    await second.write('SELECT 1');
    await first.page.locator('.cm-content', { hasText: 'SELECT 1' }).waitFor();
    await second.page.keyboard.press('Alt+T');
    await first.page.locator('.tab').nth(1).waitFor();
    t.is(await first.editor.innerText(), 'SELECT 1', 'the window keeps its active tab');
    await second.page.locator('.tab').nth(1).dblclick();
    await second.page.keyboard.insertText('Second');
    await second.page.keyboard.press('Enter');
    await first.page.locator('.tab', { hasText: 'Second' }).waitFor();
    await second.page.keyboard.press('Alt+W');
    await first.page.locator('.tab').nth(1).waitFor({ state: 'detached' });
    t.is(await first.page.locator('.tab').count(), 1);
  });
});

browserTest("text typed before a window closes is kept with the other window's text", async (t) => {
  await onPage(t, async (first) => {
    const second = await first.another();
    await first.page.keyboard.press('Alt+T');
    await first.write('SELECT 1 AS last');
    await first.page.close({ runBeforeUnload: false });
    await second.write('SELECT 2 AS here');
    await saved(second);
    await second.reload();
    t.deepEqual(await draftsOf(second), ['SELECT 2 AS here', 'SELECT 1 AS last']);
  });
});

browserTest('tabs in the old single-record format are migrated once', async (t) => {
  await onPage(t, async (shown) => {
    const address = shown.page.url();
    // A page of the same origin other than the console.
    await shown.page.goto(new URL('/settings', address).href);
    await shown.page.evaluate(`new Promise((resolve, reject) => {
      const opened = indexedDB.open('tidemark', 1);
      opened.onsuccess = () => {
        const store = opened.result.transaction('workspace', 'readwrite').objectStore('workspace');
        store.clear();
        store.put({ active: 'b', closed: [{ id: 'c', title: 'Gone', draft: 'SELECT 3' }], tabs: [
          { id: 'a', title: 'One', draft: 'SELECT 1' },
          { id: 'b', title: 'Two', draft: 'SELECT 2' },
        ] }, 'tabs').onsuccess = resolve;
      };
      opened.onerror = reject;
    })`);
    await shown.page.evaluate('sessionStorage.clear(); localStorage.clear()');
    await shown.page.goto(address);
    await shown.ready();
    t.is(await shown.editor.innerText(), 'SELECT 2');
    t.deepEqual(await shown.page.locator('.tab bdi').allInnerTexts(), ['One', 'Two']);
    await shown.page.keyboard.press('Alt+Shift+T');
    t.is(await shown.editor.innerText(), 'SELECT 3');
    await saved(shown);
    await shown.reload();
    t.deepEqual(await shown.page.locator('.tab bdi').allInnerTexts(), ['One', 'Two', 'Gone']);
  });
});
