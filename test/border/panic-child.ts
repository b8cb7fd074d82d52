/**
 * A process with one armed failpoint. It calls every function of the native interface once and
 * reports the calls that failed as one line of JSON. That line proves that the process survived.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
  type Database,
  DatabaseError,
  openDatabase,
  ParameterBatch,
  type ResultStream,
} from '../../ts/engine/index.js';
import { parse } from '../../ts/sql/index.js';

const failures: Record<string, string> = {};

async function attempt<T>(name: string, call: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    // Only the first failure counts; later failures may be consequences of the first.
    failures[name] ??= error instanceof DatabaseError ? error.code : `not ours: ${String(error)}`;
    return undefined;
  }
}

async function prepare(database: Database, sql: string): Promise<string | undefined> {
  const context = { user: 'admin', text: sql };
  const tree = Buffer.from(JSON.stringify(parse(sql)));
  const statement = await attempt('prepare', () => database.prepare(tree, context));
  if (statement === undefined) {
    return undefined;
  }
  const reply = await attempt('execute', () =>
    statement.execute([], { rows: { format: 'json' }, firstChunkRows: 1 }),
  );
  const stream = reply?.stream ?? null;
  if (stream !== null) {
    await attempt('next', () => drain(stream));
    await attempt('summary', () => stream.summary());
    await attempt('cancel', () => {
      stream.cancel();
    });
  }
  await attempt('close', () => {
    statement.close();
  });
  return reply?.chunk?.bytes.toString();
}

/** A summary exists only after the last row. */
async function drain(stream: ResultStream): Promise<void> {
  let chunk = await stream.next();
  while (chunk !== null) {
    chunk = await stream.next();
  }
}

async function append(database: Database): Promise<void> {
  const spec = {
    kind: 'csv',
    table: 'imported',
    create: true,
    overwrite: false,
    csv: {
      delimiter: ',',
      header: false,
      columns: [{ index: 0, name: 'x', type: 'INT' }],
      atomicity: 'skipCol',
      skipExtraValues: false,
    },
  } as const;
  const appender = await attempt('openAppender', () => database.openAppender(spec));
  if (appender !== undefined) {
    await attempt('write', () => appender.write(Buffer.from('1\n2\n')));
    await attempt('nextText', () => appender.nextText(spec.csv));
    await attempt('finish', () => appender.finish());
  }
  const given = await attempt('openAppender', () => database.openAppender(spec));
  await attempt('abort', async () => given?.abort());
}

async function callEverything(database: Database): Promise<void> {
  await prepare(database, 'create table t (x int)');
  await prepare(database, 'insert into t values (1)');
  await prepare(database, 'insert into t select x::int from long_sequence(100000)');
  await prepare(database, 'select x from t');
  await prepare(database, 'select x from t union all select x from t');
  const insert = Buffer.from(JSON.stringify(parse('insert into t values ($1)')));
  const statement = await attempt('prepare', () => database.prepare(insert, { user: 'admin' }));
  await attempt('executeBatch', async () =>
    statement?.executeBatch(ParameterBatch.of([['1'], ['2']])),
  );
  await attempt('tableMetadata', () => database.tableMetadata('t'));
  await append(database);
  await attempt('activeQueries', () => database.activeQueries());
  await attempt('cancelQuery', () => database.cancelQuery(99n));
  await attempt('metrics', () => database.metrics());
  await attempt('setParameters', () => {
    database.setParameters([]);
  });
  await attempt('commitRecords', () =>
    database.commitRecords('test', new Map([['a', Buffer.from('b')]])),
  );
  await attempt('loadRecords', () => database.loadRecords('test'));
  const transaction = await attempt('begin', () => database.begin());
  await attempt('commit', async () => transaction?.commit());
  await attempt('savepoint', () => database.begin().savepoint());
  await attempt('rollback', () => database.begin().rollback());
}

const root = await mkdtemp(join(tmpdir(), 'tidemark-panic-'));
const database = await attempt('openDatabase', () =>
  openDatabase({ root, logSink: () => undefined }),
);
if (database !== undefined) {
  await callEverything(database);
  await attempt('closeDatabase', () => database.close());
}
await rm(root, { recursive: true, force: true });
process.stdout.write(`${JSON.stringify(failures)}\n`);
process.exit(0);
