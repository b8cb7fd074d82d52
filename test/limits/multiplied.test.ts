/**
 * Statements that expand small inputs: strings that grow through replacement, concatenation or
 * repetition across rows, and small files with large cells. Each is either answered within its
 * timeout or refused with an error that names a limit. The process stays within its memory limit.
 */
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rowsOf } from './client.js';
import { peakMegabytes, timed } from './measure.js';

const FILES = fileURLToPath(new URL('../../../test/limits/files', import.meta.url));
const NAMES = ['dictionary', 'text', 'binary', 'list', 'skewed'];
const TIMEOUT_MS = 2000;
/** Allowed delay after the timeout on a busy machine, in milliseconds. */
const LATE_MS = 8000;
const MORE_MEGABYTES = 512;
/** Limits that a refusal may name: query memory, process memory, time or a size. */
const REFUSED = /query\.memory\.limit|the server is using|timeout, query aborted|at most|\[limit=/;

let server: TestServer;

test.before(async () => {
  server = await startTestServer({
    set: ['memory.limit=1500M', 'query.memory.pool=512M', 'shared.query.worker.count=2'],
  });
  const importRoot = join(server.root, 'import');
  await mkdir(importRoot, { recursive: true });
  for (const name of NAMES) {
    await copyFile(join(FILES, `${name}.parquet`), join(importRoot, `${name}.parquet`));
  }
  await rowsOf(
    server,
    `create table bt (ts timestamp, i int, l long, d double, v varchar, s symbol)
      timestamp(ts) partition by day`,
  );
  await rowsOf(
    server,
    `insert into bt select timestamp_sequence('2026-01-01',1000000), x::int, x, x*1.0,
      'abababababababab'||x, 'k'||(x%10) from long_sequence(100000)`,
  );
});

test.after.always(async () => {
  await server.stop();
});

const eight = (name: string): string => Array.from({ length: 8 }, () => name).join('||');
const Y = "rpad('x',1000000,'y')";

const STATEMENTS: readonly string[] = [
  "select length(replace(rpad('a',300000,'a'),'a',rpad('b',300000,'b')))",
  "select length(replace(rpad(v,300000,'a'),'a',rpad('b',300000,'b'))) from bt limit 1",
  "select length(regexp_replace(rpad('a',300000,'a'),'a',rpad('b',300000,'b')))",
  "select length(regexp_replace(rpad('a',300000,'a'),'(a+)',rpad('$1',300000,'$1')))",
  `select length(d) from (select ${eight('c')} d from (select ${eight('b')} c
    from (select ${eight('a')} b from (select ${Y} a from long_sequence(1)))))`,
  `select length(concat(${Array.from({ length: 900 }, () => 'a').join(',')}))
    from (select rpad(v,1000000,'y') a from bt limit 1)`,
  `select string_agg(${Y},',') from long_sequence(100000)`,
  `select string_distinct_agg(rpad(x::varchar,1000000,'y'),',') from long_sequence(100000)`,
  `select array_agg(${Y}) from long_sequence(100000)`,
  `select array_agg(a) from (select array_build(1, 100000, 1.5) a from long_sequence(100000))`,
  `select sum(array_count(a)) from (select case when x % 2 = 0 then array_build(1, 100000, 1.5) * 2
    else null end a from long_sequence(100000))`,
  `select array_build(1, 100000, 1.5) a, x from long_sequence(100000)`,
  `select i % 10, length(string_agg(rpad(v,1000000,'y'),',')) from bt sample by 1h`,
  `select mode(rpad(v,100000,'y')) from bt`,
  `select count_distinct(rpad(v,100000,'y')) from bt`,
  `select rpad(v,1000000,'y') k, count() from bt group by k`,
  `select max(upper(rpad(v,1000000,'ß'))) from bt`,
  `select * from (select ${Y} a, x from long_sequence(100000)) order by a, x desc`,
  `select a.y, b.x from (select ${Y} y from long_sequence(3)) a cross join long_sequence(100000) b`,
  `select distinct rpad(v,1000000,'y') from bt`,
  `select ${Array.from({ length: 3000 }, (_, at) => `a c${at}`).join(',')}
    from (select ${Y} a from long_sequence(100))`,
  `select case when i > 5 then ${Y} else v end c, row_number() over (partition by v) from bt`,
  `select rnd_str(1000000,1000000,0) from long_sequence(100000) order by 1`,
  `select rnd_symbol(${Y}) from long_sequence(100000)`,
  `select rnd_bin(1000000,1000000,0) b, x from long_sequence(100000) order by x desc`,
  `select json_build_object('a', ${Y}, 'b', v) from bt order by v`,
  `select to_str(ts, ${Y}) from bt`,
  `select ltrim(rpad(v,1000000,'a'), rpad('b',1000000,'ba')) from bt`,
  `select v ~ rpad('(a|b)*',1200,'(a|b)*') from (select rpad(v,1000000,'ab') v from bt)`,
  `select ts, count() from bt sample by 1n from '1970-01-01' to '2262-01-01' fill(null)`,
  `update bt set v = rpad('x', 100000, 'y') where i < 20000`,
  `select max(s||i) from read_parquet('dictionary.parquet')`,
  `select max(s||i) from read_parquet('text.parquet')`,
  `select s from read_parquet('binary.parquet')`,
  `select array_count(l) from read_parquet('list.parquet')`,
  `select array_count(l) from read_parquet('skewed.parquet')`,
];

test.serial('statements that expand small inputs stay within time and memory limits', async (t) => {
  const before = await peakMegabytes(server);
  let peak = before;
  const problems: string[] = [];
  for (const statement of STATEMENTS) {
    const { answer, ms } = await timed(server, statement, TIMEOUT_MS);
    const now = await peakMegabytes(server);
    const isKnown = answer.startsWith('200 ') || REFUSED.test(answer);
    if (!isKnown || ms > TIMEOUT_MS + LATE_MS || now - before > MORE_MEGABYTES) {
      const grown = `${now - peak} MiB more, ${now} at the peak`;
      problems.push(`${Math.round(ms)} ms, ${grown}: ${statement}: ${answer.slice(0, 200)}`);
    }
    peak = now;
  }
  t.deepEqual(problems, []);
  t.deepEqual(await rowsOf(server, 'select 1'), [[1]]);
  t.log(`${before} MiB before, ${peak} at the peak`);
});

test.serial('many concurrent expansions stay within the process memory limit', async (t) => {
  const each = STATEMENTS.slice(0, 12);
  const all = Array.from({ length: 36 }, (_, at) => each[at % each.length] ?? '');
  const answers = await Promise.all(all.map((statement) => timed(server, statement, TIMEOUT_MS)));
  for (const { answer } of answers) {
    t.true(/^(?:200|503) /.test(answer) || REFUSED.test(answer), answer.slice(0, 200));
  }
  const peak = await peakMegabytes(server);
  t.true(peak < 1500 + MORE_MEGABYTES, `${peak} MiB at the peak`);
  t.deepEqual(await rowsOf(server, 'select 1'), [[1]]);
  t.log(`${peak} MiB at the peak`);
});
