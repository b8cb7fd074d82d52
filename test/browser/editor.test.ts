/** Editor assistance: marks, completion, signatures, formatting, parameters and sharing. */
import { readFile } from 'node:fs/promises';

import { statementOf, type ConsolePage } from './console-page.js';
import { browserSuite, picture } from './suite.js';

const { browserTest, onPage, server } = browserSuite('the editor in a browser', {
  args: ['--demo'],
});

const HOURLY =
  'WITH hourly AS (SELECT timestamp AS hour_of, avg(price) AS mean_price ' +
  'FROM trades SAMPLE BY 1h)\n';

/** Types key by key, so that the completion list opens. */
async function type({ page }: ConsolePage, text: string): Promise<void> {
  await page.keyboard.type(text);
}

/** Returns the completion labels, once `label` is among them. */
async function offered({ page }: ConsolePage, label: string): Promise<string[]> {
  const labels = page.locator('.cm-completionLabel');
  await labels.getByText(label, { exact: true }).first().waitFor();
  return await labels.allInnerTexts();
}

browserTest('a syntax error is marked while the statement is typed', async (t) => {
  await onPage(t, async (shown) => {
    const text = 'SELECT 1;\nSELECT 2 FROM WHERE x;\nDELETE 3;\n';
    await shown.write(text);
    const marks = shown.page.locator('.cm-squiggle');
    await marks.nth(1).waitFor();
    t.deepEqual(await marks.allInnerTexts(), ['WHERE', '3']);
    const answer = await fetch(
      `${server().url}/api/v1/sql/validate?query=${encodeURIComponent('SELECT 2 FROM WHERE x')}`,
    );
    const refusal = (await answer.json()) as { error: string; position: number };
    await shown.page.locator('.problem').waitFor();
    await shown.page.keyboard.press('Control+Home');
    await shown.page.keyboard.press('F8');
    const strip = shown.page.locator('.problem');
    await strip.locator('.where', { hasText: `2:${refusal.position + 1}` }).waitFor();
    t.true((await strip.locator('.what').innerText()).startsWith(refusal.error));
    await shown.page.keyboard.press('F8');
    await strip.locator('.where', { hasText: '3:8' }).waitFor();
    await shown.page.keyboard.press('Shift+F8');
    await strip.locator('.where', { hasText: '2:' }).waitFor();
    await shown.screenshot(picture('problems-light'));
    await shown.write('SELECT 1');
    await strip.waitFor({ state: 'detached' });
  });
});

browserTest('the server checks names before anything runs', async (t) => {
  await onPage(t, async (shown) => {
    await shown.write('SELECT symbol, max(prise) FROM trades');
    const mark = shown.page.locator('.cm-squiggle');
    await mark.waitFor();
    t.is(await mark.innerText(), 'prise');
    await shown.page.getByRole('button', { name: 'Replace' }).click();
    t.is(await shown.editor.innerText(), 'SELECT symbol, max(price) FROM trades');
    await shown.page.locator('.problem').waitFor({ state: 'detached' });
  });
});

browserTest('completion offers aliases, CTEs and the columns in scope', async (t) => {
  await onPage(t, async (shown) => {
    await shown.write('SELECT  FROM trades tr');
    await shown.page.keyboard.press('Home');
    await shown.page.keyboard.press('Control+ArrowRight');
    await shown.page.keyboard.press('ArrowRight');
    await type(shown, 'tr.');
    const columns = await offered(shown, 'price');
    t.true(columns.includes('symbol'));
    t.false(columns.includes('SELECT'));
    await shown.page.keyboard.press('Escape');
    await shown.write(`${HOURLY}SELECT * FROM `);
    await type(shown, 'hou');
    t.is((await offered(shown, 'hourly'))[0], 'hourly');
    await shown.page.keyboard.press('Tab');
    await shown.page.keyboard.press('Escape');
    await shown.write(`${HOURLY}SELECT * FROM hourly WHERE `);
    await type(shown, 'mea');
    t.is((await offered(shown, 'mean_price'))[0], 'mean_price');
  });
});

