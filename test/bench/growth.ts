/**
 * npm run growth-speed -- [--sizes 2,20,100] [--runs N] [--only PART]
 *
 * Measures how query costs grow: nanoseconds per row on tables of 2, 20 and 100 M rows of equal
 * density (667,000 rows per day, 100 symbols), and milliseconds for queries that read a day or the
 * last rows. Also compares a million rows in one commit with the same rows in commits of 10,000.
 * The tables are queried in turn; the minimum and median of the runs are shown. 100 M rows need
 * about 11 GB of disk and as much page cache.
 */
import { parseArgs } from 'node:util';

import { startTestServer } from '../golden/server.js';
import { exec } from '../torture/client.js';

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '2,20,100' },
    runs: { type: 'string', default: '7' },
    only: { type: 'string', default: '' },
  },
});
const millions = values.sizes.split(',').map(Number);
const runs = Number(values.runs);
const ROWS_PER_DAY = 666_667;
const GAP_MICROS = Math.round(86_400e6 / ROWS_PER_DAY);
const LOAD_MS = 900_000;
const COMMITS = 10_000;
const ROWS_PER_COMMIT = 100;

interface Item {
  readonly name: string;
  /**
   * `#` stands for the table size, which is part of the table names. `{}` stands for a different
   * number in each run, for queries whose results are cached by value.
   */
  readonly text: string;
}

/** Queries that read every row of their tables: nanoseconds per row should stay constant. */
const OF_EVERY_ROW: readonly Item[] = [
  { name: 'sum', text: 'SELECT sum(price) FROM t#' },
  { name: 'two sums', text: 'SELECT sum(price), sum(amount) FROM t#' },
  { name: 'BETWEEN', text: 'SELECT count(*), sum(amount) FROM t# WHERE price BETWEEN 20 AND 40' },
  { name: 'one symbol', text: "SELECT count(*), sum(price) FROM t# WHERE symbol = 'SYM{}'" },
  { name: 'GROUP BY symbol', text: 'SELECT symbol, avg(price) FROM t# GROUP BY symbol' },
  { name: 'SAMPLE BY 1h', text: 'SELECT ts, avg(price) FROM t# SAMPLE BY 1h' },
  {
    name: 'SAMPLE BY 1h by symbol',
    text: 'SELECT count(*), sum(a) FROM (SELECT ts, symbol, avg(price) a FROM t# SAMPLE BY 1h)',
  },
  {
    name: 'average of 20 rows',
    text: `SELECT count(*), sum(m) FROM (SELECT avg(price)
      OVER (ORDER BY ts ROWS 19 PRECEDING) m FROM t#)`,
  },
  {
    name: 'join, dimension table',
    text: 'SELECT d.sector, sum(t.amount) FROM t# t JOIN dim d ON t.symbol = d.symbol',
  },
  {
    name: 'join, integers of 10,000',
    text: 'SELECT count(*), sum(n.weight) FROM t# t JOIN num n ON t.number = n.number',
  },
  {
    name: 'join, equal timestamps',
    text: 'SELECT count(*), sum(q.bid) FROM t# t JOIN q# q ON t.ts = q.ts',
  },
  {
    name: 'join, two large sides',
    text: 'SELECT count(*), sum(q.bid) FROM t# t JOIN q# q ON t.id = q.id',
  },
  {
    name: 'ASOF JOIN',
    text: 'SELECT count(*), sum(q.bid) FROM t# t ASOF JOIN q# q',
  },
  {
    name: 'ASOF JOIN by symbol',
    text: 'SELECT count(*), sum(q.bid) FROM t# t ASOF JOIN q# q ON (symbol)',
  },
];

/** Queries that read a day of rows or less: milliseconds should stay constant. */
const OF_A_DAY: readonly Item[] = [
  { name: 'a day, GROUP BY', text: "SELECT symbol, avg(price) FROM t# WHERE ts IN '2024-01-02'" },
  {
    name: 'a day, SAMPLE BY 1m',
    text: "SELECT count(*) FROM (SELECT ts, avg(price) a FROM t# WHERE ts IN '2024-01-02' SAMPLE BY 1m)",
  },
  { name: 'LATEST ON', text: 'SELECT * FROM t# LATEST ON ts PARTITION BY symbol' },
  { name: 'last 100', text: 'SELECT * FROM t# ORDER BY ts DESC LIMIT 100' },
];

const SMALL_COMMITS: readonly Item[] = [
  { name: 'sum', text: 'SELECT sum(price) FROM #' },
  { name: 'GROUP BY symbol', text: 'SELECT symbol, avg(price) FROM # GROUP BY symbol' },
  { name: 'SAMPLE BY 1m', text: 'SELECT count(*) FROM (SELECT ts, avg(price) FROM # SAMPLE BY 1m)' },
  { name: 'ASOF JOIN by symbol', text: 'SELECT count(*), sum(b.price) FROM # a ASOF JOIN # b ON (symbol)' },
];

const server = await startTestServer({
  set: ['cairo.commit.mode=nosync', 'query.timeout=900s'],
});
const run = (text: string): ReturnType<typeof exec> => exec(server, text, LOAD_MS);

