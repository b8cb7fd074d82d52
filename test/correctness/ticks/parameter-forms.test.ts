/**
 * Every entry point selects the same rows for an interval string. The string is a literal or a
 * parameter, either untyped or of a string type, in text and in binary format. It is compared with
 * both timestamp types, and with the designated timestamp or another column. The expected intervals
 * were recorded from QuestDB (`npm run tick-differential`).
 */
import test, { type ExecutionContext } from 'ava';

import { execute } from '../../golden/http-client.js';
import { startTestServer, type TestServer } from '../../golden/server.js';
import { clientMessage, RawClient } from '../../pgwire/raw-client.js';
import { quoted } from './answers.js';
import { isRelative } from './expressions.js';
import { type Flat, intervalsOf, readRecorded, type Recorded } from './recorded.js';

/** Maximum number of intervals in the recorded EXPLAIN output. */
const SHOWN = 1_000;
const ROWS_PER_INSERT = 2_000;
const BINDS_AT_ONCE = 50;
const TEXT_OID = 25;
/** Number of hourly rows around today, for strings that depend on the date. */
const HOURS = 24 * 40;

const recorded = readRecorded();

const meaningOf = ({ peer, ours, why }: Recorded): Flat =>
  why === undefined ? peer : (ours ?? null);

const isShort = (line: Recorded): boolean => (meaningOf(line)?.length ?? 0) < 2 * SHOWN;

/** Whether a string has sub-microsecond digits, or denotes an interval of one tick. */
const isFine = (text: string): boolean => /\d+n|\.\d{7}|[Z +]|-\d\d:?\d\d$/.test(text);

/**
 * Returns timestamps inside and outside the intervals: every bound, and the microsecond before it.
 */
function points(): readonly number[] {
  const near = recorded
    .filter((line) => !isRelative(line.text))
    .flatMap((line) => intervalsOf(meaningOf(line) ?? []))
    .flatMap(([lo, hi]) => [lo - 1, lo, hi - 1, hi]);
  const hour = 3_600_000_000;
  const now = Math.floor((Date.now() * 1_000) / hour) * hour;
  const grid = Array.from({ length: 2 * HOURS }, (_, index) => now + (index - HOURS) * hour);
  const all = new Set([...near, ...grid].filter((at) => at >= 0));
  return [...all].toSorted((a, b) => a - b);
}

