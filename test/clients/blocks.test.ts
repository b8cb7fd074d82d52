/** Visibility of uncommitted rows inside and outside a block, through node-postgres. */
import test, { type ExecutionContext } from 'ava';
import type pg from 'pg';

import { PASSWORD, portFor } from './harness.js';
import { pgClient } from '../pg-client.js';

interface Pair {
  /**
   * Runs a statement in the session with the block. Returns rows joined by `|`, or SQLSTATE and
   * message.
   */
  readonly ours: (text: string) => Promise<string>;
  /** Runs a statement in another session. */
  readonly theirs: (text: string) => Promise<string>;
}

async function pair(t: ExecutionContext): Promise<Pair | null> {
  const port = await portFor(t);
  if (port === null) {
    return null;
  }
  const open = async (): Promise<(text: string) => Promise<string>> => {
    const client = pgClient(`127.0.0.1:${port}`, { password: PASSWORD });
    await client.connect();
    t.teardown(() => client.end());
    return async (text) => {
      try {
        const { rows } = await client.query<unknown[]>({ text, rowMode: 'array' });
        return rows.map((row) => row.join(',')).join('|');
      } catch (error) {
        const { code, message } = error as pg.DatabaseError;
        return `${code} ${message}`;
      }
    };
  };
  return { ours: await open(), theirs: await open() };
}

test('a block sees its rows in time order; other sessions see them after COMMIT', async (t) => {
  const sessions = await pair(t);
  if (sessions === null) {
    return;
  }
  const { ours, theirs } = sessions;
  await ours(
    'CREATE TABLE own (ts TIMESTAMP, s SYMBOL, v LONG) TIMESTAMP(ts) PARTITION BY DAY WAL',
  );
  await ours("INSERT INTO own VALUES ('2024-01-01T10', 'a', 1), ('2024-01-02T10', 'b', 4)");
  await ours('BEGIN');
  await ours("INSERT INTO own VALUES ('2024-01-01T12', 'c', 3)");
  await ours("INSERT INTO own VALUES ('2024-01-01T11', 'a', 2), ('2024-01-03T00', 'c', 5)");
  t.is(await ours('SELECT s, v FROM own'), 'a,1|a,2|c,3|b,4|c,5');
  t.is(await theirs('SELECT s, v FROM own'), 'a,1|b,4');
  t.is(await ours('SELECT s, v FROM own LATEST ON ts PARTITION BY s'), 'a,2|b,4|c,5');
  t.is(await ours("SELECT v FROM own WHERE s = 'c'"), '3|5');
  t.is(await ours('SELECT v FROM own WHERE v IN (SELECT max(v) FROM own)'), '5');
  t.is(await ours('SELECT count(), sum(v) FROM own SAMPLE BY 1d ALIGN TO CALENDAR'), '3,6|1,4|1,5');
  // Rows committed by other sessions are visible too.
  await theirs("INSERT INTO own VALUES ('2024-01-01T11:30', 'd', 9)");
  t.is(await ours('SELECT s, v FROM own'), 'a,1|a,2|d,9|c,3|b,4|c,5');
  t.is(await theirs('SELECT count() FROM own'), '3');
  await ours("INSERT INTO own SELECT dateadd('d', 10, ts), s, v + 10 FROM own");
  t.is(await ours('SELECT count(), sum(v) FROM own'), '12,108');
  await ours('COMMIT');
  t.is(await theirs('SELECT count(), sum(v) FROM own'), '12,108');
  t.is(await ours('SELECT count(), sum(v) FROM own'), '12,108');
});

test('DEDUP keys apply within a block as they do after COMMIT', async (t) => {
  const sessions = await pair(t);
  if (sessions === null) {
    return;
  }
  const { ours, theirs } = sessions;
  await ours(
    'CREATE TABLE keyed (ts TIMESTAMP, s SYMBOL, v LONG) TIMESTAMP(ts) PARTITION BY DAY WAL ' +
      'DEDUP UPSERT KEYS(ts, s)',
  );
  await ours("INSERT INTO keyed VALUES ('2024-01-01', 'a', 1), ('2024-01-01', 'b', 2)");
  await ours('BEGIN');
  await ours("INSERT INTO keyed VALUES ('2024-01-01', 'a', 10)");
  await ours("INSERT INTO keyed VALUES ('2024-01-01', 'a', 11), ('2024-01-02', 'c', 3)");
  const all = 'SELECT s, v FROM keyed ORDER BY s';
  t.is(await ours(all), 'a,11|b,2|c,3');
  t.is(await ours('SELECT count() FROM keyed'), '3');
  t.is(await theirs(all), 'a,1|b,2');
  await ours('COMMIT');
  t.is(await theirs(all), 'a,11|b,2|c,3');
});

