/**
 * npm run disk-space -- [--cycles N] [--seed S] [--mib N]
 *
 * Checks on a small, separate file system that disk space is reclaimed. In each cycle, data is
 * dropped, replaced or changed in a different way. The space that it used must become free within 5
 * s, without another write or a restart. Then the disk is filled until writes are refused, often
 * down to the last byte. Dropping something must succeed, and writers must be able to continue
 * within 5 s. Starts and stops, clean or not, must not use up space. Everything acknowledged must
 * exist throughout, and the check must find no problem.
 */
import { readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { exitCode, runCli, startTestServer, type TestServer } from '../golden/server.js';
import { exec, importCsv } from './client.js';
import { Harness, sleep } from './harness.js';
import { freeBytes, insideNamespace, mountDisk } from './small-disk.js';

const SOON_MS = 5_000;
const KIB = 1024;
const MIB = KIB * KIB;
/** How much the manifests and the log may grow between two measurements. */
const SLACK = 256 * KIB;
const DAYS = [0, 1, 2] as const;
/** Tables whose data is dropped, and one whose data is retained. */
const VICTIMS = ['alpha', 'beta'] as const;
const RETAINED_TABLE = 'kept';

interface Sent {
  readonly day: number;
  readonly rows: number;
}

/** Expected contents of a table: acknowledged and uncertain batches. */
class Oracle {
  readonly sure = new Map<number, Sent>();
  readonly unknown = new Map<number, Sent>();

  forget(isForgotten: (batch: number, sent: Sent) => boolean): void {
    for (const batches of [this.sure, this.unknown]) {
      for (const [batch, sent] of batches) {
        if (isForgotten(batch, sent)) {
          batches.delete(batch);
        }
      }
    }
  }
}

/** A way to free space; `left` is the fraction of the table's bytes that may remain. */
interface Method {
  readonly name: string;
  readonly left: number;
  /** Whether the method itself needs almost no free space. */
  readonly frees: boolean;
  go(table: string): Promise<void>;
}

const disk = await insideNamespace();
const harness: Harness = new Harness('room', ['cycles', 'mib']);
const cycles = harness.number('cycles', 5);
const mib = harness.number('mib', 64);
if (!(await mountDisk(disk, mib))) {
  harness.skip('a file system cannot be mounted here');
}
const root = join(disk, 'root');
const filler = join(disk, 'filler');
writeFileSync(filler, '');
const oracles = new Map<string, Oracle>();
const counts = { ways: 0, refused: 0, restarts: 0, batches: 0 };
let nextBatch = 0;
let server = await start(0);

const run = async (query: string): Promise<void> => {
  await exec(server, query);
};
const day = (number: number): string => `2024-01-0${number + 1}`;
const ofDay = (number: number) => (_: number, sent: Sent) => sent.day === number;

const METHODS: readonly Method[] = [
  way('TRUNCATE', 0.05, true, async (table) => {
    await run(`TRUNCATE TABLE ${table}`);
    oracle(table).forget(() => true);
  }),
  way('DROP TABLE', 0, true, async (table) => {
    await run(`DROP TABLE ${table}`);
    oracles.delete(table);
  }),
  way('DROP PARTITION', 0.72, true, async (table) => {
    await run(`ALTER TABLE ${table} DROP PARTITION LIST '${day(0)}'`);
    oracle(table).forget(ofDay(0));
  }),
  way('TTL', 0.72, true, async (table) => {
    await run(`ALTER TABLE ${table} SET TTL 1 DAY`);
    oracle(table).forget(ofDay(0));
    await run(`ALTER TABLE ${table} SET TTL 0 DAY`);
  }),
  way('DELETE of all', 0.05, true, async (table) => {
    await run(`DELETE FROM ${table}`);
    oracle(table).forget(() => true);
  }),
  way('DELETE of a day', 0.72, true, async (table) => {
    await run(`DELETE FROM ${table} WHERE ts IN '${day(1)}'`);
    oracle(table).forget(ofDay(1));
  }),
  way('DELETE of some', 0.75, false, async (table) => {
    await run(`DELETE FROM ${table} WHERE batch % 2 = 0`);
    oracle(table).forget((batch) => batch % 2 === 0);
  }),
  way('UPDATE', 1.1, false, (table) => run(`UPDATE ${table} SET v = v + 1`)),
  way('overwrite', 1.1, false, async (table) => {
    const old = oracle(table);
    oracles.set(table, new Oracle());
    const batch = nextBatch++;
    await importCsv(server, table, csv(batch, [0, 1, 2], 10), { overwrite: 'true' });
    old.forget(() => true);
    oracle(table).sure.set(batch, { day: -1, rows: 30 });
  }),
  way('CONVERT to Parquet', 1, false, (table) =>
    run(`ALTER TABLE ${table} CONVERT PARTITION TO PARQUET LIST ${DAYS.map(quotedDay).join()}`),
  ),
  way('CONVERT and back', 1.1, false, async (table) => {
    for (const format of ['PARQUET', 'NATIVE']) {
      const days = DAYS.map(quotedDay).join();
      await run(`ALTER TABLE ${table} CONVERT PARTITION TO ${format} LIST ${days}`);
    }
  }),
  way('DROP COLUMN', 0.6, false, async (table) => {
    await run(`ALTER TABLE ${table} DROP COLUMN pad`);
  }),
  way('a change of type', 1.1, false, (table) =>
    run(`ALTER TABLE ${table} ALTER COLUMN v TYPE INT`),
  ),
];

for (let cycle = 0; cycle < cycles && harness.failures < 10; cycle++) {
  await runCycle(cycle).catch((error: unknown) => {
    const what = error instanceof Error ? error.message : String(error);
    harness.fail(`cycle ${cycle}: ${what}; ${whereBytesAre()}`);
  });
}
await server.stop();
harness.judge(await checked('at the end'));
harness.say(
  Object.entries(counts)
    .map(([name, count]) => `${count} ${name}`)
    .join(', '),
);
harness.finish();

function way(name: string, left: number, frees: boolean, go: Method['go']): Method {
  return { name, left, frees, go };
}

function methodOf(ways: readonly Method[], round: number): Method {
  const found = ways[round % ways.length];
  if (found === undefined) {
    throw new Error('no way is known');
  }
  return found;
}

function quotedDay(number: number): string {
  return `'${day(number)}'`;
}

/** Every second server refuses writes only once the disk is full. */
async function start(round: number): Promise<TestServer> {
  const set = round % 2 === 1 ? ['disk.watermark=1'] : [];
  return await startTestServer({ root, set });
}

function oracle(table: string): Oracle {
  const found = oracles.get(table) ?? new Oracle();
  oracles.set(table, found);
  return found;
}

async function runCycle(cycle: number): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await tryWay(methodOf(METHODS, cycle * 3 + round), harness.random.pick(VICTIMS));
  }
  const freeing = METHODS.filter((each) => each.frees);
  const chosen = methodOf(freeing, cycle);
  await renew(VICTIMS[0]);
  await load(VICTIMS[0], mib / 4);
  await fillUp(cycle);
  harness.judge(await verify(`cycle ${cycle}, full`));
  harness.judge(await restarts(cycle, `cycle ${cycle}, full`));
  harness.judge(await freesSpace(chosen, VICTIMS[0]));
  truncateSync(filler, 0);
  harness.judge(await verify(`cycle ${cycle}, after ${chosen.name}`));
  for (const table of [...VICTIMS, RETAINED_TABLE]) {
    await renew(table);
  }
  harness.judge(await restarts(cycle + 1, `cycle ${cycle}, emptied`));
  const empty = await becomes('', () => freeBytes(disk) > (mib * MIB * 3) / 4);
  harness.judge(empty === undefined ? undefined : `cycle ${cycle}, emptied: ${whereBytesAre()}`);
}