/** Returns SQL that generates equally spaced table rows. */
function rowsOf(count: number, columns: string): string {
  return `SELECT timestamp_sequence('2024-01-01', ${GAP_MICROS}) ts, ${columns}
    FROM long_sequence(${count}, 7, 11)`;
}

const SYMBOL = "concat('SYM', rnd_int(0, 99, 0))::SYMBOL symbol";
const TRADE = `${SYMBOL}, rnd_double() * 100 price, rnd_double() * 10 amount,
  rnd_long(0, 9999, 0) number`;

async function makeTables(): Promise<void> {
  await run('CREATE TABLE dim (symbol SYMBOL, sector SYMBOL)');
  await run('CREATE TABLE num (number LONG, weight DOUBLE)');
  await run('INSERT INTO num SELECT x - 1, x * 0.5 FROM long_sequence(10000)');
  await run(`INSERT INTO dim SELECT concat('SYM', x - 1), concat('SECTOR', x % 7)
    FROM long_sequence(100)`);
  for (const size of millions) {
    const rows = size * 1_000_000;
    const started = performance.now();
    await run(`CREATE TABLE t${size} (ts TIMESTAMP, symbol SYMBOL, price DOUBLE, amount DOUBLE,
      number LONG, id LONG) TIMESTAMP(ts) PARTITION BY DAY`);
    await run(`CREATE TABLE q${size} (ts TIMESTAMP, symbol SYMBOL, bid DOUBLE, id LONG)
      TIMESTAMP(ts) PARTITION BY DAY`);
    await run(`INSERT INTO t${size} ${rowsOf(rows, `${TRADE}, x * 7919 % ${rows} id`)}`);
    const quote = `${SYMBOL}, rnd_double() * 100 bid, x * 104729 % ${rows} id`;
    await run(`INSERT INTO q${size} ${rowsOf(rows, quote)}`);
    const seconds = (performance.now() - started) / 1000;
    process.stdout.write(`${size} M rows twice: ${seconds.toFixed(1)} s\n`);
  }
}

const median = (sorted: readonly number[]): number => sorted[sorted.length >> 1] ?? Number.NaN;

/**
 * Returns the sorted run times of each query in milliseconds. The queries run in turn, after an
 * uncounted warm-up round.
 */
async function timed(texts: readonly string[]): Promise<number[][]> {
  const millis = texts.map((): number[] => []);
  for (let round = -1; round < runs; round += 1) {
    for (const [index, text] of texts.entries()) {
      const started = performance.now();
      await run(text.replace('{}', String(round + 1)));
      if (round >= 0) {
        millis[index]?.push(performance.now() - started);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  return millis.map((one) => one.sort((a, b) => a - b));
}

async function report(items: readonly Item[], names: readonly string[], units: readonly number[]) {
  for (const { name, text } of items.filter((item) => item.name.includes(values.only))) {
    const all = await timed(names.map((table) => text.replaceAll('#', table)));
    const cells = all.map((millis, index) => {
      const unit = units[index] ?? 1;
      const show = (value: number): string => (value * unit).toPrecision(3);
      return `${show(millis[0] ?? Number.NaN)} (${show(median(millis))})`.padEnd(20);
    });
    process.stdout.write(`${name.padEnd(28)} ${cells.join(' ')}\n`);
  }
}

async function smallCommits(): Promise<void> {
  const shape = `(ts TIMESTAMP, symbol SYMBOL, price DOUBLE, amount DOUBLE, number LONG)
    TIMESTAMP(ts) PARTITION BY DAY`;
  const rows = COMMITS * ROWS_PER_COMMIT;
  const source = `SELECT ts, symbol, price, amount, number FROM t${millions[0]} LIMIT`;
  await run(`CREATE TABLE one ${shape}`);
  await run(`INSERT INTO one ${source} ${rows}`);
  await run(`CREATE TABLE many ${shape}`);
  const started = performance.now();
  for (let commit = 0; commit < COMMITS; commit += 1) {
    const from = commit * ROWS_PER_COMMIT;
    await run(`INSERT INTO many ${source} ${from}, ${from + ROWS_PER_COMMIT}`);
  }
  const seconds = (performance.now() - started) / 1000;
  process.stdout.write(`${COMMITS} commits of ${ROWS_PER_COMMIT} rows: ${seconds.toFixed(1)} s\n`);
}

try {
  await makeTables();
  const sizes = millions.map(String);
  process.stdout.write(`\nns a row, least (median): ${sizes.join(', ')} M rows\n`);
  await report(OF_EVERY_ROW, sizes, millions.map((size) => 1 / size));
  process.stdout.write(`\nms, least (median): ${sizes.join(', ')} M rows\n`);
  await report(OF_A_DAY, sizes, []);
  await smallCommits();
  process.stdout.write('\nms, least (median): a million rows of one commit, of 10,000\n');
  await report(SMALL_COMMITS, ['one', 'many'], []);
} finally {
  await server.stop();
}