test('ROLLBACK TO undoes the rows after a savepoint and keeps earlier rows', async (t) => {
  const sessions = await pair(t);
  if (sessions === null) {
    return;
  }
  const { ours, theirs } = sessions;
  await ours('CREATE TABLE marks (n LONG)');
  await ours('BEGIN');
  const all = 'SELECT n FROM marks';
  for (const step of [1, 2, 3, 4]) {
    await ours(`INSERT INTO marks VALUES (${step})`);
    await ours(`SAVEPOINT s${step}`);
  }
  await ours('INSERT INTO marks VALUES (5)');
  t.is(await ours(all), '1|2|3|4|5');
  await ours('ROLLBACK TO s3');
  t.is(await ours(all), '1|2|3');
  await ours('INSERT INTO marks VALUES (6)');
  t.is(await ours(all), '1|2|3|6');
  t.regex(await ours('SELECT * FROM nowhere'), /^42P01 /);
  t.regex(await ours(all), /^25P02 /);
  await ours('ROLLBACK TO s2');
  t.is(await ours(all), '1|2');
  await ours('RELEASE s1');
  await ours('INSERT INTO marks VALUES (7)');
  await ours('COMMIT');
  t.is(await theirs(all), '1|2|7');
  await ours('BEGIN');
  await ours('INSERT INTO marks VALUES (8)');
  await ours('ROLLBACK');
  t.is(await ours(all), '1|2|7');
});

test('statements that commit at once are refused on tables that the block changed', async (t) => {
  const sessions = await pair(t);
  if (sessions === null) {
    return;
  }
  const { ours, theirs } = sessions;
  await ours('CREATE TABLE here (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY WAL');
  await ours('CREATE TABLE there (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY WAL');
  await ours("INSERT INTO there VALUES ('2024-01-01', 1)");
  for (const text of [
    'UPDATE here SET n = 2',
    'DELETE FROM here WHERE n = 7',
    'ALTER TABLE here ADD COLUMN m LONG',
    'DROP TABLE here',
    'TRUNCATE TABLE here',
  ]) {
    await ours('BEGIN');
    await ours("INSERT INTO here VALUES ('2024-01-01', 7)");
    t.regex(
      await ours(text),
      /^0A000 .* commits immediately, but .* uncommitted rows in table 'here'/,
      text,
    );
    t.regex(await ours('COMMIT'), /^$/);
    t.is(await theirs('SELECT count() FROM here'), '0');
  }
  await ours('BEGIN');
  await ours("INSERT INTO here VALUES ('2024-01-01', 7)");
  // A table may be changed based on rows that only the block sees, if that table has no uncommitted
  // rows.
  await ours('UPDATE there SET n = h.n FROM here h WHERE there.ts = h.ts');
  t.is(await theirs('SELECT n FROM there'), '7');
  await ours('ROLLBACK');
  t.is(await theirs('SELECT n FROM there'), '7');
  t.is(await theirs('SELECT count() FROM here'), '0');
});

test('COMMIT fails with 40001 when the table changed during the block', async (t) => {
  const sessions = await pair(t);
  if (sessions === null) {
    return;
  }
  const { ours, theirs } = sessions;
  await ours('CREATE TABLE moved (n LONG)');
  await ours('BEGIN');
  await ours('INSERT INTO moved VALUES (1)');
  await theirs('ALTER TABLE moved ADD COLUMN m LONG');
  t.regex(await ours('SELECT n FROM moved'), /^40001 /);
  await ours('ROLLBACK');
  await ours('BEGIN');
  await ours('INSERT INTO moved VALUES (1, 2)');
  await theirs('ALTER TABLE moved ADD COLUMN o LONG');
  t.regex(await ours('COMMIT'), /^40001 /);
  t.is(await theirs('SELECT count() FROM moved'), '0');
});

test('many small inserts in a block are visible and committed in order', async (t) => {
  const sessions = await pair(t);
  if (sessions === null) {
    return;
  }
  const { ours, theirs } = sessions;
  await ours('CREATE TABLE small (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY HOUR WAL');
  await ours('BEGIN');
  for (let index = 0; index < 300; index += 1) {
    const minute = (index * 37) % 180;
    await ours(`INSERT INTO small VALUES (${minute * 60_000_000}::timestamp, ${index})`);
    if (index % 50 === 49) {
      await theirs('CREATE TABLE IF NOT EXISTS bystander (n LONG)');
      await theirs('INSERT INTO bystander VALUES (1)');
      t.is(
        await ours('SELECT count(), sum(n) FROM small'),
        `${index + 1},${(index * (index + 1)) / 2}`,
      );
    }
  }
  const ordered = 'SELECT count() FROM (SELECT ts - lag(ts) OVER () d FROM small) WHERE d < 0';
  t.is(await ours(ordered), '0');
  await ours('COMMIT');
  t.is(await theirs(ordered), '0');
  // Rows with equal timestamps keep their relative order.
  t.is(await theirs('SELECT n FROM small LIMIT 3'), '0|180|73');
});