async function renew(table: string): Promise<void> {
  await run(`DROP TABLE IF EXISTS ${table}`);
  oracle(table).forget(() => true);
  await run(
    `CREATE TABLE ${table} (ts TIMESTAMP, batch LONG, v LONG, s SYMBOL, pad VARCHAR) ` +
      'TIMESTAMP(ts) PARTITION BY DAY',
  );
}

/** Returns rows for several days, the same number for each day. */
function csv(batch: number, days: readonly number[], rows: number): string {
  const lines = days.flatMap((number) =>
    Array.from({ length: rows }, (_, row) => {
      const ts = `${day(number)}T12:00:00.${String(row).padStart(6, '0')}Z`;
      return `${ts},${batch},${row},s${row % 100},${batch}-${row}-${'p'.repeat(80)}`;
    }),
  );
  return `ts,batch,v,s,pad\n${lines.join('\n')}\n`;
}

/** Sends one batch for one day. The outcome is known unless the connection ends. */
async function send(table: string, number: number, rows: number): Promise<void> {
  const batch = nextBatch++;
  const { sure, unknown } = oracle(table);
  unknown.set(batch, { day: number, rows });
  await importCsv(server, table, csv(batch, [number], rows));
  unknown.delete(batch);
  sure.set(batch, { day: number, rows });
  counts.batches += 1;
}

