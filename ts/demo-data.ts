/**
 * The demonstration data set: a day of trades and quotes with generated prices. Apart from the
 * date, it is the same for every user. It is loaded as CSV through the engine's appender, like any
 * import.
 */
import type { AppenderSpec, CsvColumnSpec, Database } from './engine/index.js';

const ROWS = 100_000;
const ROWS_PER_CHUNK = 5_000;
const DAY_MICROS = 86_400_000_000n;
const SYMBOLS = [
  { name: 'BTC-USD', price: 64_000 },
  { name: 'ETH-USD', price: 3_100 },
  { name: 'SOL-USD', price: 150 },
  { name: 'ADA-USD', price: 0.45 },
  { name: 'XRP-USD', price: 0.52 },
];

interface DemoTable {
  readonly name: string;
  readonly columns: readonly (readonly [name: string, type: string])[];
  /** Returns the CSV fields between the symbol and the timestamp. */
  readonly fields: (price: number, random: () => number) => string;
}

const TABLES: readonly DemoTable[] = [
  {
    name: 'trades',
    columns: [
      ['symbol', 'SYMBOL'],
      ['side', 'SYMBOL'],
      ['price', 'DOUBLE'],
      ['amount', 'DOUBLE'],
      ['timestamp', 'TIMESTAMP'],
    ],
    fields: (price, random) => {
      const side = random() < 0.5 ? 'buy' : 'sell';
      return `${side},${price.toFixed(4)},${(random() * 2).toFixed(6)}`;
    },
  },
  {
    name: 'quotes',
    columns: [
      ['symbol', 'SYMBOL'],
      ['bid', 'DOUBLE'],
      ['ask', 'DOUBLE'],
      ['timestamp', 'TIMESTAMP'],
    ],
    fields: (price, random) => {
      const spread = price * (0.0001 + random() * 0.0004);
      return `${(price - spread).toFixed(4)},${(price + spread).toFixed(4)}`;
    },
  },
];

/** Loads each table that does not exist; existing tables are left unchanged. */
export async function loadDemoData(
  database: Database,
  progress: (text: string) => void,
): Promise<void> {
  // Rounded to whole minutes, so that both tables end at the same timestamp.
  const end = (BigInt(Date.now()) / 60_000n) * 60_000_000n;
  for (const [index, table] of TABLES.entries()) {
    if ((await database.tableMetadata(table.name)) === null) {
      await loadTable(database, table, end, index + 1, progress);
    }
  }
}

async function loadTable(
  database: Database,
  table: DemoTable,
  endMicros: bigint,
  seed: number,
  progress: (text: string) => void,
): Promise<void> {
  const appender = await database.openAppender(specOf(table));
  try {
    for (const chunk of chunks(table, endMicros, seed)) {
      const { rows } = await appender.write(chunk);
      progress(`demo data: ${table.name} ${Math.min(rows, ROWS)} of ${ROWS} rows`);
    }
    await appender.finish();
    progress(`demo data: ${table.name} loaded, ${ROWS} rows`);
  } catch (error) {
    await appender.abort();
    throw error;
  }
}

function specOf(table: DemoTable): AppenderSpec {
  const columns: CsvColumnSpec[] = table.columns.map(([name, type], index) => ({
    index,
    name,
    type,
  }));
  return {
    kind: 'csv',
    table: table.name,
    create: true,
    overwrite: false,
    timestamp: 'timestamp',
    partitionBy: 'HOUR',
    csv: { delimiter: ',', header: false, columns, atomicity: 'abort', skipExtraValues: false },
  };
}

function* chunks(table: DemoTable, endMicros: bigint, seed: number): Generator<Buffer> {
  const random = randomNumbers(seed);
  const prices = SYMBOLS.map(({ price }) => price);
  const stepMicros = DAY_MICROS / BigInt(ROWS);
  let micros = endMicros - DAY_MICROS;
  for (let written = 0; written < ROWS; written += ROWS_PER_CHUNK) {
    const lines: string[] = [];
    for (let row = 0; row < ROWS_PER_CHUNK; row += 1) {
      const which = Math.floor(random() * SYMBOLS.length);
      // Prices are a random walk with steps of at most 0.01 %.
      const price = (prices[which] ?? 1) * (1 + (random() - 0.5) * 0.0002);
      prices[which] = price;
      micros += stepMicros;
      const name = SYMBOLS[which]?.name ?? '';
      lines.push(`${name},${table.fields(price, random)},${isoMicros(micros)}\n`);
    }
    yield Buffer.from(lines.join(''));
  }
}

function isoMicros(micros: bigint): string {
  const millis = new Date(Number(micros / 1000n)).toISOString().slice(0, -1);
  return `${millis}${String(micros % 1000n).padStart(3, '0')}Z`;
}

/** Returns a mulberry32 generator, which is small and seeded, and sufficient for prices. */
function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
