/**
 * Permissions that each kind of statement requires. A permission without `ON` applies to the
 * database.
 */
export interface Row {
  readonly sql: string;
  /** All required permissions, such as `SELECT ON t(a)` or `CREATE TABLE`. */
  readonly needs: readonly string[];
  /** Statements that the administrator runs before each attempt. */
  readonly before?: readonly string[];
  /** Statements that the administrator runs after each attempt, whether or not it succeeded. */
  readonly after?: readonly string[];
}

const alter = (action: string, need: string, rest: Partial<Row> = {}): Row => ({
  sql: `ALTER TABLE w ${action}`,
  needs: [need],
  before: [
    'DROP TABLE IF EXISTS w',
    'CREATE TABLE w (ts TIMESTAMP, s SYMBOL, a INT) TIMESTAMP(ts) PARTITION BY DAY WAL',
    "INSERT INTO w VALUES ('2026-01-01', 'x', 1), ('2026-01-02', 'y', 2)",
  ],
  ...rest,
});

const POLICY = {
  before: [
    'DROP TABLE IF EXISTS w',
    `CREATE TABLE w (ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY
       STORAGE POLICY (TO PARQUET 7d) WAL`,
  ],
};

const DAYS = 'SELECT ts, sum(a) x FROM t SAMPLE BY 1d';

const LIVE = 'FLUSH EVERY 1s START FROM NOW AS (SELECT ts, a FROM t)';

const lives = (sql: string, permission: string): Row => ({
  sql,
  needs: [`${permission} ON n`],
  before: [`CREATE LIVE VIEW IF NOT EXISTS n ${LIVE}`],
  after: ['DROP LIVE VIEW IF EXISTS n'],
});

const material = (sql: string, permission: string): Row => ({
  sql,
  needs: [`${permission} ON n`],
  before: [`CREATE MATERIALIZED VIEW IF NOT EXISTS n AS (${DAYS})`],
  after: ['DROP MATERIALIZED VIEW IF EXISTS n'],
});

