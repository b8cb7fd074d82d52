/** Values that lines carry for columns of every type, on any server. */

const VALUES = [
  '1',
  '1.5',
  '-0.25',
  '1e9',
  '1e39',
  'NaN',
  '-Infinity',
  '42i',
  '-7i',
  '127i',
  '128i',
  '32768i',
  '2147483647i',
  '2147483648i',
  '-2147483648i',
  '9223372036854775807i',
  '-9223372036854775808i',
  '0x12abi',
  '1.50d',
  '1.005d',
  'NaNd',
  't',
  'False',
  '"a"',
  '"ab"',
  '""',
  '"1.25"',
  '"u33de"',
  '"u33d"',
  '"u33des"',
  '"11111111-2222-3333-4444-555555555555"',
  '"1.2.3.4"',
  '"2024-01-02T03:04:05.000000Z"',
  '"true"',
  '"0x12ab"',
  '1700000000000000t',
  '1700000000000000001n',
] as const;

/** Column types, keyed by a name that is valid for a table. */
const TYPES = {
  boolean: 'BOOLEAN',
  byte: 'BYTE',
  short: 'SHORT',
  int: 'INT',
  long: 'LONG',
  float: 'FLOAT',
  double: 'DOUBLE',
  date: 'DATE',
  timestamp: 'TIMESTAMP',
  timestamp_ns: 'TIMESTAMP_NS',
  char: 'CHAR',
  symbol: 'SYMBOL',
  string: 'STRING',
  varchar: 'VARCHAR',
  uuid: 'UUID',
  long256: 'LONG256',
  ipv4: 'IPV4',
  geohash: 'GEOHASH(5c)',
  decimal: 'DECIMAL(18,3)',
} as const;

/** Outcome of each value: `refused`, or its cell as JSON. */
export type Outcomes = Readonly<Record<string, string>>;

interface Server {
  readonly url: string;
}

async function exec(server: Server, query: string): Promise<readonly (readonly unknown[])[]> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  const answer = (await response.json()) as { dataset?: unknown[][]; error?: string };
  if (answer.error !== undefined) {
    throw new Error(`${query}: ${answer.error}`);
  }
  return answer.dataset ?? [];
}

async function accepts(server: Server, line: string): Promise<boolean> {
  const response = await fetch(`${server.url}/write`, { method: 'POST', body: line });
  await response.text();
  return response.status === 204;
}

/** QuestDB applies rows some time after accepting them. */
async function whenThere(server: Server, table: string, rows: number): Promise<void> {
  for (let looks = 0; looks < 500; looks += 1) {
    const [count] = await exec(server, `select count() from ${table}`);
    if (count?.[0] === rows) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`${table} does not have its ${rows} rows`);
}

/** Sends every value for every column type, and for a missing column. */
export async function outcomes(server: Server): Promise<Outcomes> {
  const found: Record<string, string> = {};
  for (const [name, type] of Object.entries(TYPES)) {
    const table = `line_${name}`;
    const options = 'timestamp(ts) partition by day wal';
    await exec(server, `create table ${table} (x ${type}, ts timestamp) ${options}`);
    const taken: string[] = [];
    for (const [index, value] of VALUES.entries()) {
      if (await accepts(server, `${table} x=${value} ${index}000\n`)) {
        taken.push(value);
      } else {
        found[`${value} ${type}`] = 'refused';
      }
    }
    await whenThere(server, table, taken.length);
    const cells = await exec(server, `select x from ${table} order by ts`);
    for (const [index, value] of taken.entries()) {
      found[`${value} ${type}`] = JSON.stringify(cells[index]?.[0]);
    }
  }
  for (const [index, value] of VALUES.entries()) {
    const table = `line_new${index}`;
    const key = `${value} new`;
    if (await accepts(server, `${table} x=${value} 1000\n`)) {
      await whenThere(server, table, 1);
      const columns = await exec(server, `select "column", type from table_columns('${table}')`);
      found[key] = String(columns.find(([column]) => column === 'x')?.[1]);
    } else {
      found[key] = 'refused';
    }
  }
  return found;
}
