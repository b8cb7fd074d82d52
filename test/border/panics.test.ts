/**
 * A forced panic in every exported function and every worker becomes an `Internal` error, and the
 * process survives. Each failpoint runs in its own process.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import test from 'ava';

const run = promisify(execFile);
const child = fileURLToPath(new URL('./panic-child.js', import.meta.url));

/** Failpoint → calls, at least one of which must fail. */
const POINTS: Readonly<Record<string, readonly string[]>> = {
  set_log_sink: ['openDatabase'],
  open_database: ['openDatabase'],
  prepare: ['prepare'],
  'engine.prepare': ['prepare'],
  execute: ['execute'],
  'engine.execute': ['execute'],
  'engine.plan': ['execute'],
  'engine.partition': ['execute', 'next'],
  'engine.produce': ['execute'],
  'engine.commit': ['execute'],
  'engine.bulk_write': ['execute'],
  execute_batch: ['executeBatch'],
  'engine.execute_batch': ['executeBatch'],
  statement_close: ['close'],
  next: ['next'],
  cancel: ['cancel'],
  table_metadata: ['tableMetadata'],
  open_appender: ['openAppender'],
  append: ['write'],
  'engine.parser': ['write', 'nextText', 'finish'],
  'engine.writer': ['write', 'nextText', 'finish'],
  append_text: ['nextText'],
  append_finish: ['finish'],
  append_abort: ['abort'],
  cancel_query: ['cancelQuery'],
  observe: ['activeQueries', 'metrics'],
  begin: ['begin', 'rollback'],
  transaction_commit: ['commit'],
  transaction_rollback: ['rollback'],
  transaction_savepoint: ['savepoint'],
  load_records: ['loadRecords'],
  commit_records: ['commitRecords'],
  set_parameters: ['setParameters'],
  close: ['closeDatabase'],
};

async function failuresWith(point: string): Promise<Record<string, string>> {
  const env = { ...process.env, TIDEMARK_FAILPOINTS: `${point}=panic` };
  const { stdout } = await run(process.execPath, [child], { env });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Record<string, string>;
}

test('every call succeeds if no fault is injected', async (t) => {
  t.deepEqual(await failuresWith('none'), {});
});

for (const [point, calls] of Object.entries(POINTS)) {
  test(`a panic at ${point} becomes an error, and the database continues to work`, async (t) => {
    const failures = await failuresWith(point);
    const failed = calls.filter((call) => failures[call] === 'Internal');
    t.true(failed.length > 0, `expected one of ${calls.join(', ')} in ${JSON.stringify(failures)}`);
    t.deepEqual(
      Object.values(failures).filter((code) => code.startsWith('not ours')),
      [],
    );
  });
}