export const ROWS: readonly Row[] = [
  { sql: 'SELECT a FROM t', needs: ['SELECT ON t(a)'] },
  { sql: 'SELECT a FROM t WHERE b > 0', needs: ['SELECT ON t(a)', 'SELECT ON t(b)'] },
  {
    sql: 'SELECT t.a FROM t JOIN r ON t.b = r.x',
    needs: ['SELECT ON t(a)', 'SELECT ON t(b)', 'SELECT ON r(x)'],
  },
  {
    sql: 'SELECT a FROM t WHERE b IN (SELECT x FROM r)',
    needs: ['SELECT ON t(a)', 'SELECT ON t(b)', 'SELECT ON r(x)'],
  },
  { sql: 'SELECT sum(a) OVER (ORDER BY b) FROM t', needs: ['SELECT ON t(a)', 'SELECT ON t(b)'] },
  { sql: 'SELECT ts, sum(a) FROM t SAMPLE BY 1d', needs: ['SELECT ON t(a)'] },
  { sql: 'WITH c AS (SELECT a FROM t) SELECT * FROM c', needs: ['SELECT ON t(a)'] },
  { sql: 'EXPLAIN SELECT a FROM t', needs: ['SELECT ON t(a)'] },
  { sql: 'SHOW CREATE TABLE t', needs: ['SELECT ON t'] },
  { sql: 'SHOW COLUMNS FROM t', needs: ['SELECT ON t'] },
  { sql: 'SHOW PARTITIONS FROM t', needs: ['SELECT ON t'] },
  { sql: "SELECT * FROM table_partitions('t')", needs: ['SELECT ON t'] },
  { sql: "SELECT * FROM wal_transactions('t')", needs: ['SELECT ON t'] },
  { sql: 'INSERT INTO r VALUES (1)', needs: ['INSERT ON r'] },
  { sql: 'INSERT INTO r SELECT a FROM t', needs: ['INSERT ON r', 'SELECT ON t(a)'] },
  { sql: 'UPDATE t SET a = b', needs: ['UPDATE ON t(a)', 'SELECT ON t(b)'] },
  { sql: 'UPDATE t SET a = 1 WHERE b = 2', needs: ['UPDATE ON t(a)', 'SELECT ON t(b)'] },
  { sql: 'DELETE FROM r WHERE x = 77', needs: ['DELETE ON r', 'SELECT ON r(x)'] },
  { sql: 'CREATE TABLE n (x INT)', needs: ['CREATE TABLE'], after: ['DROP TABLE IF EXISTS n'] },
  {
    sql: 'CREATE TABLE n AS (SELECT a FROM t)',
    needs: ['CREATE TABLE', 'SELECT ON t(a)'],
    after: ['DROP TABLE IF EXISTS n'],
  },
  {
    sql: 'CREATE TABLE n (LIKE t)',
    needs: ['CREATE TABLE', 'SELECT ON t'],
    after: ['DROP TABLE IF EXISTS n'],
  },
  {
    sql: 'DROP TABLE n',
    needs: ['DROP TABLE ON n'],
    before: ['CREATE TABLE IF NOT EXISTS n (x INT)'],
  },
  { sql: 'TRUNCATE TABLE r', needs: ['TRUNCATE TABLE ON r'] },
  {
    sql: 'RENAME TABLE n TO m',
    needs: ['RENAME TABLE ON n'],
    before: ['CREATE TABLE IF NOT EXISTS n (x INT)'],
    after: ['DROP TABLE IF EXISTS m', 'DROP TABLE IF EXISTS n'],
  },
  alter('ADD COLUMN z INT', 'ADD COLUMN ON w'),
  alter('DROP COLUMN a', 'DROP COLUMN ON w(a)'),
  alter('RENAME COLUMN a TO z', 'RENAME COLUMN ON w(a)'),
  alter('ALTER COLUMN a TYPE LONG', 'ALTER COLUMN TYPE ON w(a)'),
  alter('ALTER COLUMN s NOCACHE', 'ALTER COLUMN CACHE ON w(s)'),
  alter('ALTER COLUMN s SYMBOL CAPACITY 512', 'ALTER COLUMN CACHE ON w(s)'),
  alter('ALTER COLUMN s ADD INDEX', 'ADD INDEX ON w(s)'),
  {
    sql: 'ALTER TABLE w ALTER COLUMN s DROP INDEX',
    needs: ['DROP INDEX ON w(s)'],
    before: ['DROP TABLE IF EXISTS w', 'CREATE TABLE w (s SYMBOL INDEX)'],
  },
  alter("DROP PARTITION LIST '2026-01-01'", 'DROP PARTITION ON w'),
  alter("DETACH PARTITION LIST '2026-01-01'", 'DETACH PARTITION ON w'),
  alter("ATTACH PARTITION LIST '2026-01-01'", 'ATTACH PARTITION ON w'),
  alter("CONVERT PARTITION TO PARQUET LIST '2026-01-01'", 'SET TABLE PARAM ON w'),
  alter('SQUASH PARTITIONS', 'VACUUM TABLE ON w'),
  alter('DEDUP ENABLE UPSERT KEYS(ts)', 'DEDUP ENABLE ON w'),
  alter('DEDUP DISABLE', 'DEDUP DISABLE ON w'),
  alter('SET PARAM maxUncommittedRows = 100', 'SET TABLE PARAM ON w'),
  alter('SET TTL 30d', 'SET TABLE PARAM ON w'),
  alter('SET TYPE BYPASS WAL', 'SET TABLE TYPE ON w'),
  alter('RESUME WAL', 'RESUME WAL ON w'),
  alter('SUSPEND WAL', 'RESUME WAL ON w'),
  alter('SET STORAGE POLICY(TO PARQUET 7d)', 'SET STORAGE POLICY ON w', POLICY),
  alter('ENABLE STORAGE POLICY', 'ENABLE STORAGE POLICY ON w', POLICY),
  alter('DISABLE STORAGE POLICY', 'DISABLE STORAGE POLICY ON w', POLICY),
  alter('DROP STORAGE POLICY', 'REMOVE STORAGE POLICY ON w', POLICY),
  {
    sql: "SELECT pause_job('policy', 'w')",
    needs: ['DISABLE STORAGE POLICY ON w'],
    ...POLICY,
  },
  {
    sql: "SELECT resume_job('policy', 'w')",
    needs: ['ENABLE STORAGE POLICY ON w'],
    ...POLICY,
  },
  { sql: 'VACUUM TABLE t', needs: ['VACUUM TABLE ON t'] },
  { sql: 'REINDEX TABLE t LOCK EXCLUSIVE', needs: ['REINDEX ON t'] },
  {
    sql: 'CREATE VIEW n AS (SELECT a FROM t)',
    needs: ['CREATE VIEW', 'SELECT ON t(a)'],
    after: ['DROP VIEW IF EXISTS n'],
  },
  {
    sql: 'CREATE OR REPLACE VIEW v AS (SELECT a FROM t)',
    needs: ['CREATE VIEW', 'ALTER VIEW ON v', 'SELECT ON t(a)'],
    after: ['CREATE OR REPLACE VIEW v AS (SELECT a FROM t)'],
  },
  {
    sql: 'ALTER VIEW v AS (SELECT a FROM t)',
    needs: ['ALTER VIEW ON v', 'SELECT ON t(a)'],
    after: ['CREATE OR REPLACE VIEW v AS (SELECT a FROM t)'],
  },
  { sql: 'COMPILE VIEW v', needs: ['COMPILE VIEW ON v'] },
  { sql: 'SELECT * FROM v', needs: ['SELECT ON v'] },
  { sql: 'SHOW CREATE VIEW v', needs: ['SELECT ON v'] },
  {
    sql: 'DROP VIEW n',
    needs: ['DROP VIEW ON n'],
    before: ['CREATE OR REPLACE VIEW n AS (SELECT a FROM t)'],
    after: ['DROP VIEW IF EXISTS n'],
  },
  {
    sql: `CREATE MATERIALIZED VIEW n AS (${DAYS})`,
    needs: ['CREATE MATERIALIZED VIEW', 'SELECT ON t(a)'],
    after: ['DROP MATERIALIZED VIEW IF EXISTS n'],
  },
  {
    sql: `CREATE LIVE VIEW n ${LIVE}`,
    needs: ['CREATE LIVE VIEW', 'SELECT ON t(a)'],
    after: ['DROP LIVE VIEW IF EXISTS n'],
  },
  lives('DROP LIVE VIEW n', 'DROP LIVE VIEW'),
  lives('SHOW CREATE LIVE VIEW n', 'SELECT'),
  lives('SELECT * FROM n', 'SELECT'),
  lives('ALTER LIVE VIEW n RESUME WAL', 'RESUME WAL'),
  lives('ALTER LIVE VIEW n SUSPEND WAL', 'RESUME WAL'),
  material('ALTER MATERIALIZED VIEW n SET REFRESH MANUAL', 'ALTER MATERIALIZED VIEW'),
  material('REFRESH MATERIALIZED VIEW n FULL', 'REFRESH MATERIALIZED VIEW'),
  material('DROP MATERIALIZED VIEW n', 'DROP MATERIALIZED VIEW'),
  material('SHOW CREATE MATERIALIZED VIEW n', 'SELECT'),
  material('SELECT x FROM n', 'SELECT'),
  { sql: 'CHECKPOINT CREATE', needs: ['SNAPSHOT'], after: ['CHECKPOINT RELEASE'] },
  { sql: 'CHECKPOINT RELEASE', needs: ['SNAPSHOT'], before: ['CHECKPOINT CREATE'] },
  { sql: 'CHECK DATABASE', needs: ['SNAPSHOT'] },
  { sql: 'SELECT reload_config()', needs: ['SYSTEM ADMIN'] },
  { sql: "SELECT * FROM read_parquet('none.parquet')", needs: ['READ FILES'] },
  { sql: "SELECT * FROM read_csv('none.csv')", needs: ['READ FILES'] },
  { sql: "SELECT * FROM read_json('none.json')", needs: ['READ FILES'] },
  { sql: 'SELECT * FROM import_files()', needs: ['READ FILES'] },
  { sql: 'SELECT * FROM export_files()', needs: ['READ FILES'] },
  { sql: "SELECT * FROM files('.')", needs: ['READ FILES'] },
  { sql: "SELECT * FROM glob('*.none')", needs: ['READ FILES'] },
  { sql: "COPY r FROM 'none.csv'", needs: ['INSERT ON r', 'READ FILES'] },
  {
    sql: "COPY (SELECT a FROM t) TO 'out' WITH FORMAT CSV",
    needs: ['SELECT ON t(a)', 'WRITE FILES'],
  },
  { sql: 'CREATE USER n', needs: ['CREATE USER'], after: ['DROP USER IF EXISTS n'] },
  {
    sql: "CREATE USER n WITH PASSWORD 'p'",
    needs: ['CREATE USER', 'ADD PASSWORD'],
    after: ['DROP USER IF EXISTS n'],
  },
  {
    sql: 'DROP USER n',
    needs: ['DROP USER'],
    before: ['CREATE USER IF NOT EXISTS n'],
    after: ['DROP USER IF EXISTS n'],
  },
  { sql: 'ALTER USER other ENABLE', needs: ['ENABLE USER'] },
  { sql: 'ALTER USER other DISABLE', needs: ['DISABLE USER'] },
  { sql: "ALTER USER other WITH PASSWORD 'p'", needs: ['ADD PASSWORD'] },
  { sql: 'ALTER USER other WITH NO PASSWORD', needs: ['REMOVE PASSWORD'] },
  { sql: 'ALTER USER other CREATE TOKEN TYPE JWK', needs: ['CREATE JWK'] },
  { sql: 'ALTER USER other DROP TOKEN TYPE JWK', needs: ['DROP JWK'] },
  { sql: "ALTER USER other CREATE TOKEN TYPE REST WITH TTL '1h'", needs: ['CREATE REST TOKEN'] },
  { sql: 'ALTER USER other DROP TOKEN TYPE REST', needs: ['DROP REST TOKEN'] },
  { sql: 'CREATE GROUP n', needs: ['CREATE GROUP'], after: ['DROP GROUP IF EXISTS n'] },
  {
    sql: "CREATE GROUP n WITH EXTERNAL ALIAS 'e'",
    needs: ['CREATE GROUP', 'ADD EXTERNAL ALIAS'],
    after: ['DROP GROUP IF EXISTS n'],
  },
  {
    sql: 'DROP GROUP n',
    needs: ['DROP GROUP'],
    before: ['CREATE GROUP IF NOT EXISTS n'],
    after: ['DROP GROUP IF EXISTS n'],
  },
  {
    sql: "ALTER GROUP h WITH EXTERNAL ALIAS 'f'",
    needs: ['ADD EXTERNAL ALIAS'],
    before: ['DROP GROUP IF EXISTS h', 'CREATE GROUP h'],
  },
  {
    sql: "ALTER GROUP h DROP EXTERNAL ALIAS 'f'",
    needs: ['REMOVE EXTERNAL ALIAS'],
    before: ['DROP GROUP IF EXISTS h', "CREATE GROUP h WITH EXTERNAL ALIAS 'f'"],
  },
  { sql: 'ADD USER other TO g', needs: ['ADD USER'] },
  { sql: 'REMOVE USER other FROM g', needs: ['REMOVE USER'], before: ['ADD USER other TO g'] },
  {
    sql: 'CREATE SERVICE ACCOUNT n',
    needs: ['CREATE SERVICE ACCOUNT'],
    after: ['DROP SERVICE ACCOUNT IF EXISTS n'],
  },
  {
    sql: 'DROP SERVICE ACCOUNT n',
    needs: ['DROP SERVICE ACCOUNT'],
    before: ['CREATE SERVICE ACCOUNT IF NOT EXISTS n'],
    after: ['DROP SERVICE ACCOUNT IF EXISTS n'],
  },
  { sql: 'SHOW USERS', needs: ['LIST USERS'] },
  { sql: 'SHOW GROUPS', needs: ['LIST USERS'] },
  { sql: 'SHOW SERVICE ACCOUNTS', needs: ['LIST USERS'] },
  { sql: 'SHOW USER other', needs: ['USER DETAILS'] },
  { sql: 'SHOW PERMISSIONS other', needs: ['USER DETAILS'] },
];
