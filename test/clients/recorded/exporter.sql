-- check: database
SELECT current_database();
-- check: version
SELECT version();
-- check: sizes
SELECT pg_database.datname, pg_database_size(pg_database.datname) as size FROM pg_database
WHERE pg_database.datname = 'qdb';
-- check: connections
SELECT count(*) AS count, state FROM pg_stat_activity GROUP BY state;
-- check: database statistics
SELECT datid, datname, numbackends, xact_commit, xact_rollback, blks_read, blks_hit,
  tup_returned, tup_fetched, tup_inserted, tup_updated, tup_deleted, conflicts, temp_files,
  temp_bytes, deadlocks, blk_read_time, blk_write_time
FROM pg_stat_database WHERE datname = 'qdb';
-- check: table statistics
SELECT schemaname, relname, seq_scan, seq_tup_read, idx_scan, n_tup_ins, n_live_tup, n_dead_tup,
  last_vacuum, last_autovacuum FROM pg_stat_user_tables WHERE relname = 'rec_readings';
-- check: background writer
SELECT checkpoints_timed, checkpoints_req FROM pg_stat_bgwriter;
-- check: replication
SELECT pid, state FROM pg_stat_replication;
-- check: locks
SELECT pg_database.datname, mode, count(*) FROM pg_locks
JOIN pg_database ON pg_locks.database = pg_database.oid GROUP BY datname, mode;
-- check: postmaster
SELECT pg_postmaster_start_time();
