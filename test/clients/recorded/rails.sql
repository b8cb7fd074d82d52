-- check: client settings
SET client_min_messages TO 'warning';
-- check: strings
SET standard_conforming_strings = on;
-- check: interval style
SET intervalstyle = iso_8601;
-- check: time zone
SET SESSION timezone TO 'UTC';
-- check: range types
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype
FROM pg_type as t LEFT JOIN pg_range as r ON oid = rngtypid
WHERE t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'numeric', 'bool');
-- check: types by kind
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype
FROM pg_type as t LEFT JOIN pg_range as r ON oid = rngtypid
WHERE t.typtype IN ('r', 'e', 'd');
-- check: arrays
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype
FROM pg_type as t LEFT JOIN pg_range as r ON oid = rngtypid
WHERE t.typelem IN (16, 17, 20, 21, 23, 25);
-- check: timestamp types
SELECT t.oid, t.typname FROM pg_type as t WHERE t.typname IN ('timestamp', 'timestamptz');
-- check: schema exists
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ANY (current_schemas(false)) AND c.relname = 'schema_migrations'
  AND c.relkind IN ('r', 'v', 'm', 'p', 'f');
-- check: columns
SELECT a.attname, format_type(a.atttypid, a.atttypmod),
  pg_get_expr(d.adbin, d.adrelid), a.attnotnull, a.atttypid, a.atttypmod,
  c.collname, col_description(a.attrelid, a.attnum) AS comment,
  attidentity AS identity, attgenerated as attgenerated
FROM pg_attribute a
LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum
LEFT JOIN pg_type t ON a.atttypid = t.oid
LEFT JOIN pg_collation c ON a.attcollation = c.oid AND a.attcollation <> t.typcollation
WHERE a.attrelid = '"rec_readings"'::regclass AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum;
-- check: primary key (rows)
SELECT a.attname FROM (
  SELECT indrelid, indkey, generate_subscripts(indkey, 1) idx
  FROM pg_index WHERE indrelid = '"rec_readings"'::regclass AND indisprimary
) i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[i.idx]
ORDER BY i.idx;
-- check: indexes
SELECT distinct i.relname, d.indisunique, d.indkey, pg_get_indexdef(d.indexrelid),
  pg_catalog.obj_description(i.oid, 'pg_class') AS comment, d.indisvalid
FROM pg_class t
INNER JOIN pg_index d ON t.oid = d.indrelid
INNER JOIN pg_class i ON d.indexrelid = i.oid
LEFT JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE i.relkind IN ('i', 'I') AND d.indisprimary = 'f' AND t.relname = 'rec_readings'
  AND n.nspname = ANY (current_schemas(false))
ORDER BY i.relname;
-- check: lock of migrate
SELECT pg_try_advisory_lock(4105466498434234170);
-- check: unlock of migrate
SELECT pg_advisory_unlock(4105466498434234170);
-- check: migrations table
CREATE TABLE "schema_migrations" ("version" character varying NOT NULL PRIMARY KEY);
-- check: migration
INSERT INTO "schema_migrations" ("version") VALUES ('20260101000000') RETURNING "version";
-- check: end
DROP TABLE "schema_migrations";
-- check: encoding
SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database();
-- check: extensions
SELECT installed_version IS NOT NULL AS installed FROM pg_available_extensions WHERE name = 'hstore';
