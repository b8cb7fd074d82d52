/** Importing files by drag and drop or by dialog. */
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { startTestServer } from '../golden/server.js';
import { until } from '../until.js';
import { seriousViolations } from './axe.js';
import { ConsolePage, launchBrowser } from './console-page.js';
import { browserSuite, inEveryTheme, picture } from './suite.js';

const { browserTest, onPage, rows, server } = browserSuite('imports in a browser');

/** Passes a file to the page as the file dialog would. */
async function choose(shown: ConsolePage, name: string, text: string): Promise<void> {
  const buffer = Buffer.from(text);
  const input = shown.page.locator('input[type="file"]');
  await input.setInputFiles({ name, mimeType: 'text/csv', buffer });
}

function weather(count: number): string {
  const lines = ['city,ts,temperature,wind speed'];
  for (let row = 0; row < count; row += 1) {
    const at = new Date(Date.UTC(2026, 0, 1) + row * 60_000).toISOString().replace('Z', '000Z');
    const temperature = row % 40 === 7 ? 'bad' : (row % 300) / 10;
    lines.push(`${row % 2 === 0 ? 'Oslo' : 'Rome'},${at},${temperature},${row % 20}`);
  }
  return `${lines.join('\n')}\n`;
}

browserTest('a file is previewed, adjusted, imported and opened', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await choose(shown, 'weather.csv', weather(1000));
      await page.getByLabel('Type of city').waitFor();
      t.is(await page.getByLabel('Table', { exact: true }).inputValue(), 'weather');
      t.is(await page.getByLabel('Time column').inputValue(), 'ts');
      t.is(await page.getByLabel('Partition by').inputValue(), 'DAY');
      t.is(await page.locator('.import-columns tbody th').nth(3).innerText(), 'wind speed');
      t.is(await page.getByLabel('Name of wind speed').inputValue(), 'windSpeed');
      t.regex(await page.locator('.near').innerText(), /25 of 999 values in temperature/);
      await inEveryTheme(shown, async (theme) => {
        await shown.screenshot(picture(`import-${theme}`));
      });
      await page.getByRole('button', { name: 'Read as DOUBLE' }).click();
      await page.getByLabel('Type of city').selectOption('SYMBOL');
      await page.getByLabel('Name of wind speed').fill('wind');
      await page.getByLabel('Name of ts').fill('at');
      await page.locator('[data-action="import"]').click();
      await page.getByRole('heading', { name: 'weather.csv was imported' }).waitFor();
      t.regex(await page.locator('.import-report').innerText(), /1,000 rows into weather/);
      t.regex(await page.locator('.import-report table').innerText(), /temperature\s+25/);
      await page.getByRole('button', { name: 'Show lines of temperature' }).click();
      const lines = page.locator('.bad-lines li');
      await lines.first().waitFor();
      t.is(await lines.count(), 11);
      t.is(
        await lines.first().innerText(),
        'Line 9: bad syntax, bad\nRome,2026-01-01T00:07:00.000000Z,bad,7',
      );
      t.is(await lines.last().innerText(), 'The first 10 of 25.');
      await inEveryTheme(shown, async (theme) => {
        t.deepEqual(await seriousViolations(page), []);
        await shown.screenshot(picture(`import-lines-${theme}`));
      });
      t.deepEqual(await rows('SELECT "column", type FROM table_columns(\'weather\')'), [
        ['city', 'SYMBOL'],
        ['at', 'TIMESTAMP'],
        ['temperature', 'DOUBLE'],
        ['wind', 'INT'],
      ]);
      await page.getByRole('button', { name: 'Show rows' }).click();
      await page.locator('.summary[data-state="done"]').waitFor();
      t.is(await shown.summary(), '1,000 rows');
    },
    { page: 'import' },
  );
});