/** Loads about `size` bytes, distributed evenly over the days. */
async function load(table: string, size: number): Promise<void> {
  const rows = 4_000;
  const times = Math.max(1, Math.round((size * MIB) / (rows * 150 * DAYS.length)));
  for (let time = 0; time < times; time++) {
    for (const number of DAYS) {
      await send(table, number, rows);
    }
  }
}

function bytesBelow(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && entry.name !== 'reserve') {
      bytes += statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    }
  }
  return bytes;
}

function used(): number {
  return bytesBelow(join(root, 'db'));
}

function whereBytesAre(): string {
  const folders = ['t', 'log', 'stage', 'trash'].map((name) => {
    return `${name} ${bytesBelow(join(root, 'db', name))}`;
  });
  return `bytes free ${freeBytes(disk)}, filler ${statSync(filler).size}, ${folders.join(', ')}`;
}

async function tableBytes(table: string): Promise<number> {
  const { dataset } = await exec(server, `select id from tables() where table_name = '${table}'`);
  return bytesBelow(join(root, 'db', 't', String(dataset[0]?.[0])));
}

/** Waits until disk usage is stable after checkpoints. */
async function settle(): Promise<number> {
  let before = used();
  for (let same = 0; same < 5;) {
    await sleep(200);
    const now = used();
    same = now === before ? same + 1 : 0;
    before = now;
  }
  return before;
}

async function becomes(what: string, isTrue: () => boolean): Promise<string | undefined> {
  const end = performance.now() + SOON_MS;
  while (performance.now() < end) {
    if (isTrue()) {
      return undefined;
    }
    await sleep(50);
  }
  return isTrue() ? undefined : what;
}

/** When the disk has free space, the bytes freed by `chosen` must soon become available. */
async function tryWay(chosen: Method, table: string): Promise<void> {
  await renew(table);
  await load(table, mib / 8);
  const before = await settle();
  const size = await tableBytes(table);
  await chosen.go(table);
  counts.ways += 1;
  const maximum = before - size * (1 - chosen.left) + SLACK;
  const excess = (): string =>
    `${chosen.name}: ${used()} bytes are used, at most ${maximum} expected`;
  harness.judge((await becomes('x', () => used() <= maximum)) === undefined ? undefined : excess());
  if (chosen.name === 'DROP TABLE') {
    await renew(table);
  }
  harness.judge(await verify(chosen.name));
}

/**
 * Writes until the server refuses writes, and then lets another program use the remaining space.
 */
