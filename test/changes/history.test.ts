/**
 * Random histories. Despite any changes to the table, restarts and lost connections, a consumer
 * that applies all feed events has the same rows as the table.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, restart, rows, run } from '../scenario/statements.js';
import { suiteSeed } from '../seed.js';
import { Consumer, currentTxn, EventReader } from './event-reader.js';

const SEED = suiteSeed();
const STEPS = Number(process.env['STEPS'] ?? 150);
const SETTINGS = ['changes.heartbeat=100ms', 'changes.memory=64K'];

/** Returns a seeded generator of random integers below a bound. */
function randomOf(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 1) | 0;
    return ((state >>> 0) % 1_000_003) % below;
  };
}

function statementOf(random: (below: number) => number): string {
  const time = (): string => `2024-01-0${1 + random(5)}T0${random(10)}:${10 + random(50)}:00Z`;
  const value = (): string => `('${time()}', 's${random(4)}', ${random(1_000)})`;
  const values = (): string => Array.from({ length: 1 + random(4) }, value).join(', ');
  const kinds: readonly (() => string)[] = [
    () => `INSERT INTO t (ts, s, x) VALUES ${values()}`,
    () => `INSERT INTO t (ts, s, x) VALUES ${values()}`,
    () => `INSERT INTO t (ts, s, x) VALUES ${values()}`,
    () => `UPDATE t SET x = ${random(1_000)} WHERE s = 's${random(4)}' AND x % 5 = ${random(5)}`,
    () => `DELETE FROM t WHERE x % 11 = ${random(11)}`,
    () => `DELETE FROM t WHERE ts IN '2024-01-0${1 + random(5)}T0${random(10)}'`,
    () => `ALTER TABLE t DROP PARTITION LIST '2024-01-0${1 + random(5)}'`,
    () => (random(8) === 0 ? 'TRUNCATE TABLE t' : 'CHECKPOINT CREATE'),
    () => (random(2) === 0 ? 'ALTER TABLE t ADD COLUMN y DOUBLE' : 'ALTER TABLE t DROP COLUMN y'),
    () =>
      random(2) === 0
        ? 'ALTER TABLE t DEDUP ENABLE UPSERT KEYS(ts, s)'
        : 'ALTER TABLE t DEDUP DISABLE',
    () =>
      `INSERT INTO t (ts, s, x) SELECT dateadd('s', x::int, '${time()}'::timestamp), 'many', x
       FROM long_sequence(${1 + random(3_000)})`,
  ];
  return kinds[random(kinds.length)]?.() ?? '';
}

/** A consumer that reconnects repeatedly. */
class Client {
  readonly consumer = new Consumer();
  /** Filter for the requested rows. */
  readonly where: string | null;
  #reader: EventReader | null = null;

  constructor(where: string | null) {
    this.where = where;
  }

  close(): void {
    this.#reader?.close();
    this.#reader = null;
  }

  async catchUp(server: TestServer): Promise<void> {
    const { lastId } = this.consumer;
    if (this.#reader === null) {
      this.consumer.begin();
      this.#reader = await EventReader.open(server, {
        table: 't',
        columns: 'ts, s, x',
        ...(this.where === null ? {} : { where: this.where }),
        ...(lastId === undefined ? { from: 'start' } : { from: lastId }),
      });
    }
    await this.consumer.read(this.#reader, await currentTxn(server, 't'));
  }
}

test(`a consumer reproduces the rows of the table (seed ${SEED})`, async (t) => {
  t.timeout(240_000);
  const random = randomOf(SEED);
  const root = await mkdtemp(join(tmpdir(), 'tidemark-history-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  let server = await startTestServer({ root, set: SETTINGS });
  t.teardown(() => server.stop());
  await run(
    server,
    `CREATE TABLE t (ts TIMESTAMP, s SYMBOL, x LONG) TIMESTAMP(ts) PARTITION BY DAY WAL`,
  );
  const clients = [new Client(null), new Client(null), new Client("s != 's1' AND x > 100")];
  for (const client of clients) {
    await client.catchUp(server);
  }
  const done: string[] = [];
  for (let step = 0; step < STEPS; step += 1) {
    const statement = statementOf(random);
    const { error } = await exec(server, statement);
    done.push(`${statement} ${error ?? ''}`);
    // The first consumer keeps up; the others fall behind.
    await clients[0]?.catchUp(server);
    const which = clients[random(clients.length)];
    if (random(5) === 0) {
      await which?.catchUp(server);
    } else if (random(6) === 0) {
      which?.close();
    }
    if (random(40) === 0) {
      clients.forEach((client) => {
        client.close();
      });
      if (random(2) === 0) {
        server = await restart(server);
      } else {
        await server.stop();
        server = await startTestServer({ root, set: SETTINGS });
      }
    }
  }
  for (const client of clients) {
    await client.catchUp(server);
    const where = client.where === null ? '' : ` WHERE ${client.where}`;
    const shown = await rows(server, `SELECT ts, s, x FROM t${where}`);
    const expected = shown.map((row) => JSON.stringify(row)).sort();
    t.deepEqual(client.consumer.rows, expected, `SEED=${SEED} ${done.slice(-20).join('\n')}`);
    client.close();
  }
});