browserTest(
  'inferred types are shown before and after an import; gzip is sent unchanged',
  async (t) => {
    await onPage(
      t,
      async (shown) => {
        const { page } = shown;
        const lines = Array.from({ length: 1200 }, (_, at) => `0${1000 + at};${at};1771150830`);
        await choose(shown, 'codes.csv', `zip;n;at\n${lines.join('\n')}\n04321;1.5;1771150831\n`);
        await page.getByLabel('Type of zip').waitFor();
        t.is(await page.getByLabel('Type of at').inputValue(), 'TIMESTAMP');
        t.regex(
          await page.locator('.import-columns').innerText(),
          /seconds since 1970: 999 of 999 read/,
        );
        t.regex(await page.locator('.near').innerText(), /zip is kept as text, because of '01000'/);
        await page.locator('[data-action="import"]').click();
        await page.getByRole('heading', { name: 'codes.csv was imported' }).waitFor();
        const report = await page.locator('.import-report').innerText();
        t.regex(report, /'zip': kept as text/);
        t.regex(report, /'n': DOUBLE instead of INT, because of '1.5' in line 1202/);
        t.deepEqual(await rows('SELECT zip, n, at FROM codes ORDER BY at DESC LIMIT 1'), [
          ['04321', 1.5, '2026-02-15T10:20:31.000000Z'],
        ]);
        await page.getByRole('button', { name: 'Remove from list' }).click();
        const json = gzipSync('{"city":"Oslo","v":1}\n{"city":"Rome","v":2}\n');
        const input = page.locator('input[type="file"]');
        const file = { name: 'cities.json.gz', mimeType: 'application/gzip', buffer: json };
        await input.setInputFiles(file);
        await page.getByLabel('Type of city').waitFor();
        t.true(await page.getByLabel('Name of city').isDisabled());
        await page.locator('[data-action="import"]').click();
        await page.getByRole('heading', { name: 'cities.json.gz was imported' }).waitFor();
        t.deepEqual(await rows("SELECT city, v FROM 'cities'"), [
          ['Oslo', 1],
          ['Rome', 2],
        ]);
      },
      { page: 'import' },
    );
  },
);

browserTest('malformed lines and markup are shown as plain text', async (t) => {
  await rows('CREATE TABLE measured (name SYMBOL, n INT)');
  await rows("INSERT INTO measured VALUES ('w', 0)");
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      const good = 'v;5\r\n'.repeat(1000);
      const bad = '"a;\r\nb";1\r\nx;<img src=x>\r\n"y";2;3\r\nz;4\r\n';
      await choose(shown, 'measured.csv', `\uFEFFname;n\r\n${good}${bad}`);
      await page.getByText('exists, 1 row').waitFor();
      await page.locator('[data-action="import"]').click();
      await page.getByRole('heading', { name: 'measured.csv was imported' }).waitFor();
      await page.getByRole('button', { name: 'Show lines of skipped rows' }).click();
      await page.getByRole('button', { name: 'Show lines of n', exact: true }).click();
      await page.locator('.bad-lines').nth(1).waitFor();
      t.deepEqual(await page.locator('.bad-lines li').allInnerTexts(), [
        'Line 1,005: 3 fields, expected 2\n"y";2;3',
        'Line 1,004: bad syntax, <img src=x>\nx;<img src=x>',
      ]);
      t.is(await page.locator('.import-report img').count(), 0);
    },
    { page: 'import' },
  );
});

browserTest('imported rows are appended to a table or replace its rows', async (t) => {
  await rows('CREATE TABLE known (city SYMBOL, v LONG)');
  await rows("INSERT INTO known VALUES ('Bern', 1)");
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      const go = async (): Promise<void> => {
        await page.locator('[data-action="import"]').click();
        await page.getByRole('heading', { name: 'was imported' }).waitFor();
        await page.getByRole('button', { name: 'Remove from list' }).click();
      };
      await choose(shown, 'more.csv', 'city;v;extra\nOslo;2;x\nRome;3;y\nRome;4;z\n');
      await page.getByLabel('Table', { exact: true }).fill('known');
      await page.getByText('exists, 1 row').waitFor();
      t.regex(await page.locator('.import-columns').innerText(), /not in the table, skipped/);
      await page.getByRole('button', { name: 'Overwrite' }).click();
      await go();
      t.deepEqual(await rows('SELECT * FROM known'), [
        ['Oslo', 2, 'x'],
        ['Rome', 3, 'y'],
        ['Rome', 4, 'z'],
      ]);
      await choose(shown, 'known.csv', 'v,city\n5,Riga\n6,Graz\n7,Linz\n');
      await page.getByText('exists, 3 rows').waitFor();
      await go();
      t.deepEqual(await rows('SELECT city, v FROM known WHERE v > 4'), [
        ['Riga', 5],
        ['Graz', 6],
        ['Linz', 7],
      ]);
    },
    { page: 'import' },
  );
});