browserTest(
  'completion covers sub-queries, ORDER BY aliases, LATEST, SHOW, FILL, quotes',
  async (t) => {
    await onPage(t, async (shown) => {
      const { page } = shown;
      const first = async (before: string, after: string, label: string): Promise<void> => {
        await shown.write(after);
        await page.keyboard.press('Control+Home');
        await page.keyboard.insertText(before);
        await page.keyboard.press('Control+Space');
        t.is((await offered(shown, label))[0], label, before);
        await page.keyboard.press('Escape');
      };
      await first('SELECT q.', ' FROM (SELECT price pp FROM trades) q', 'pp');
      await first('SELECT pp', ' FROM (SELECT price pp FROM trades)', 'pp');
      await first('SELECT price AS pri2 FROM trades ORDER BY pri', '', 'pri2');
      await first('SELECT * FROM trades LATEST ON ti', '', 'timestamp');
      await first('SHOW COL', '', 'COLUMNS FROM');
      await first('SELECT avg(price) FROM trades SAMPLE BY 1h FILL(P', '', 'PREV');
      await first('SELECT "pri', ' FROM trades', '"price"');
      await first('INSERT INTO trades (ti', '', 'timestamp');
    });
  },
);

browserTest('completion offers symbol values, times, tables in strings, and columns', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const offer = async (before: string, after: string, label: string): Promise<void> => {
      await shown.write(after);
      await page.keyboard.press('Control+Home');
      await page.keyboard.insertText(before);
      await page.keyboard.press('Control+Space');
      t.true((await offered(shown, label)).includes(label), before);
    };
    // Uses the pointer, because keys pressed right after the list opens are treated as text.
    const take = async (label: string): Promise<void> =>
      await page.locator('.cm-completionLabel').getByText(label, { exact: true }).click();
    await offer("SELECT * FROM trades WHERE symbol = 'BT", '', 'BTC-USD');
    await take('BTC-USD');
    t.is(await shown.editor.innerText(), "SELECT * FROM trades WHERE symbol = 'BTC-USD");
    await offer("SELECT * FROM trades t WHERE t.symbol IN ('BTC-USD', 'E", "')", 'ETH-USD');
    await page.keyboard.press('Escape');
    await offer("SELECT * FROM trades WHERE timestamp IN '", "'", '$now - 1h..$now');
    await page.keyboard.press('Escape');
    await offer(
      "SELECT * FROM trades WHERE timestamp >= '20",
      '',
      new Date().toISOString().slice(0, 10),
    );
    await page.keyboard.press('Escape');
    await offer("SELECT * FROM table_columns('tr", "')", 'trades');
    await page.keyboard.press('Escape');
    await offer('SELECT *', ' FROM trades', 'expand * to 5 columns');
    await take('expand * to 5 columns');
    t.is(
      await shown.editor.innerText(),
      'SELECT symbol, side, price, amount, timestamp FROM trades',
    );
    await shown.write("SELECT 'BT");
    await page.keyboard.press('Control+Space');
    await page.waitForTimeout(300);
    t.is(
      await page.locator('.cm-completionLabel').count(),
      0,
      'a string that is compared with no column has no completion',
    );
  });
});

browserTest('completion offers names as soon as they are loaded', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    let answer = (): void => undefined;
    const released = new Promise<void>((resolve) => (answer = resolve));
    await page.route('**/exec?*', async (route) => {
      await released;
      await route.continue();
    });
    await page.reload();
    await shown.editorReady();
    await shown.write('SELECT * FROM ');
    await type(shown, 'tra');
    // By now, completion has requested names and the page has queried the server.
    await page.locator('.side[aria-busy="true"]').waitFor();
    await page.waitForTimeout(500);
    answer();
    t.is((await offered(shown, 'trades'))[0], 'trades');
    await page.unroute('**/exec?*');
  });
});

