/** Demo data: two tables filled with generated rows. */
import { query } from '../api/client.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

interface DemoTable {
  readonly name: string;
  readonly rows: number;
  readonly create: string;
}

const TRADES = 500_000;
const STATIONS = 40;
const READINGS = STATIONS * 6 * 24 * 7;
const WEEK_MICROS = 7 * 86_400e6;

function times(rows: number): string {
  return `timestamp_sequence(dateadd('d', -7, now()), ${Math.floor(WEEK_MICROS / rows)})`;
}

/** The demo tables cover the last week. Their values rise and fall, with some noise. */
export const DEMO_TABLES: readonly DemoTable[] = [
  {
    name: 'trades',
    rows: TRADES,
    create: `CREATE TABLE trades AS (
  SELECT ${times(TRADES)} AS timestamp,
    (CASE x % 5 WHEN 0 THEN 'BTC-USD' WHEN 1 THEN 'ETH-USD' WHEN 2 THEN 'SOL-USD'
      WHEN 3 THEN 'ADA-USD' ELSE 'XRP-USD' END)::SYMBOL AS symbol,
    rnd_symbol('buy', 'sell') AS side,
    (CASE x % 5 WHEN 0 THEN 64000.0 WHEN 1 THEN 3100.0 WHEN 2 THEN 150.0
      WHEN 3 THEN 0.45 ELSE 0.52 END)
      * (1 + 0.03 * sin(x / 61000.0) + 0.01 * sin(x / 7300.0) + 0.002 * rnd_double()) AS price,
    rnd_double() * 2 AS amount
  FROM long_sequence(${TRADES})
) TIMESTAMP(timestamp) PARTITION BY DAY`,
  },
  {
    name: 'sensors',
    rows: READINGS,
    create: `CREATE TABLE sensors AS (
  SELECT ${times(READINGS)} AS ts,
    concat('station-', x % ${STATIONS})::SYMBOL AS station,
    8 + 6 * sin(x / 916.7) + (x % ${STATIONS}) / 10.0 + rnd_double() AS temperature,
    60 + 20 * sin(x / 3100.0) + rnd_double() * 5 AS humidity,
    x % 997 != 0 AS healthy
  FROM long_sequence(${READINGS})
) TIMESTAMP(ts) PARTITION BY DAY`,
  },
];

/** Creates the tables one after another and reports progress. */
export async function loadDemo(progress: (text: string) => void): Promise<void> {
  for (const table of DEMO_TABLES) {
    progress(
      fill(texts.start.creatingTable, { name: table.name, rows: table.rows.toLocaleString('en') }),
    );
    await query(table.create);
  }
}

export async function removeDemo(): Promise<void> {
  for (const { name } of DEMO_TABLES) {
    await query(`DROP TABLE IF EXISTS ${name}`);
  }
}

export const DEMO_QUERY = `-- ${texts.start.demoQuery}
SELECT timestamp, symbol, avg(price) AS price
FROM trades
SAMPLE BY 1h`;
