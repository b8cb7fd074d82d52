/**
 * End to end on real input: 2 M trades and 2 M quotes from the benchmark kit are imported through
 * `/imp` and queried with SAMPLE BY, ASOF JOIN, `/exp` and `read_parquet`. They survive kill -9
 * during a second import, and are read again through psycopg.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';

const ROWS = 2_000_000;
const MAX_IMPORT_RSS_BYTES = 600 * 1024 * 1024;
const repository = fileURLToPath(new URL('../../..', import.meta.url));
const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'tidemark');
const data = join(cache, 'bench-data');
const run = promisify(execFile);

interface Answer {
  readonly dataset: readonly (readonly unknown[])[];
  readonly count: number;
}

async function python(script: readonly string[]): Promise<string> {
  const { stdout } = await run('python3', [...script], { maxBuffer: 1 << 26 });
  return stdout;
}

/**
 * Returns the kit's files, which are generated once and cached; `undefined` if the required Python
 * packages are missing.
 */
async function generateData(): Promise<string | undefined> {
  const folder = join(data, 'small');
  const isThere = await stat(join(folder, 'meta.json')).catch(() => undefined);
  if (isThere === undefined) {
    const generator = join(repository, 'test', 'bench', 'gen.py');
    try {
      await python(['-c', 'import numpy, pyarrow']);
    } catch {
      return undefined;
    }
    await python([generator, '--size', 'small', '--only', 'trades,quotes', '--out', data]);
  }
  return folder;
}

async function curl(args: readonly string[]): Promise<string> {
  const { stdout } = await run('curl', ['-sS', ...args], { maxBuffer: 1 << 26 });
  return stdout;
}

async function exec(server: TestServer, query: string): Promise<Answer> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  const text = await response.text();
  if (response.status !== 200) {
    throw new Error(`${query}: ${text}`);
  }
  return JSON.parse(text) as Answer;
}

async function value(server: TestServer, query: string): Promise<unknown> {
  return (await exec(server, query)).dataset[0]?.[0];
}

async function peakRss(server: TestServer): Promise<number> {
  const { stdout } = await run('grep', ['VmHWM', `/proc/${String(server.process.pid)}/status`]);
  return Number(/(\d+) kB/.exec(stdout)?.[1]) * 1024;
}

async function importFile(server: TestServer, path: string, name: string): Promise<unknown> {
  const url = `${server.url}/imp?name=${name}&timestamp=ts&partitionBy=DAY&fmt=json`;
  return JSON.parse(await curl(['-F', `data=@${path}`, url]));
}

async function exportAndReadBack(t: ExecutionContext, server: TestServer): Promise<void> {
  const query = encodeURIComponent('trades');
  const csv = join(server.root, 'trades.csv');
  await curl(['-o', csv, `${server.url}/exp?query=${query}`]);
  const { stdout } = await run('wc', ['-l', csv]);
  t.is(Number(stdout.trim().split(' ')[0]), ROWS + 1, 'the export has the header and all rows');

  const parquet = join(server.root, 'import', 'trades.parquet');
  await curl(['-o', parquet, `${server.url}/exp?query=${query}&fmt=parquet`]);
  const bounds = 'count() c, min(ts) lo, max(ts) hi, min(price) p, max(amount) a';
  const stored = await exec(server, `select ${bounds} from trades`);
  const read = await exec(server, `select ${bounds} from read_parquet('trades.parquet')`);
  t.deepEqual(read.dataset, stored.dataset);
  // Two workers add up the values in a different order than one worker, so the sums differ in their
  // last digits.
  const sum = 'select sum(price) + sum(amount) s from';
  const difference =
    Number(await value(server, `${sum} read_parquet('trades.parquet')`)) -
    Number(await value(server, `${sum} trades`));
  t.true(Math.abs(difference) < 1e-3, `the sums differ by ${difference}`);
  const few = 'symbol, side, price, amount';
  const sample = 'where price > 3000 order by ts, symbol, price, amount limit 50';
  t.deepEqual(
    (await exec(server, `select ts, ${few} from read_parquet('trades.parquet') ${sample}`)).dataset,
    (await exec(server, `select ts, ${few} from trades ${sample}`)).dataset,
  );
}

