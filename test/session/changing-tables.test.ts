/**
 * Tables that change while they are being read and written. No client has to prepare a statement
 * again.
 */
import { existsSync } from 'node:fs';

import test from 'ava';
import type pg from 'pg';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, run } from '../scenario/statements.js';
import { pgClient } from '../pg-client.js';

const addon = existsSync(new URL('../../../native/index.js', import.meta.url));
const real = addon ? test.serial : test.serial.skip;

const RUN_MS = 4_000;

/** Repeats `step` until the time is up; returns the number of refusals per message. */
async function repeated(
  end: number,
  step: (round: number) => Promise<string | undefined>,
): Promise<readonly string[]> {
  const refused: string[] = [];
  for (let round = 0; Date.now() < end; round += 1) {
    const error = await step(round);
    if (error !== undefined) {
      refused.push(error);
    }
  }
  return refused;
}

async function client(server: TestServer): Promise<pg.Client> {
  const created = pgClient(server.pg);
  await created.connect();
  return created;
}

real('reads and inserts continue while columns are added and dropped', async (t) => {
  const server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  try {
    await run(
      server,
      'CREATE TABLE cc (ts TIMESTAMP, k SYMBOL, i INT) TIMESTAMP(ts) PARTITION BY DAY',
      "INSERT INTO cc VALUES ('2024-01-01', 'a', 1)",
    );
    const end = Date.now() + RUN_MS;
    const error = async (sql: string): Promise<string | undefined> =>
      (await exec(server, sql)).error;
    const exported = async (): Promise<string | undefined> => {
      const reply = await fetch(`${server.url}/exp?query=SELECT+*+FROM+cc+LIMIT+5`);
      const text = await reply.text();
      return reply.status === 200 ? undefined : text;
    };
    const simple = await client(server);
    const query = async (sql: string): Promise<string | undefined> => {
      try {
        await simple.query(sql);
        return undefined;
      } catch (failure) {
        return String(failure);
      }
    };
    const changers = [0, 1, 2].map((number) =>
      repeated(end, async (round) => {
        const name = `n${number}_${round}`;
        return (
          (await error(`ALTER TABLE cc ADD COLUMN ${name} INT`)) ??
          (await error(`ALTER TABLE cc DROP COLUMN ${name}`))
        );
      }),
    );
    const others = [
      repeated(end, () => error('SELECT * FROM cc LIMIT 10')),
      repeated(end, () => error('SELECT * FROM cc ORDER BY ts DESC LIMIT 3')),
      repeated(end, () => error('SELECT k, sum(i) FROM cc')),
      repeated(end, exported),
      repeated(end, () => query('SELECT * FROM cc LIMIT 10')),
      ...[1, 2, 3].map(() =>
        repeated(end, () => error("INSERT INTO cc (ts, k, i) VALUES ('2024-01-02', 'b', 2)")),
      ),
    ];
    t.deepEqual((await Promise.all(others)).flat(), []);
    t.deepEqual((await Promise.all(changers)).flat(), []);
    await simple.end();
  } finally {
    await server.stop();
  }
});