/** Returns the number of sorted points before a timestamp. */
function before(sorted: readonly number[], time: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Returns how many rows a string selects; `null` for a refusal. */
function expected(sorted: readonly number[], line: Recorded): number | null {
  const meaning = meaningOf(line);
  if (meaning === null) {
    return null;
  }
  const counts = intervalsOf(meaning).map(([lo, hi]) => before(sorted, hi) - before(sorted, lo));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function literal(server: TestServer, where: string, text: string): Promise<number | null> {
  const sql = `SELECT count() FROM ${where} IN ${quoted(text)}`;
  const body = JSON.parse((await execute(server.url, sql, {})).body.toString()) as {
    readonly dataset?: readonly (readonly [number])[];
  };
  return body.dataset?.[0]?.[0] ?? null;
}

async function run(server: TestServer, sql: string): Promise<void> {
  const reply = await execute(server.url, sql, {});
  if (reply.status !== 200) {
    throw new Error(`${sql.slice(0, 80)}: ${reply.body.toString()}`);
  }
}

async function fill(server: TestServer, sorted: readonly number[]): Promise<void> {
  const type = 'ts TIMESTAMP, other TIMESTAMP';
  await run(server, `CREATE TABLE probe (${type}) TIMESTAMP(ts) PARTITION BY YEAR`);
  for (let from = 0; from < sorted.length; from += ROWS_PER_INSERT) {
    const rows = sorted.slice(from, from + ROWS_PER_INSERT).map((at) => `(${at}, ${at})`);
    await run(server, `INSERT INTO probe VALUES ${rows.join(', ')}`);
  }
  const nanos = type.replaceAll('TIMESTAMP', 'TIMESTAMP_NS');
  await run(server, `CREATE TABLE probe_ns (${nanos}) TIMESTAMP(ts) PARTITION BY YEAR`);
  await run(server, 'INSERT INTO probe_ns SELECT ts, other FROM probe');
}

interface ParameterForm {
  readonly table: string;
  readonly oid: number;
  readonly format: 0 | 1;
}

const FIRST: ParameterForm = { table: 'probe', oid: 0, format: 0 };
const FORMS: readonly ParameterForm[] = [
  FIRST,
  { table: 'probe', oid: TEXT_OID, format: 1 },
  { table: 'probe_ns', oid: 0, format: 1 },
  { table: 'probe_ns', oid: TEXT_OID, format: 0 },
];

/** Returns the row counts of `ts IN $1` for these strings; `null` for a refusal. */
async function bound(
  client: RawClient,
  { table, oid, format }: ParameterForm,
  texts: readonly string[],
): Promise<(number | null)[]> {
  const sql = `SELECT count() FROM ${table} WHERE ts IN $1`;
  client.send(clientMessage('P', 'in', sql, [1], oid), clientMessage('S'));
  await client.until('Z');
  const found: (number | null)[] = [];
  for (let from = 0; from < texts.length; from += BINDS_AT_ONCE) {
    const some = texts.slice(from, from + BINDS_AT_ONCE);
    for (const text of some) {
      const value = Buffer.from(text);
      client.send(
        clientMessage('B', '', 'in', [1], [format], [1], value.length, value, [0]),
        clientMessage('E', '', 0),
        clientMessage('S'),
      );
    }
    while (found.length < from + some.length) {
      const row = (await client.until('Z')).find(({ type }) => type === 'D');
      found.push(row === undefined ? null : Number(row.body.toString('utf8', 6)));
    }
  }
  client.send(clientMessage('C', 'Sin'), clientMessage('S'));
  await client.until('Z');
  return found;
}

/** Reports only the first few problems, because a systematic error would fill the log. */
function report(t: ExecutionContext, problems: readonly string[]): void {
  t.deepEqual(problems.slice(0, 10), [], `${problems.length} texts`);
}

test('every entry point returns the recorded results for interval strings', async (t) => {
  t.timeout(600_000);
  const server = await startTestServer({ set: ['pg.auth.method=cleartext'] });
  t.teardown(() => server.stop());
  const sorted = points();
  await fill(server, sorted);
  const lines = recorded.filter((line) => !isRelative(line.text) && isShort(line));
  t.true(lines.length > 2_000, `${lines.length} texts`);
  const problems: string[] = [];
  const judge = (form: string, line: Recorded, found: number | null | undefined): void => {
    const expectedRows = expected(sorted, line);
    if (found !== expectedRows && !(form.includes('_ns') && isFine(line.text))) {
      problems.push(
        `${line.text} by ${form}: ${String(found)} rows, expected ${String(expectedRows)}`,
      );
    }
  };
  for (const where of ['probe WHERE ts', 'probe_ns WHERE ts']) {
    for (const line of lines) {
      judge(where, line, await literal(server, where, line.text));
    }
  }
  for (const line of lines.filter((_, index) => index % 10 === 0)) {
    const where = 'probe WHERE other';
    judge(where, line, await literal(server, where, line.text));
  }
  const client = await RawClient.login(Number(server.pg.split(':')[1]));
  for (const form of FORMS) {
    const found = await bound(
      client,
      form,
      lines.map(({ text }) => text),
    );
    for (const [index, line] of lines.entries()) {
      judge(JSON.stringify(form), line, found[index]);
    }
  }
  report(t, problems);
  // Strings that depend on the clock. The entry points must give equal results when they run at
  // about the same time.
  const relative = recorded.filter((line) => isRelative(line.text)).map(({ text }) => text);
  const counts = async (): Promise<(number | null)[]> => {
    const all: (number | null)[] = [];
    for (const text of relative) {
      all.push(await literal(server, 'probe WHERE ts', text));
    }
    return all;
  };
  const early = await counts();
  const parameters = await bound(client, FIRST, relative);
  const late = await counts();
  client.close();
  const differing = relative.filter((_, index) => {
    const found = parameters[index];
    return found !== early[index] && found !== late[index];
  });
  report(t, differing);
});