browserTest('invalid files are reported, and nothing is written', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      const tables = await rows('SELECT count() FROM tables()');
      await choose(shown, 'empty.csv', '');
      await page.getByText('empty.csv is empty (0 bytes). Nothing was written.').last().waitFor();
      await choose(shown, 'twice.csv', 'a,a\n1,2\n3,4\n5,6\n');
      await page
        .locator('.import-pane', { hasText: 'Column 2 has the same name as an earlier column: a.' })
        .waitFor();
      await choose(shown, '<img src=x onerror=alert(1)>.csv', '\u0000\u0001\u0002');
      await page
        .locator('.import-pane', { hasText: 'The file has fewer than two lines.' })
        .waitFor();
      t.is(await page.locator('.import img').count(), 0);
      await shown.screenshot(picture('import-refused-light'));
      t.deepEqual(await rows('SELECT count() FROM tables()'), tables);
    },
    { page: 'import' },
  );
});

browserTest('a byte order mark, quotes and a one-line file are accepted', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      const text = '\uFEFFname,"said, twice",n\r\n"O""Neil","a\r\nb, c",1\r\nplain,,2\r\n';
      await choose(shown, 'quoted.csv', text);
      await page.getByLabel('Name of name').waitFor();
      await page.locator('[data-action="import"]').click();
      await page.getByRole('heading', { name: 'quoted.csv was imported' }).waitFor();
      t.deepEqual(await rows('SELECT name, n FROM quoted'), [
        ['O"Neil', 1],
        ['plain', 2],
      ]);
      t.deepEqual(await rows('SELECT saidTwice FROM quoted'), [['a\r\nb, c'], [null]]);
      await choose(shown, 'line.csv', '1,2.5,x');
      await page
        .locator('.import-pane', { hasText: 'The file has fewer than two lines.' })
        .waitFor();
    },
    { page: 'import' },
  );
});

browserTest('an import can be stopped, and continues while other pages are open', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await page.route('**/imp?*', async (route) => {
        await new Promise((resolve) => setTimeout(resolve, 1500));
        await route.continue().catch(() => undefined);
      });
      await choose(shown, 'stopped.csv', weather(2000));
      await page.locator('[data-action="import"]').click();
      await page.getByRole('button', { name: 'Stop import' }).click();
      await page.getByText('Stopped. Nothing was written.').last().waitFor();
      await choose(shown, 'kept.csv', weather(2000));
      await page.locator('[data-action="import"]', { hasText: 'kept.csv' }).click();
      await shown.go('SQL workspace');
      await shown.page.locator('.rail-mark').waitFor();
      await shown.page.locator('.rail-mark').waitFor({ state: 'detached' });
      await shown.go('Import');
      await page.getByText('2,000 rows').first().waitFor();
      const names = await rows(
        "SELECT table_name FROM tables() WHERE table_name IN ('stopped', 'kept')",
      );
      t.deepEqual(names, [['kept']]);
    },
    { page: 'import' },
  );
});

browserTest('the page reports that an import completed before it could be stopped', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      // The server writes the rows, but its response is lost.
      await page.route('**/imp?*', async (route) => {
        await route.fetch();
      });
      for (const count of [20, 40]) {
        await choose(shown, 'faster.csv', weather(20));
        await page.locator('[data-action="import"]').click();
        const written = `SELECT count() FROM tables() WHERE table_name = 'faster'`;
        while ((await rows(written))[0]?.[0] === 0) {
          await page.waitForTimeout(50);
        }
        while ((await rows('SELECT count() FROM faster'))[0]?.[0] !== count) {
          await page.waitForTimeout(50);
        }
        await page.getByRole('button', { name: 'Stop import' }).click();
        const message = `faster was changed before the import stopped: it now has ${count} rows.`;
        await page.locator('.import-note', { hasText: message }).waitFor();
        await page.getByRole('button', { name: 'Remove from list' }).click();
      }
    },
    { page: 'import' },
  );
});