async function fillUp(cycle: number): Promise<void> {
  await renew(RETAINED_TABLE);
  for (let misses = 0; misses < 3;) {
    try {
      if (harness.random.next() < 0.5) {
        await send(RETAINED_TABLE, harness.random.pick(DAYS), harness.random.between(100, 8_000));
      } else {
        await insert(RETAINED_TABLE);
      }
    } catch {
      misses += 1;
      counts.refused += 1;
    }
  }
  if (cycle % 3 !== 2) {
    const left = cycle % 3 === 0 ? 0 : harness.random.between(0, 64 * KIB);
    const block = Buffer.alloc(64 * KIB, 1);
    while (freeBytes(disk) > left + block.length) {
      writeFileSync(filler, block, { flag: 'a' });
    }
    if (left === 0) {
      writeFileSync(filler, Buffer.alloc(freeBytes(disk), 1), { flag: 'a' });
    }
  }
}

async function insert(table: string): Promise<void> {
  const batch = nextBatch++;
  const rows = 20;
  const { sure, unknown } = oracle(table);
  const values = Array.from(
    { length: rows },
    (_, row) =>
      `('${day(2)}T13:00:00.${String(row).padStart(6, '0')}Z', ${batch}, ${row}, 's', 'x')`,
  );
  unknown.set(batch, { day: 2, rows });
  await run(`INSERT INTO ${table} VALUES ${values.join(', ')}`);
  unknown.delete(batch);
  sure.set(batch, { day: 2, rows });
}

/** On a full disk, `chosen` must succeed, and writers must soon be able to continue. */
async function freesSpace(chosen: Method, table: string): Promise<string | undefined> {
  try {
    await chosen.go(table);
  } catch (error) {
    return `${chosen.name} on a full disk: ${(error as Error).message}`;
  }
  const dropped = performance.now();
  let last = '';
  for (const write of [() => insert(RETAINED_TABLE), () => send(RETAINED_TABLE, 0, 500)]) {
    for (;;) {
      try {
        await write();
        break;
      } catch (error) {
        last = (error as Error).message;
      }
      if (performance.now() - dropped > SOON_MS) {
        return `after ${chosen.name} ${freeBytes(disk)} bytes are free, and writes fail: ${last}`;
      }
      await sleep(50);
    }
  }
  return undefined;
}

/** Starts and stops must not change the free space. */
async function restarts(round: number, where: string): Promise<string | undefined> {
  let minimum = freeBytes(disk);
  for (let time = 0; time < 3; time++) {
    if (round % 2 === 0) {
      await server.stop();
    } else {
      server.process.kill('SIGKILL');
      await exitCode(server.process);
    }
    counts.restarts += 1;
    if (time === 1) {
      harness.judge(await checked(where));
    }
    server = await start(round);
    await exec(server, 'select 1');
    if (time === 0) {
      minimum = Math.min(minimum, freeBytes(disk));
    }
  }
  const problem = await becomes('room', () => freeBytes(disk) >= minimum - SLACK);
  return problem === undefined
    ? undefined
    : `${where}: ${freeBytes(disk)} bytes are free after three restarts, ${minimum} before`;
}

async function checked(where: string): Promise<string | undefined> {
  const check = runCli(['check', '--root', root]);
  const code = await exitCode(check.process);
  return code === 0 ? undefined : `${where}: ${check.out()}${check.err()}`;
}

async function verify(where: string): Promise<string | undefined> {
  for (const [table, { sure, unknown }] of oracles) {
    const query = `select batch, count() c from ${table} group by batch`;
    const { dataset } = await exec(server, query);
    const found = new Map(dataset.map(([batch, rows]) => [Number(batch), Number(rows)]));
    for (const [batch, { rows }] of sure) {
      if (found.get(batch) !== rows) {
        return `${where}: batch ${batch} of ${table} has ${found.get(batch)} of ${rows} rows`;
      }
    }
    for (const [batch, rows] of found) {
      if (!sure.has(batch) && unknown.get(batch)?.rows !== rows) {
        return `${where}: batch ${batch} of ${table} has ${rows} rows that were never sent`;
      }
    }
    for (const [batch, sent] of unknown) {
      if (found.has(batch)) {
        sure.set(batch, sent);
      }
    }
    unknown.clear();
  }
  return undefined;
}