browserTest('hovering over a function shows its signatures', async (t) => {
  await onPage(t, async (shown) => {
    await shown.write('SELECT dateadd(1) FROM trades');
    await shown.page.locator('.tok-function', { hasText: 'dateadd' }).hover();
    const card = shown.page.locator('.cm-hover-card');
    await card.waitFor();
    t.regex(await card.innerText(), /dateadd\(/);
    t.true((await card.locator('p').innerText()).length > 10);
  });
});

browserTest('a statement is formatted, and formatting can be undone', async (t) => {
  await onPage(t, async (shown) => {
    const text =
      'select symbol,avg(price) as price -- mean\n' +
      "from trades where symbol='BTC-USD' sample by 1h";
    await shown.write(text);
    await shown.page.getByRole('button', { name: 'Format' }).click();
    t.is(
      (await shown.editor.innerText()).trimEnd(),
      'SELECT symbol, avg(price) AS price -- mean\n' +
        "FROM trades\nWHERE symbol = 'BTC-USD'\nSAMPLE BY 1h",
    );
    await shown.page.keyboard.press('Control+Z');
    t.is(await shown.editor.innerText(), text);
  });
});

browserTest('the user is prompted for parameters, and they are sent as values', async (t) => {
  await onPage(t, async (shown) => {
    await shown.write(
      'SELECT symbol, count() AS trades FROM trades WHERE symbol = @sym AND price > $1',
    );
    const bar = shown.page.getByRole('group', { name: 'Statement parameters' });
    await bar.getByLabel('@sym').fill('BTC-USD');
    await bar.getByLabel('$1').fill('0');
    await shown.page.keyboard.press('Enter');
    await shown.page.locator('.summary[data-state="done"]').waitFor();
    t.is((await shown.row(1))[0], 'BTC-USD');
    await bar.getByLabel('@sym').fill("x' OR 'a' = 'a");
    t.is(await shown.run(), 'done');
    t.is(await shown.summary(), '0 rows', 'a value cannot change the statement');
    await shown.screenshot(picture('parameters-light'));
  });
});

browserTest('the palette finds tables, commands and earlier queries', async (t) => {
  await onPage(t, async (shown) => {
    t.is(await shown.query('SELECT 4711 AS earlier'), 'done');
    await shown.page.keyboard.press('Control+K');
    const palette = shown.page.getByRole('dialog', { name: 'Command palette' });
    await palette.getByRole('combobox').fill('4711');
    await palette.getByRole('option', { name: /SELECT 4711/ }).waitFor();
    await shown.page.keyboard.press('Enter');
    t.is(await shown.editor.innerText(), 'SELECT 4711 AS earlier');
    await shown.page.keyboard.press('Control+K');
    await palette.getByRole('combobox').fill('trad');
    t.is(await palette.locator('mark').first().innerText(), 'trad');
    await shown.screenshot(picture('palette-light'));
    await shown.page.keyboard.press('Enter');
    await shown.page.locator('.summary[data-state="done"]').waitFor();
    t.is(await shown.summary(), '1,000 rows');
  });
});

browserTest('line wrapping can be enabled and survives a reload', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await shown.write(`SELECT ${'price, '.repeat(100)}price FROM trades`);
    const height = async (): Promise<number> =>
      (await page.locator('.cm-line').first().boundingBox())?.height ?? 0;
    const low = await height();
    await page.keyboard.press('Alt+z');
    t.true((await height()) > 2 * low);
    await page.reload();
    await shown.ready();
    t.true((await height()) > 2 * low);
    await shown.editor.click();
    await page.keyboard.press('Alt+z');
    t.is(await height(), low);
  });
});

browserTest('bidirectional control characters in a link are made visible', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const text = 'DROP TABLE \u202eesrever;';
    await page.evaluate(`location.href = '#query=${encodeURIComponent(text)}'`);
    const question = page.getByRole('dialog', { name: 'Run the SQL from this link?' });
    await question.getByText('DROP TABLE [U+202E]esrever').waitFor();
    await question.getByRole('button', { name: 'Open without running' }).click();
    t.is(await page.locator('.cm-specialChar').count(), 1);
  });
});

browserTest('a shared link runs queries, and asks before it changes anything', async (t) => {
  await onPage(t, async (shown) => {
    await shown.write('SELECT 42 AS answer');
    await shown.page.keyboard.press('Alt+L');
    await shown.page.locator('.toast').waitFor();
    const link = await shown.page.evaluate<string>('navigator.clipboard.readText()');
    t.true(link.startsWith(`${server().url}/#query=`), link);
    await shown.page.goto(link);
    await shown.page.locator('.summary[data-state="done"]').waitFor();
    t.deepEqual(await shown.row(1), ['42']);
    t.false(shown.page.url().includes('query='), 'the query was removed from the URL');
    const change = encodeURIComponent('CREATE TABLE from_link (x INT);\nDROP TABLE from_link;');
    await shown.page.goto(`${server().url}/#query=${change}`);
    const question = shown.page.getByRole('dialog');
    await question.getByText('CREATE TABLE from_link').waitFor();
    await question.getByRole('button', { name: 'Open without running' }).click();
    t.regex(await shown.editor.innerText(), /CREATE TABLE from_link/);
    t.is(await shown.page.locator('.cm-run-mark:not(.cm-run-ready, [title=""])').count(), 0);
  });
});