browserTest('an unreachable server does not reset the import settings', async (t) => {
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await choose(shown, 'later.csv', weather(50));
      await page.getByLabel('Name of ts').fill('at');
      await page.route('**/imp?*', (route) => route.abort());
      await page.locator('[data-action="import"]').click();
      await page.getByText('The server is not responding. Nothing was written.').last().waitFor();
      t.is(await page.getByLabel('Name of ts').inputValue(), 'at');
      await page.unroute('**/imp?*');
      await page.locator('[data-action="import"]').click();
      await page.getByRole('heading', { name: 'later.csv was imported' }).waitFor();
      // The browser logs the aborted request.
      shown.complaints.length = 0;
    },
    { page: 'import' },
  );
});

browserTest('a Parquet file is previewed by the server and imported as a table', async (t) => {
  const query =
    "SELECT x AS n, 'k' || x % 3 AS k, timestamp_sequence(0, 1000000) AS at " +
    'FROM long_sequence(500)';
  const exported = await fetch(
    `${server().url}/exp?fmt=parquet&query=${encodeURIComponent(query)}`,
  );
  const buffer = Buffer.from(await exported.arrayBuffer());
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      const go = async (): Promise<void> => {
        const input = page.locator('input[type="file"]');
        await input.setInputFiles({ name: 'made.parquet', mimeType: '', buffer });
        await page.getByLabel('Name of n').waitFor();
      };
      await go();
      t.is(await page.getByLabel('Time column').inputValue(), 'at');
      await page.getByLabel('Name of n').fill('number');
      await page.getByLabel('Type of k').selectOption('SYMBOL');
      await page.locator('[data-action="import"]').click();
      await page.getByRole('heading', { name: 'made.parquet was imported' }).waitFor();
      t.deepEqual(await rows('SELECT "column", type FROM table_columns(\'made\')'), [
        ['number', 'LONG'],
        ['k', 'SYMBOL'],
        ['at', 'TIMESTAMP'],
      ]);
      await page.getByRole('button', { name: 'Remove from list' }).click();
      await go();
      await page.getByText('exists, 500 rows').waitFor();
      await page.getByRole('button', { name: 'Overwrite' }).click();
      await page.locator('[data-action="import"]').click();
      await page.getByRole('heading', { name: 'made.parquet was imported' }).waitFor();
      t.deepEqual(await rows('SELECT count(), sum(n) FROM made'), [[500, 125_250]]);
      const left = async (): Promise<number> =>
        (await readdir(join(server().root, 'import', 'upload'))).length;
      await until(async () => (await left()) === 0, 'the uploaded file is deleted');
    },
    { page: 'import' },
  );
});

const LARGE_MIB = Number(process.env['TIDEMARK_IMPORT_MIB'] ?? 64);

/** Writes a large CSV file chunk by chunk and resolves to the number of rows in it. */
async function writeLarge(path: string): Promise<number> {
  const line = `Oslo,2026-01-01T00:00:00.000000Z,1.25,${'x'.repeat(216)}\n`;
  const chunk = line.repeat(Math.floor((1024 * 1024) / line.length));
  const file = await open(path, 'w');
  await file.write('city,ts,temperature,note\n');
  for (let written = 0; written < LARGE_MIB; written += 1) {
    await file.write(chunk);
  }
  await file.close();
  return LARGE_MIB * (chunk.length / line.length);
}