/** Starts an upload, waits until half of it has been sent, then kills the server. */
async function killDuringImport(server: TestServer, path: string): Promise<void> {
  const { size } = await stat(path);
  const url = `${server.url}/imp?name=trades&timestamp=ts&partitionBy=DAY&fmt=json`;
  const upload = spawn('curl', ['-sS', '--limit-rate', '40M', '-F', `data=@${path}`, url]);
  await new Promise((resolve) => setTimeout(resolve, Math.min(1500, size / 80_000)));
  server.process.kill('SIGKILL');
  await Promise.all([once(upload, 'exit'), once(server.process, 'exit')]);
}

async function throughPsycopg(server: TestServer, sql: string): Promise<unknown> {
  const [host, port] = server.pg.split(':');
  const script = [
    'import psycopg, sys, json',
    `c = psycopg.connect(host='${host ?? ''}', port=${port ?? ''}, user='admin',`,
    "                    password='quest', dbname='qdb', autocommit=True)",
    'rows = c.execute(sys.argv[1]).fetchall()',
    'print(json.dumps([[str(v) if not isinstance(v, (int, float)) else v for v in r]',
    '                  for r in rows]))',
  ].join('\n');
  return JSON.parse(await python(['-c', script, sql]));
}

test('2 M trades are imported, queried and exported, and survive a kill', async (t) => {
  t.timeout(600_000);
  const folder = await generateData();
  if (folder === undefined) {
    t.log('SKIPPED: python3 with numpy and pyarrow, which the kit needs, is not installed');
    t.pass();
    return;
  }
  const root = await mkdtemp(join(tmpdir(), 'tidemark-scenario-'));
  let server = await startTestServer({ root });
  t.teardown(async () => {
    await server.stop();
    await rm(root, { recursive: true, force: true });
  });

  const trades = join(folder, 'trades.csv');
  const report = await importFile(server, trades, 'trades');
  t.like(report, { status: 'OK', rowsImported: ROWS, rowsRejected: 0, timestamp: 'ts' });
  const rss = await peakRss(server);
  t.true(rss < MAX_IMPORT_RSS_BYTES, `peak RSS during the import is ${rss} bytes`);
  t.is(await value(server, 'select count() from trades'), ROWS);

  const bars = await exec(
    server,
    `select ts, symbol, first(price) o, max(price) h, min(price) l, last(price) c
     from trades sample by 1h fill(prev)`,
  );
  const hours = await exec(server, 'select ts, count() from trades sample by 1h');
  t.is(bars.dataset.length, hours.dataset.length * 100, 'every hour has a row for every symbol');
  t.is(bars.dataset.filter((row) => Number(row[3]) < Number(row[4])).length, 0);
  const all = hours.dataset.reduce((sum, row) => sum + Number(row[1]), 0);
  t.is(all, ROWS);

  t.like(await importFile(server, join(folder, 'quotes.csv'), 'quotes'), { status: 'OK' });
  const joined = await exec(
    server,
    `select count() n, count(q.bid) matched, avg(t.price - q.bid) spread
     from trades t asof join quotes q on (symbol)`,
  );
  t.is(joined.dataset[0]?.[0], ROWS);
  t.true(Number(joined.dataset[0]?.[1]) > ROWS * 0.99);

  await exportAndReadBack(t, server);

  await killDuringImport(server, trades);
  server = await startTestServer({ root });
  t.is(
    await value(server, 'select count() from trades'),
    ROWS,
    'no row of the second import exists',
  );
  const counted = 'select symbol, count() n from trades order by symbol limit 5';
  const overHttp = (await exec(server, counted)).dataset;
  try {
    await python(['-c', 'import psycopg']);
  } catch {
    t.log('SKIPPED: psycopg is not installed');
    return;
  }
  t.deepEqual(await throughPsycopg(server, counted), overHttp);
});

test('an import aborted at any byte leaves no rows', async (t) => {
  const server = await startTestServer();
  t.teardown(() => server.stop());
  const file = join(server.root, 'cut.csv');
  const lines = Array.from(
    { length: 20_000 },
    (_, i) => `2024-01-01T00:00:00.${i + 100_000}Z,${i}`,
  );
  await writeFile(file, `ts,x\n${lines.join('\n')}\n`);
  await copyFile(file, join(server.root, 'import', 'cut.csv'));
  const url = `${server.url}/imp?name=cut&timestamp=ts&partitionBy=DAY&fmt=json`;
  for (const seconds of ['0.05', '0.15', '0.3']) {
    const upload = ['-F', `data=@${file}`, '--limit-rate', '400k', '--max-time', seconds, url];
    await t.throwsAsync(curl(upload));
  }
  const tables = await exec(server, "select table_name from tables() where table_name = 'cut'");
  t.is(tables.dataset.length, 0);
});
