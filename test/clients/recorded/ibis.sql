-- check: tables (rows)
SELECT table_name FROM information_schema.tables
WHERE table_schema IN ('public') AND table_name LIKE 'rec%' ORDER BY table_name;
-- check: schema of a table
SELECT a.attname AS column_name, format_type(a.atttypid, a.atttypmod) AS data_type,
  NOT a.attnotnull AS nullable
FROM pg_attribute AS a
JOIN pg_class AS c ON a.attrelid = c.oid JOIN pg_namespace AS n ON c.relnamespace = n.oid
WHERE a.attnum > 0 AND NOT a.attisdropped AND n.nspname = 'public'
  AND c.relname = 'rec_readings'
ORDER BY a.attnum;
-- check: database
SELECT CURRENT_DATABASE();
-- check: aggregation (rows)
SELECT "t0"."sensor", SUM("t0"."value") AS "Sum(value)" FROM "rec_readings" AS "t0"
GROUP BY 1 ORDER BY "t0"."sensor" ASC;
-- check: temporary table
CREATE TEMPORARY TABLE "ibis_own" ("n" INT, "v" VARCHAR);
-- check: rows of a temporary table
INSERT INTO "ibis_own" VALUES (1, 'a'), (2, 'b');
-- check: count of a temporary table (rows)
SELECT COUNT(*) AS "count" FROM "ibis_own";
-- check: end of a temporary table
DROP TABLE "ibis_own";