browserTest(
  'a large file is streamed with progress, a stop button and bounded memory',
  async (t) => {
    t.timeout(600_000);
    const path = join(server().root, 'large.csv');
    const count = await writeLarge(path);
    await onPage(
      t,
      async (shown) => {
        const { page } = shown;
        const session = await page.context().newCDPSession(page);
        // Slow enough to observe progress, but fast enough to upload the whole file.
        const upload = (mib: number): Promise<unknown> =>
          session.send('Network.emulateNetworkConditions', {
            offline: false,
            latency: 0,
            downloadThroughput: -1,
            uploadThroughput: mib * 1024 * 1024,
          });
        const heap = async (): Promise<number> => {
          await session.send('HeapProfiler.collectGarbage');
          return (await session.send('Runtime.getHeapUsage')).usedSize;
        };
        await upload(LARGE_MIB / 8);
        await page.locator('input[type="file"]').setInputFiles(path);
        const start = page.locator('[data-action="import"]');
        await start.waitFor();
        const before = await heap();
        await start.click();
        const bar = page.locator('.import-progress progress');
        const seen = new Set<number>();
        while (seen.size < 4) {
          seen.add(Number(await bar.getAttribute('value')));
          await page.waitForTimeout(100);
        }
        t.true(
          (await heap()) - before < 16 * 1024 * 1024,
          'the page does not hold the file in memory',
        );
        await page.getByRole('button', { name: 'Stop import' }).click();
        await page.getByText('Stopped. Nothing was written.').last().waitFor();
        t.deepEqual(await rows("SELECT count() FROM tables() WHERE table_name = 'large'"), [[0]]);
        await upload(-1);
        await start.click();
        await page.getByRole('heading', { name: 'was imported' }).waitFor({ timeout: 500_000 });
        t.deepEqual(await rows('SELECT count() FROM large'), [[count]]);
        t.true(
          (await heap()) - before < 16 * 1024 * 1024,
          'the page does not hold the file in memory afterwards',
        );
      },
      { page: 'import' },
    );
  },
);

browserTest('stopping a Parquet import cancels its statement on the server', async (t) => {
  t.timeout(300_000);
  // The result compresses well and takes a long time to write.
  const query =
    'SELECT x % 7 AS a, x % 11 AS b, x % 13 AS c, x % 17 AS d FROM long_sequence(30000000)';
  const exported = await fetch(
    `${server().url}/exp?fmt=parquet&query=${encodeURIComponent(query)}`,
  );
  const path = join(server().root, 'long.parquet');
  const file = await open(path, 'w');
  await file.write(Buffer.from(await exported.arrayBuffer()));
  await file.close();
  const running = async (): Promise<unknown[][]> =>
    await rows("SELECT query_id FROM query_activity() WHERE query LIKE 'CREATE TABLE long AS%'");
  await onPage(
    t,
    async (shown) => {
      const { page } = shown;
      await page.locator('input[type="file"]').setInputFiles(path);
      await page.getByLabel('Name of a').waitFor();
      // Converting the columns to strings makes the import even slower.
      for (const name of ['a', 'b', 'c', 'd']) {
        await page.getByLabel(`Type of ${name}`, { exact: true }).selectOption('VARCHAR');
      }
      await page.locator('[data-action="import"]').click();
      while ((await running()).length === 0) {
        await page.waitForTimeout(20);
      }
      await page.getByRole('button', { name: 'Stop import' }).click();
      await page.getByText('Stopped. Nothing was written.').last().waitFor();
      while ((await running()).length > 0) {
        await page.waitForTimeout(50);
      }
      t.deepEqual(await rows("SELECT count() FROM tables() WHERE table_name = 'long'"), [[0]]);
    },
    { page: 'import' },
  );
});

browserTest('a read-only server is reported before the user chooses a file', async (t) => {
  const closed = await startTestServer({ set: ['http.security.readonly=true'] });
  const browser = await launchBrowser();
  try {
    const shown = await ConsolePage.open(browser, closed.url, { page: 'import' });
    await shown.page.getByText('This server is read-only').waitFor();
    t.is(await shown.page.locator('input[type="file"]').count(), 0);
    t.is(await shown.page.locator('.status').getByText('Read-only').count(), 1);
    await shown.screenshot(picture('read-only-light'));
    await shown.page.evaluate('location.hash = "start"');
    await shown.page.getByText('Connect a client').waitFor();
    t.is(await shown.page.locator('[data-action="demo"]').count(), 0);
    await shown.go('SQL workspace');
    t.is(await shown.query('CREATE TABLE refused (x INT)'), 'failed');
    t.regex(await shown.page.locator('.outcome-message').innerText(), /read-only|read only/);
    t.is(await shown.query('SELECT 1'), 'done');
    // The browser logs the refused statement.
    t.deepEqual(
      shown.complaints.filter((text) => !text.includes('status of 403')),
      [],
    );
  } finally {
    await browser.close();
    await closed.stop();
  }
});