browserTest('tabs are renamed, reopened, moved, exported and imported', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const titles = async (): Promise<string[]> => await page.locator('.tab bdi').allInnerTexts();
    await shown.write('SELECT 1 AS one');
    await page.locator('.tab').dblclick();
    await page.keyboard.type('First <b>tab</b>');
    await page.keyboard.press('Enter');
    t.deepEqual(await titles(), ['First <b>tab</b>']);
    await page.keyboard.press('Alt+T');
    await shown.write('SELECT 2 AS two');
    const tabsMenu = page.getByRole('button', { name: 'Tabs', exact: true });
    await tabsMenu.click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name: 'Export all tabs' }).click(),
    ]);
    const path = await download.path();
    const stored = JSON.parse(await readFile(path, 'utf8')) as { tabs: { draft: string }[] };
    t.deepEqual(
      stored.tabs.map(({ draft }) => draft),
      ['SELECT 1 AS one', 'SELECT 2 AS two'],
    );
    await page.keyboard.press('Alt+W');
    t.is((await titles()).length, 1);
    await page.keyboard.press('Alt+Shift+T');
    t.is(await shown.editor.innerText(), 'SELECT 2 AS two');
    await page.locator('.tab[aria-selected="true"]').focus();
    await page.keyboard.press('Alt+ArrowLeft');
    t.is((await titles())[1], 'First <b>tab</b>');
    await tabsMenu.click();
    const [chooser] = await Promise.all([
      page.waitForEvent('filechooser'),
      page.getByRole('menuitem', { name: 'Import tabs' }).click(),
    ]);
    await chooser.setFiles(path);
    await page.locator('.toast', { hasText: '2 tabs imported' }).waitFor();
    t.is((await titles()).length, 4);
    await tabsMenu.click();
    const [again] = await Promise.all([
      page.waitForEvent('filechooser'),
      page.getByRole('menuitem', { name: 'Import tabs' }).click(),
    ]);
    await again.setFiles({
      name: 'x.json',
      mimeType: 'application/json',
      buffer: Buffer.from('{}'),
    });
    await page.locator('.toast', { hasText: 'x.json was not imported' }).waitFor();
    t.is((await titles()).length, 4);
  });
});

browserTest('running a second query asks for confirmation first', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    let release: (() => void) | undefined;
    await page.route('**/exec?*', async (route) => {
      if (!statementOf(route.request()).includes('slow')) {
        await route.continue();
        return;
      }
      await new Promise<void>((resolve) => (release = resolve));
      await route.abort().catch(() => undefined);
    });
    await shown.write('SELECT 1 AS slow');
    await page.keyboard.press('Control+Enter');
    await page.locator('.summary[data-state="running"]').waitFor();
    await shown.write('SELECT 2 AS quick');
    await page.keyboard.press('Control+Enter');
    const question = page.getByRole('dialog');
    await question.getByRole('button', { name: 'Keep running' }).click();
    t.is(await page.locator('.summary').getAttribute('data-state'), 'running');
    await shown.editor.focus();
    await page.keyboard.press('Control+Enter');
    await question.getByRole('button', { name: 'Cancel and run' }).click();
    await page.locator('.summary[data-state="done"]').waitFor();
    t.deepEqual(await shown.columns(), ['quick']);
    release?.();
  });
});

browserTest('a dragged tab keeps its new position', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    const tabs = page.locator('.tab-item');
    const titles = async (): Promise<string[]> => await page.locator('.tab bdi').allInnerTexts();
    await page.keyboard.press('Alt+T');
    await page.keyboard.press('Alt+T');
    t.deepEqual(await titles(), ['Query 1', 'Query 2', 'Query 3']);
    await page.locator('.tab').first().dragTo(tabs.nth(2));
    t.deepEqual(await titles(), ['Query 2', 'Query 3', 'Query 1']);
    await page.locator('.tab').nth(1).dragTo(tabs.first());
    t.deepEqual(await titles(), ['Query 3', 'Query 2', 'Query 1']);
    await shown.reload();
    t.deepEqual(await titles(), ['Query 3', 'Query 2', 'Query 1']);
  });
});

browserTest('running closes the completion list, so that Enter inserts a line break', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await shown.write('SELECT * FROM ');
    await type(shown, 'trades');
    await offered(shown, 'trades');
    await page.keyboard.press('Control+Enter');
    await page.locator('.summary[data-state="done"]').waitFor();
    t.is(await page.locator('.cm-tooltip-autocomplete').count(), 0);
    await page.keyboard.press('Enter');
    await type(shown, 'LIMIT 1');
    t.is(await shown.editor.innerText(), 'SELECT * FROM trades\nLIMIT 1');
  });
});

browserTest('lines are commented and uncommented', async (t) => {
  await onPage(t, async (shown) => {
    const { page } = shown;
    await shown.write('SELECT 1;\nSELECT 2;');
    await page.keyboard.press('Control+A');
    await page.keyboard.press('Control+/');
    t.is(await shown.editor.innerText(), '-- SELECT 1;\n-- SELECT 2;');
    await page.keyboard.press('Control+/');
    t.is(await shown.editor.innerText(), 'SELECT 1;\nSELECT 2;');
  });
});
