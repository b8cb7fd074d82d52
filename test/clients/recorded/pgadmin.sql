-- check: session
SELECT db.oid as did, db.datname, db.datallowconn, pg_encoding_to_char(db.encoding)
  AS serverencoding, has_database_privilege(db.oid, 'CREATE') as cancreate, datistemplate
FROM pg_catalog.pg_database db WHERE db.datname = current_database();
-- check: roles
SELECT rolname, rolsuper, rolcreaterole, rolcreatedb FROM pg_catalog.pg_roles
WHERE rolname = current_user;
-- check: replication type
SELECT CASE WHEN (SELECT count(extname) FROM pg_catalog.pg_extension
  WHERE extname = 'bdr') > 0 THEN 'pgd'
  WHEN (SELECT COUNT(*) FROM pg_replication_slots) > 0 THEN 'log'
  ELSE NULL END as type;
-- check: recovery
SELECT pg_catalog.pg_is_in_recovery() AS inrecovery;
-- check: databases
SELECT db.oid as did, db.datname as name, ta.spcname as spcname, db.datallowconn,
  db.datistemplate AS is_template,
  pg_catalog.has_database_privilege(db.oid, 'CREATE') as cancreate, datdba as owner,
  descr.description
FROM pg_catalog.pg_database db
LEFT OUTER JOIN pg_catalog.pg_tablespace ta ON db.dattablespace = ta.oid
LEFT OUTER JOIN pg_catalog.pg_shdescription descr
  ON (db.oid = descr.objoid AND descr.classoid = 'pg_database'::regclass)
WHERE db.datname = current_database() ORDER BY datname;
-- check: schemas
SELECT nsp.oid, nsp.nspname as name,
  pg_catalog.has_schema_privilege(nsp.oid, 'CREATE') as can_create,
  pg_catalog.has_schema_privilege(nsp.oid, 'USAGE') as has_usage, descr.description
FROM pg_catalog.pg_namespace nsp
LEFT OUTER JOIN pg_catalog.pg_description descr
  ON (nsp.oid = descr.objoid AND descr.classoid = 'pg_namespace'::regclass)
WHERE nspname NOT LIKE E'pg\\_%' AND nspname <> 'information_schema'
ORDER BY nspname;
-- check: tables
SELECT rel.oid, rel.relname AS name,
  (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid = rel.oid AND tgisinternal = FALSE)
    AS triggercount,
  (SELECT count(*) FROM pg_catalog.pg_inherits WHERE inhrelid = rel.oid LIMIT 1) as is_inherits,
  des.description
FROM pg_catalog.pg_class rel
LEFT OUTER JOIN pg_catalog.pg_description des
  ON (des.objoid = rel.oid AND des.objsubid = 0 AND des.classoid = 'pg_class'::regclass)
WHERE rel.relkind IN ('r', 's', 't', 'p') AND NOT rel.relispartition
ORDER BY rel.relname;
-- check: columns
SELECT DISTINCT att.attname as name, att.attnum as OID, pg_catalog.format_type(ty.oid, NULL)
  AS datatype, pg_catalog.format_type(ty.oid, att.atttypmod) AS displaytypname,
  att.attnotnull as not_null,
  CASE WHEN att.atthasdef OR att.attidentity != '' OR ty.typdefault IS NOT NULL THEN True
    ELSE False END as has_default_val, des.description, att.attnum
FROM pg_catalog.pg_attribute att
JOIN pg_catalog.pg_type ty ON ty.oid = atttypid
LEFT OUTER JOIN pg_catalog.pg_description des
  ON (des.objoid = att.attrelid AND des.objsubid = att.attnum
    AND des.classoid = 'pg_class'::regclass)
WHERE att.attrelid = 'rec_readings'::regclass AND att.attnum > 0 AND att.attisdropped IS FALSE
ORDER BY att.attnum;
-- check: dashboard sessions
SELECT 'session_stats' AS chart_name, pg_catalog.row_to_json(t) AS chart_data
FROM (SELECT
  (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = current_database())
    AS "Total",
  (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'active'
    AND datname = current_database()) AS "Active") t;
-- check: dashboard transactions
SELECT sum(xact_commit) + sum(xact_rollback) AS "Transactions", sum(xact_commit) AS "Commits",
  sum(xact_rollback) AS "Rollbacks"
FROM pg_catalog.pg_stat_database WHERE datname = current_database();
-- check: activity
SELECT pid, datname, usename, application_name, client_addr,
  pg_catalog.to_char(backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') AS backend_start, state,
  wait_event_type || ': ' || wait_event AS wait_event, query
FROM pg_catalog.pg_stat_activity WHERE datname = current_database() ORDER BY pid;
-- check: locks
SELECT pid, locktype, datname, relation::regclass, page, tuple, virtualxid, transactionid,
  classid::regclass, objid, virtualtransaction, mode, granted, fastpath
FROM pg_catalog.pg_locks l
LEFT OUTER JOIN pg_catalog.pg_database d ON (l.database = d.oid)
WHERE datname = current_database() ORDER BY pid, locktype;
-- check: prepared transactions
SELECT gid, database, owner, transaction, prepared FROM pg_catalog.pg_prepared_xacts;
-- check: settings
SELECT name, setting, unit, category FROM pg_catalog.pg_settings ORDER BY category, name;
-- check: keywords
SELECT upper(word) as word FROM pg_catalog.pg_get_keywords() ORDER BY word;
-- check: rows of the grid (rows)
SELECT sensor, n FROM public.rec_readings ORDER BY at ASC LIMIT 100;
