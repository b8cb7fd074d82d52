/** Tests how the runner judges the records of public logic tests. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { internalErrorReport } from '../../internal-errors.js';
import { DIALECTS } from './dialects.js';
import { FileRun } from './file-run.js';
import { PsqlScript } from './psql-script.js';
import { Reader } from './records.js';
import { type Tally } from './tally.js';
import { FreshServer } from './wire.js';

let server: FreshServer;
const scratch = mkdtempSync(join(tmpdir(), 'tidemark-logic-tests-'));
test.before(async () => {
  server = await FreshServer.start();
});
test.after.always(async () => {
  await server.close();
  rmSync(scratch, { recursive: true, force: true });
});

async function run(name: string, text: string): Promise<Tally> {
  const file = join(scratch, name);
  writeFileSync(file, text);
  return await new FileRun(server, DIALECTS.tidemark, scratch).run(file);
}

test.serial('the runner counts each kind of result', async (t) => {
  const tally = await run(
    'verdicts.slt',
    `query I\nSELECT 1\n----\n1\n
query I\nSELECT 1\n----\n2\n
query I\nSELECT no_such_function(1)\n----\n1\n
statement error\nSELECT 1\n
statement ok\nINSERT INTO missing VALUES (1)\n
query I\nSELECT * FROM missing\n----\n1\n
skipif tidemark\nquery I\nSELECT 1\n----\n2\n
require something\n
query I\nSELECT 1\n----\n2\n`,
  );
  t.deepEqual(tally.counts, {
    equal: 1,
    wrong: 1,
    refused: 2,
    accepted: 1,
    skipped: 2,
    internal: 0,
  });
});

test.serial('rows are compared as lists, as sets, by value or by hash', async (t) => {
  const series = 'SELECT generate_series FROM generate_series(1, 3)';
  const tally = await run(
    'modes.slt',
    `query I rowsort\n${series} ORDER BY 1 DESC\n----\n1\n2\n3\n
query I\n${series} ORDER BY 1 DESC\n----\n1\n2\n3\n
query II valuesort\nSELECT 3, 1\n----\n1\n3\n
query I\n${series}\n----\n3 values hashing to c0710d6b4f15dfa88f600b0e6b624077\n
query I\n${series}\n----\n3 values hashing to 00000000000000000000000000000000\n`,
  );
  t.deepEqual([tally.counts.equal, tally.counts.wrong], [3, 2], JSON.stringify(tally.findings));
});

test.serial('a server crash is an internal error, and the next statement succeeds', async (t) => {
  const before = internalErrorReport();
  await server.connections.run('SELECT 1');
  await server.kill();
  const outcome = await server.connections.run('SELECT 1');
  t.like(outcome, { kind: 'error', isInternal: true });
  t.not(internalErrorReport(), before);
  await server.revive();
  t.like(await server.connections.run('SELECT 1'), { rows: [['1']] });
});

test('loops assign variables, and conditions select records', (t) => {
  const text = `foreach type <signed> !HUGEINT\n
loop i 0 2\n
onlyif i=1
query I
SELECT \${i}::{type}
----
1\n
endloop\n
endloop\n`;
  const records = [...new Reader('loops', text, DIALECTS.duckdb).records()];
  const sql = records.map((record) => (record.kind === 'query' ? record.sql : record.kind));
  t.deepEqual(sql, [
    'SELECT 1::TINYINT',
    'SELECT 1::SMALLINT',
    'SELECT 1::INTEGER',
    'SELECT 1::BIGINT',
  ]);
});

test('a psql script is executed statement by statement', (t) => {
  const file = join(scratch, 'script.sql');
  writeFileSync(
    file,
    `-- a comment; with a semicolon
\\set name 'a' 'b'
SELECT ';' AS "x;y", :'name', 1::int; SELECT $q$ ; $q$
\\gset
COPY t FROM stdin;
1
2
\\.
/* ; */ SELECT (1
; 2);`,
  );
  const statements = [...new PsqlScript(file, scratch).statements()];
  t.deepEqual(
    statements.map(({ sql, copyData, isReadByPsql }) => [sql, copyData, isReadByPsql]),
    [
      [`SELECT ';' AS "x;y", 'ab', 1::int`, undefined, false],
      ['SELECT $q$ ; $q$', undefined, true],
      ['COPY t FROM stdin', '1\n2\n', false],
      ['SELECT (1\n; 2)', undefined, false],
    ],
  );
});
