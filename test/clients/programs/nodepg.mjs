// node-postgres and its companion packages pg-cursor, pg-query-stream and pg-copy-streams against a
// server: `nodepg.mjs PORT NODE_MODULES`. Prints one line of JSON.
import { createRequire } from 'node:module';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

const [, , port, modules] = process.argv;
const require = createRequire(`${modules}/`);
const pg = require('pg');
const Cursor = require('pg-cursor');
const QueryStream = require('pg-query-stream');
const { from, to } = require('pg-copy-streams');

async function connect() {
  const settings = { host: '127.0.0.1', port: Number(port), user: 'admin', password: 'quest' };
  const client = new pg.Client({ ...settings, database: 'qdb' });
  await client.connect();
  return client;
}

const client = await connect();
const out = {};
const rowsOf = async (text, values = []) =>
  (await client.query({ text, values, rowMode: 'array' })).rows;

await client.query('CREATE TABLE npc (ts TIMESTAMP, i INT, s SYMBOL, a DOUBLE[]) TIMESTAMP(ts)');
for (const [i, s] of ['a', 'b c', 'd"e'].entries()) {
  const when = new Date(i * 1_000).toISOString();
  await client.query('INSERT INTO npc VALUES ($1, $2, $3, $4)', [when, i, s, `{${i},0.5}`]);
}
out.any = [
  await rowsOf('SELECT i FROM npc WHERE i = ANY($1)', [[0, 2, 7]]),
  await rowsOf('SELECT i FROM npc WHERE s = ANY($1::text[])', [['b c', 'd"e', null]]),
];
out.arrays = await rowsOf('SELECT a FROM npc WHERE a[1] = $1', [2]);
const cursor = client.query(new Cursor('SELECT x FROM long_sequence($1)', [100]));
out.cursor = [];
for (let rows = await cursor.read(30); rows.length > 0; rows = await cursor.read(30)) {
  out.cursor.push(rows.length);
}
await cursor.close();
const early = client.query(new Cursor('SELECT x FROM long_sequence(1000000)'));
out.early = (await early.read(5)).length;
await early.close();

out.stream = 0;
const stream = client.query(
  new QueryStream('SELECT x FROM long_sequence($1)', [5_000], { batchSize: 700 }),
);
for await (const { x } of stream) {
  out.stream += Number(x);
}

await client.query('CREATE TABLE npd (a INT, v VARCHAR)');
const target = client.query(from('COPY npd FROM STDIN (FORMAT csv)'));
await pipeline(Readable.from(['1,"a', ',b"\n', '2,\n'.repeat(20_000)]), target);
out.copied = '';
for await (const chunk of client.query(to('COPY (SELECT * FROM npd LIMIT 2) TO STDOUT'))) {
  out.copied += chunk;
}
out.rows = await rowsOf('SELECT count() FROM npd');

await client.query('BEGIN');
await client.query('INSERT INTO npd VALUES ($1, $2)', [-1, 'x']);
await client.query('SAVEPOINT s');
out.error = await client
  .query('SELECT nope FROM npd')
  .catch(({ code, position }) => [code, position]);
await client.query('ROLLBACK TO s');
out.own = await rowsOf('SELECT count() FROM npd WHERE a = -1');
await client.query('ROLLBACK');
out.undone = await rowsOf('SELECT count() FROM npd WHERE a = -1');

const other = await connect();
const [[pid]] = await rowsOf('SELECT pg_backend_pid()');
const slow = client.query('SELECT sum(sqrt(x)) AS nodepg FROM long_sequence(100000000000)');
const ended = slow.then(
  () => 'done',
  ({ code }) => code,
);
await new Promise((resolve) => setTimeout(resolve, 500));
await other.query(`SELECT pg_cancel_backend(${pid})`);
out.cancelled = await ended;
await Promise.all([client.end(), other.end()]);
console.log(JSON.stringify(out));
