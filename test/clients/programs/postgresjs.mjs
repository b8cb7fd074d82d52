// postgres.js against a server: `postgresjs.mjs PORT MODULE`. Prints one line of JSON.
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

const [, , port, module] = process.argv;
const { default: postgres } = await import(module);
const sql = postgres({
  host: '127.0.0.1',
  port: Number(port),
  user: 'admin',
  password: 'quest',
  database: 'qdb',
  max: 2,
  onnotice: () => undefined,
});
const out = {};

await sql`CREATE TABLE pj (ts TIMESTAMP, i INT, d DOUBLE, s SYMBOL, v VARCHAR) TIMESTAMP(ts)`;
const when = new Date('2024-01-01T00:00:00.001Z');
await sql`INSERT INTO pj VALUES (${when}, ${7}, ${1.5}, ${'sym'}, ${null})`;
const [row] = await sql`SELECT i, d, s, v FROM pj WHERE i = ${7} AND s = ${'sym'}`;
out.row = row;

out.pipelined = (await Promise.all([1, 2, 3].map((n) => sql`SELECT ${n}::int AS n`))).map(
  ([{ n }]) => n,
);

out.cursor = 0;
for await (const rows of sql`SELECT x FROM long_sequence(100)`.cursor(9)) {
  out.cursor += rows.reduce((sum, { x }) => sum + Number(x), 0);
}

await sql.begin(async (block) => {
  await block
    .savepoint((inner) => inner`SELECT * FROM nowhere`)
    .catch(({ code, position }) => {
      out.error = [code, position];
    });
  await block`INSERT INTO pj (ts, i) VALUES (0, -1)`;
});
[{ n: out.nested }] = await sql`SELECT count() AS n FROM pj WHERE i = -1`;

await sql`CREATE TABLE pjc (a INT, v VARCHAR)`;
const target = await sql`COPY pjc FROM STDIN (FORMAT csv)`.writable();
await pipeline(Readable.from(['1,"a', ',b"\n', '2,\n'.repeat(20_000)]), target);
const source = await sql`COPY (SELECT * FROM pjc LIMIT 2) TO STDOUT`.readable();
out.copied = '';
for await (const chunk of source) {
  out.copied += chunk;
}
[{ n: out.rows }] = await sql`SELECT count() AS n FROM pjc`;

const slow = sql`SELECT sum(sqrt(x)) AS postgresjs FROM long_sequence(100000000000)`;
setTimeout(() => slow.cancel(), 500);
await slow.catch(({ code }) => {
  out.cancelled = code;
});
await sql.end();
console.log(JSON.stringify(out));
