/** `http.security.readonly` refuses all writes and no reads. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { type BackupStatement, type Node, parse } from '../../ts/sql/index.js';
import { ADMIN, exec, run, startAccessServer } from './harness.js';

/** Syntax tree nodes that occur only inside statements. */
type Part =
  | 'Null'
  | 'Boolean'
  | 'Integer'
  | 'Float'
  | 'Decimal'
  | 'String'
  | 'Long256'
  | 'Geohash'
  | 'Duration'
  | 'TypedString'
  | 'Column'
  | 'Star'
  | 'Parameter'
  | 'NamedParameter'
  | 'Variable'
  | 'Unary'
  | 'Binary'
  | 'Logical'
  | 'Concat'
  | 'IsNull'
  | 'Between'
  | 'InList'
  | 'InQuery'
  | 'Within'
  | 'Cast'
  | 'Case'
  | 'Call'
  | 'Array'
  | 'Index'
  | 'Subquery'
  | 'Exists'
  | 'Select'
  | 'SetOperation'
  | 'Values'
  | 'Table'
  | 'TableFunction'
  | 'Derived'
  | 'Join';

interface Samples {
  readonly reads?: readonly string[];
  readonly writes?: readonly string[];
  /** Statements that only the parser accepts. */
  readonly unsupported?: readonly string[];
}

type Kinds<Kind extends string> = Readonly<Record<Kind, Samples>>;

const BACKUP: Kinds<BackupStatement['action']> = {
  CheckpointCreate: { writes: ['CHECKPOINT CREATE'] },
  CheckpointRelease: { writes: ['CHECKPOINT RELEASE'] },
  SnapshotPrepare: { writes: ['SNAPSHOT PREPARE'] },
  SnapshotComplete: { writes: ['SNAPSHOT COMPLETE'] },
  Database: { unsupported: ['BACKUP DATABASE'] },
  Tables: { unsupported: ['BACKUP TABLE t'] },
  Abort: { unsupported: ['BACKUP ABORT'] },
};

/** If a kind of statement has no entry here, this file does not compile. */
const STATEMENTS: Kinds<Exclude<Node['kind'], Part | 'Backup'>> = {
  Query: {
    reads: [
      'SELECT * FROM t',
      'WITH c AS (SELECT 1) SELECT * FROM c',
      'SELECT x FROM t UNION ALL SELECT x FROM t',
      'VALUES (1)',
    ],
  },
  CreateTable: {
    writes: [
      'CREATE TABLE c (x INT)',
      'CREATE TABLE IF NOT EXISTS t (x INT)',
      'CREATE TABLE c AS (SELECT * FROM t)',
      'CREATE TABLE c (LIKE t)',
    ],
  },
  Insert: { writes: ["INSERT INTO t VALUES ('2024-01-02', 2)", 'INSERT INTO t SELECT * FROM t'] },
  Update: { writes: ['UPDATE t SET x = 2'] },
  Delete: { writes: ['DELETE FROM t', 'DELETE FROM t WHERE x = 1'] },
  Drop: { writes: ['DROP TABLE t', 'DROP TABLE IF EXISTS n', 'DROP VIEW v'] },
  DropAllTables: { writes: ['DROP ALL TABLES'] },
  DropIndex: { writes: ['DROP INDEX i'] },
  Truncate: { writes: ['TRUNCATE TABLE t'] },
  Rename: { writes: ['RENAME TABLE t TO u'] },
  AlterTable: {
    writes: [
      'ALTER TABLE t ADD COLUMN y INT',
      "ALTER TABLE t DROP PARTITION LIST '2024-01-01'",
      'ALTER TABLE t ALTER COLUMN x TYPE LONG',
    ],
  },
  CreateView: { writes: ['CREATE VIEW w AS (SELECT x FROM t)'] },
  AlterView: { unsupported: ['ALTER MATERIALIZED VIEW v RESUME WAL'] },
  AlterLiveView: { unsupported: ['ALTER LIVE VIEW lv SUSPEND WAL'] },
  RefreshView: { unsupported: ['REFRESH MATERIALIZED VIEW v FULL'] },
  CompileView: { writes: ['COMPILE VIEW v'] },
  Access: {
    reads: ['EXIT SERVICE ACCOUNT s'],
    writes: ['CREATE USER u', 'GRANT SELECT ON ALL TABLES TO s', 'DROP SERVICE ACCOUNT s'],
  },
  Copy: { writes: ["COPY t FROM 'x.csv'", "COPY t TO 'x' WITH FORMAT CSV", "COPY '1' CANCEL"] },
  Show: { reads: ['SHOW TABLES', 'SHOW COLUMNS FROM t', 'SHOW USERS'] },
  Explain: {
    reads: [
      'EXPLAIN SELECT * FROM t',
      'EXPLAIN DELETE FROM t',
      'EXPLAIN ANALYZE UPDATE t SET x = 2',
    ],
  },
  Session: { reads: ['BEGIN', "SET application_name = 'a'", 'COMMIT'] },
  Check: { reads: ['CHECK TABLE t', 'CHECK DATABASE'] },
  Recover: { reads: ['RECOVER TABLE t'], writes: ['RECOVER TABLE t SKIP'] },
  CancelQuery: { reads: ['CANCEL QUERY 999'] },
  Empty: { reads: [''] },
};

const REFUSED = 'read-only';

function kindOf(sql: string): string {
  const { nodes, root } = parse(sql);
  const node = nodes[root];
  return node?.kind === 'Backup' ? node.backup.action : (node?.kind ?? '');
}

test('a read-only server accepts every kind of read and refuses every write', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-read-only-'));
  const writer = await startAccessServer(root);
  await run(
    writer,
    "CREATE TABLE t AS (SELECT '2024-01-01'::timestamp ts, 1 x FROM long_sequence(1)) " +
      'TIMESTAMP(ts) PARTITION BY DAY',
    'CREATE INDEX i ON t (x)',
    'CREATE VIEW v AS (SELECT x FROM t)',
    'CREATE SERVICE ACCOUNT s',
  );
  await writer.stop();
  const reader = await startAccessServer(root, 'http.security.readonly=true');
  try {
    for (const [kind, samples] of Object.entries({ ...BACKUP, ...STATEMENTS })) {
      const { reads = [], writes = [], unsupported = [] } = samples;
      for (const sql of [...reads, ...writes, ...unsupported]) {
        t.is(kindOf(sql), kind, sql);
        const { error = '' } = await exec(reader, ADMIN, sql);
        t.is(error.includes(REFUSED), writes.includes(sql), `${sql}: ${error}`);
        t.true(!unsupported.includes(sql) || error !== '', sql);
      }
    }
    t.false(existsSync(join(root, '.checkpoint')), 'no checkpoint was created');
    const { dataset } = await exec(reader, ADMIN, 'SELECT * FROM t');
    t.deepEqual(dataset, [['2024-01-01T00:00:00.000000Z', 1]]);
  } finally {
    await reader.stop();
    await rm(root, { recursive: true, force: true });
  }
});
